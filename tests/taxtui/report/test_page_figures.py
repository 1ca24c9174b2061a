"""What a figure draws is what the tables say."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes

from costmodel import TrainingRun
from costmodel.analysis.project import SubstrateRun
from costmodel.providers.provider import load_provider
from taxtui.report.measured.rows import rows_of
from taxtui.report.measured.samples import column, read_samples
from taxtui.report.page.drawing import drawn, inline_svg
from taxtui.report.page.figure import Figure, Panel
from taxtui.report.page.figures import by_length, causes, cold_start
from taxtui.report.page.material import Material
from taxtui.report.page.palette import RULE, SHADES, SURFACE
from taxtui.report.page.scales import amounts, durations, limits
from tests.support.cost_model.simulating import attribute_coarsely
from tests.support.documents.page_recordings import recordings

NS = 1e-9


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Material:
    paths = recordings(tmp_path_factory.mktemp("pages"))
    cells, sources = read_samples(paths)
    return Material(rows_of(cells), sources, paths, 0)


@pytest.fixture(scope="module")
def found(material: Material) -> dict[str, Figure]:
    drawn = [module.figure(material.rows, material.colours) for module in (cold_start, by_length)]
    return {figure.name: figure for figure in (causes.figure("causes", "Time by cause", material.answer), *drawn)}


def axes_of(panel: Panel) -> Axes:
    return drawn(panel).figure.axes[0]


def totals(panels: list[Panel]) -> list[float]:
    stacks = [[[float(bar.get_width()) for bar in part] for part in axes_of(panel).containers] for panel in panels]  # type: ignore[attr-defined]
    return [sum(parts) for stack in stacks for parts in zip(*stack, strict=True)]


def test_cold_start_curves_are_the_samples(material: Material, found: dict[str, Figure]) -> None:
    (panel,) = found["cold-start"].panels
    curves = [line for line in axes_of(panel).lines if line.get_drawstyle() == "steps-post"]
    wanted = [sorted(column(row.good, "cold_start").values) for row in material.rows]
    drawn_s = sorted(list(line.get_xdata())[1:] for line in curves)
    assert drawn_s == [pytest.approx([ns * NS for ns in one]) for one in sorted(wanted)]
    for line in curves:
        shares = list(line.get_ydata())
        assert shares == pytest.approx([place / (len(shares) - 1) for place in range(len(shares))])


def test_bars_are_the_answer_of_each_workload(material: Material, found: dict[str, Figure]) -> None:
    panels = found["causes"].panels
    assert [panel.title.rpartition(", ")[2] for panel in panels] == ["T1 x 10", "T1 x 50"]
    amounts_s = [entry.amount.value for line in material.answer.lines for entry in line.entries if entry.amount]
    assert sorted(totals(panels)) == pytest.approx(sorted(amounts_s))


def test_a_picture_has_a_name_a_description_text_and_the_page_s_colours_only(found: dict[str, Figure]) -> None:
    panels = [panel for figure in found.values() for panel in figure.panels]
    assert len({panel.name for panel in panels}) == len(panels)
    svg = inline_svg(found["causes"].panels[0])
    assert svg == inline_svg(found["causes"].panels[0])
    assert all(part in svg for part in ('role="img"', "<title id=", "<desc id=", ">docker exec"))
    styles = re.findall(r'style="([^"]*)"', svg)
    assert not [style for style in styles if re.search(r"#[0-9a-f]{6}", style)]


@pytest.mark.parametrize("steps", [False, True])
def test_bars_of_a_training_run_are_those_of_the_projection(
    tmp_path: Path, steps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    attribute_coarsely(monkeypatch)
    paths = recordings(tmp_path)[:1]
    cells, sources = read_samples(paths)
    rows = [row for row in rows_of(cells) if row.identity.actions == 10 and row.identity.mode == "exec"]
    more = {"batch": 64, "gpus": 8, "gpu_usd_hour": 2.0} if steps else {}
    asked = TrainingRun(trajectories=128, workers=16, **more)
    providers = [load_provider("daytona")] * steps
    run = Material(rows, sources, paths, 0, places=[SubstrateRun("", asked, None)], providers=providers).run
    figure = causes.figure("costs", "Costs by cause", run.answer)
    assert [panel.provenance for panel in figure.panels] == ["", "COMPOSED"][: 1 + steps]
    wanted = []
    for row in (entry.row for line in run.answer.lines for entry in line.entries):
        if row.attribution is None:
            wanted.append(row.worker_hours.value)  # type: ignore[union-attr]
        else:
            shares = [share.usd.value for share in row.attribution.causes.values() if share and share.usd]
            wanted.append(sum(max(0.0, usd) for usd in shares))
    assert sorted(totals(figure.panels)) == pytest.approx(sorted(wanted))


def luminance(colour: str) -> float:
    """WCAG 2's, from 0 (black) to 1 (white)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_every_colour_is_readable_on_its_background() -> None:
    pairs = [(role, SURFACE) for role in SHADES if role not in (SURFACE, "panel", RULE)]
    for role, ground in [*pairs, *((role, "panel") for role in ("ink", "muted", "link"))]:
        for side in ("light", "dark"):
            low, high = sorted(luminance(getattr(SHADES[each], side)) for each in (role, ground))
            assert (high + 0.05) / (low + 0.05) >= 4.5, role
    assert len({shade.light for shade in SHADES.values()}) == len(set(SHADES.values())), "a drawn colour has one shade"


@settings(max_examples=60)
@given(low=st.floats(1e-9, 1e15), factor=st.floats(1.001, 1e12))
def test_ticks_are_few_and_between_the_ends_and_limits_contain_all_values(low: float, factor: float) -> None:
    high = low * factor
    for log in (False, True):
        start, end = limits([low, high], log=log)
        assert 0 <= start <= low < high <= end < math.inf
        assert start > 0 or not log
    for ticks, start in ((durations(low, high, log=True), low), (amounts(high), 0.0)):
        assert len(ticks) <= 7
        assert all(start * (1 - 1e-6) <= tick.at <= high * (1 + 1e-6) for tick in ticks)
        assert [tick.at for tick in ticks] == sorted({tick.at for tick in ticks})
