"""What the page on layers says and draws is what its recording holds."""

from __future__ import annotations

import pytest

from taxtui.report.numbers import duration
from tests.support import layers


@pytest.fixture(scope="module")
def measured() -> list[layers.Layer]:
    return layers.layers()


def test_the_table_is_what_the_command_prints(measured: list[layers.Layer]) -> None:
    assert layers.redrawn(measured) == layers.PAGE.read_text(encoding="utf-8")
    assert all(f"| `{layer.label}` |" in layers.table(measured) for layer in measured)


def test_the_picture_draws_the_same(measured: list[layers.Layer]) -> None:
    drawn = layers.PICTURE.read_text(encoding="utf-8")
    assert drawn == layers.svg(measured)
    for layer in measured:
        assert all(f">{duration(cell.p50_ns)}<" in drawn for cell in layer.cells)


def test_a_layer_is_measured_in_three_runs_at_least(measured: list[layers.Layer]) -> None:
    assert len(measured) == 4
    assert all(0 <= low <= high for low, high in (layer.sds for layer in measured))
    assert all(cell.low_ns <= cell.p50_ns <= cell.high_ns for layer in measured for cell in layer.cells)
