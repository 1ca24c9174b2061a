"""What a figure draws is what the tables say."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

import pytest
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from costmodel import TrainingRun, load
from costmodel.analysis.per_substrate import SubstrateRun
from costmodel.providers.provider import load_provider
from taxtui.report.cells import TableCell
from taxtui.report.measured.failures import errors
from taxtui.report.measured.rows import MeasuredRow, rows_of
from taxtui.report.measured.samples import column, read_samples
from taxtui.report.measured.tables import PARTS
from taxtui.report.page.drawing import drawn, inline_svg, png_file, svg_file
from taxtui.report.page.figures import attribution, figures
from taxtui.report.page.material import Material
from taxtui.report.page.palette import MARKERS
from taxtui.report.page.panel import Figure, Panel
from tests.support.documents.page_recordings import recordings

NS = 1e-9


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Material:
    paths = recordings(tmp_path_factory.mktemp("pages"))
    cells, sources = read_samples(paths)
    return Material(rows_of(cells), sources, paths, 0)


@pytest.fixture(scope="module")
def found(material: Material) -> dict[str, Figure]:
    return {figure.name: figure for figure in figures(material)}


def axes_of(panel: Panel) -> Axes:
    return drawn(panel, titled=False).canvas.axes[0]


def xs(line: Line2D) -> list[float]:
    return [float(x) for x in line.get_xdata()]  # type: ignore[union-attr]


def ys(line: Line2D) -> list[float]:
    return [float(y) for y in line.get_ydata()]  # type: ignore[union-attr]


def in_order(material: Material) -> list[MeasuredRow]:
    """As a panel has them."""
    (setting,) = material.settings
    return setting.rows


def widths(axes: Axes) -> list[list[float]]:
    """Of each part, the bars' lengths."""
    return [[float(bar.get_width()) for bar in container] for container in axes.containers]  # type: ignore[attr-defined]


def test_every_figure_of_the_paper_is_there(found: dict[str, Figure]) -> None:
    assert list(found) == ["causes", "cold-start", "length"]
    panels = [panel.name for figure in found.values() for panel in figure.panels]
    assert len(set(panels)) == len(panels)


def test_cold_start_curves_are_the_samples(material: Material, found: dict[str, Figure]) -> None:
    (panel,) = found["cold-start"].panels
    curves = [line for line in axes_of(panel).lines if line.get_drawstyle() == "steps-post"]
    assert len(curves) == len(material.rows)
    for row, line in zip(in_order(material), curves, strict=True):
        ascending = sorted(column(row.good, "cold_start").values)
        assert xs(line)[1:] == pytest.approx([ns * NS for ns in ascending])
        assert ys(line) == pytest.approx([place / len(ascending) for place in range(len(ascending) + 1)])


def test_bars_are_the_breakdown(material: Material, found: dict[str, Figure]) -> None:
    (panel,) = found["causes"].panels
    rows = in_order(material)
    wanted = [[mean(row) * NS for row in rows] for mean in PARTS.values()]
    assert widths(axes_of(panel)) == [pytest.approx(part) for part in wanted if any(part)]
    assert [one["mean_ns"] for one in panel.data] == pytest.approx([row.mean_ns("trajectory") for row in rows])


def test_lines_over_length_are_the_medians(material: Material, found: dict[str, Figure]) -> None:
    (panel,) = found["length"].panels
    drawn = {
        tuple(zip(xs(line), ys(line), strict=True)) for line in axes_of(panel).lines if line.get_marker() in MARKERS
    }
    wanted = []
    kinds = sorted(in_order(material), key=lambda row: (row.own_label, row.identity.mode))
    for _, group in groupby(kinds, lambda row: (row.own_label, row.identity.mode)):
        summaries = [(float(row.length.mean), row.summary("trajectory")) for row in group]
        wanted.append([(length, summary.p50.value * NS) for length, summary in summaries])  # type: ignore[union-attr,operator]
    assert sorted(map(list, drawn)) == [pytest.approx(points) for points in sorted(wanted)]


def test_failures_are_counted_by_phase_and_class(material: Material) -> None:
    table = errors(material.rows)
    counts = [cell.value for line in table.rows if isinstance(cell := line[3], TableCell)]
    assert sum(filter(None, counts)) == sum(row.failed for row in material.rows) > 0


def test_every_panel_says_n_in_its_data_and_flags_in_its_notes(found: dict[str, Figure]) -> None:
    for name, figure in found.items():
        assert all({"n", "flags"} <= one.keys() for panel in figure.panels for one in panel.data), name
        assert all(panel.about for panel in figure.panels)


def test_the_same_numbers_give_the_same_picture(found: dict[str, Figure]) -> None:
    panel = found["causes"].panels[0]
    assert inline_svg(panel) == inline_svg(panel)
    assert svg_file(panel) == svg_file(panel)
    assert png_file(panel) == png_file(panel)
    assert png_file(panel).startswith(b"\x89PNG")


def test_a_picture_has_a_name_a_description_text_and_the_page_s_colours_only(found: dict[str, Figure]) -> None:
    svg = inline_svg(found["causes"].panels[0])
    assert 'role="img"' in svg
    assert "<title id=" in svg
    assert "<desc id=" in svg
    assert ">docker 10 exec" in svg
    styles = re.findall(r'style="([^"]*)"', svg)
    assert not [style for style in styles if re.search(r"#[0-9a-f]{6}", style)]


@pytest.mark.parametrize("steps", [False, True])
def test_attribution_is_that_of_the_projection_by_cause(tmp_path: Path, steps: bool) -> None:
    paths = recordings(tmp_path)[:1]
    cells, sources = read_samples(paths)
    rows = [row for row in rows_of(cells) if row.identity.actions == 10 and row.identity.mode == "exec"]
    asked = TrainingRun(
        trajectories=512, workers=16, **({"batch": 64, "gpus": 8, "gpu_usd_hour": 2.0} if steps else {})
    )
    providers = [load_provider("daytona", load)] * steps
    own = Material(rows, sources, paths, 0, places=[SubstrateRun("", asked, None)], providers=providers)
    (figure,) = attribution.figures(own)
    assert own.run is not None
    assert [panel.apart for panel in figure.panels] == ["", "COMPOSED"][: 1 + steps]
    bars = [sum(parts) for panel in figure.panels for parts in zip(*widths(axes_of(panel)), strict=True)]
    if not steps:
        assert bars == pytest.approx([row.tax_worker_hours.value for row in own.run.rows])  # type: ignore[union-attr]
        return
    assert [told.startswith("COMPOSED daytona") for told in own.run.headlines] == [False, False, True]
    data = [one for panel in figure.panels for one in panel.data]
    for row, bar, one in zip(own.run.rows, bars, data, strict=True):
        assert row.attribution is not None
        shares = [share.usd.value for share in row.attribution.causes.values() if share and share.usd]
        assert bar == pytest.approx(sum(max(0.0, usd) for usd in shares))
        assert one["total"] == row.attribution.sandbox.usd.value  # type: ignore[union-attr]
        assert one["unit"] == "usd"
