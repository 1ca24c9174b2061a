"""What a figure draws is what the tables say."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

import pytest
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from costmodel import Demand, project, read
from costmodel.analysis.per_substrate import PlaceAsked
from costmodel.providers.provider import load_provider
from costmodel.recording.published import read_published
from costmodel.recording.table import rows as table_rows
from costmodel.statistics.intervals import quantile
from taxtui.report.measured.rows import Row, rows_of
from taxtui.report.measured.samples import column, read_samples
from taxtui.report.measured.tables import PARTS
from taxtui.report.page.drawing import drawn, inline_svg, png_file, svg_file
from taxtui.report.page.figures import attribution, failures, figures
from taxtui.report.page.material import MILLION, Material
from taxtui.report.page.palette import MARKERS
from taxtui.report.page.panel import Figure, Panel
from tests.support.page_recordings import recordings

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


def marked(axes: Axes) -> list[Line2D]:
    """The marks that stand alone."""
    return [line for line in axes.lines if line.get_marker() in MARKERS and line.get_linestyle() == "None"]


def xs(line: Line2D) -> list[float]:
    return [float(x) for x in line.get_xdata()]  # type: ignore[union-attr]


def ys(line: Line2D) -> list[float]:
    return [float(y) for y in line.get_ydata()]  # type: ignore[union-attr]


def in_order(material: Material) -> list[Row]:
    """As a panel has them."""
    (setting,) = material.settings
    return setting.rows


def widths(axes: Axes) -> list[list[float]]:
    """Of each part, the bars' lengths."""
    return [[float(bar.get_width()) for bar in container] for container in axes.containers]  # type: ignore[attr-defined]


def test_every_figure_of_the_paper_is_there(found: dict[str, Figure]) -> None:
    names = ["cold-start", "cold-start-curves", "cold-start-boxes", "latency", "composition", "length", "break-even"]
    assert list(found) == [*names, "worker-hours", "tax", "failures", "runs", "health"]
    panels = [panel.name for figure in found.values() for panel in figure.panels]
    assert len(set(panels)) == len(panels)


def test_cold_start_medians_with_their_intervals(material: Material, found: dict[str, Figure]) -> None:
    axes = axes_of(found["cold-start"].panels[0])
    p50s = [row.summary("cold_start").p50 for row in material.rows]  # type: ignore[union-attr]
    assert sorted(x for line in marked(axes) for x in xs(line)) == pytest.approx(sorted(one.value * NS for one in p50s))
    spans = [xs(line) for line in axes.lines if line.get_linestyle() == "-"]
    assert sorted(spans) == [pytest.approx(ends) for ends in sorted([one.low * NS, one.high * NS] for one in p50s)]


def test_cold_start_curves_are_the_samples(material: Material, found: dict[str, Figure]) -> None:
    (panel,) = found["cold-start-curves"].panels
    curves = [line for line in axes_of(panel).lines if line.get_drawstyle() == "steps-post"]
    assert len(curves) == len(material.rows)
    for row, line in zip(in_order(material), curves, strict=True):
        ascending = sorted(column(row.good, "cold_start").values)
        assert xs(line)[1:] == pytest.approx([ns * NS for ns in ascending])
        assert ys(line) == pytest.approx([place / len(ascending) for place in range(len(ascending) + 1)])


def test_boxes_are_the_quartiles_and_the_ends(material: Material, found: dict[str, Figure]) -> None:
    (panel,) = found["cold-start-boxes"].panels
    axes = axes_of(panel)
    for row, container in zip(in_order(material), axes.containers, strict=True):
        ascending = sorted(column(row.good, "cold_start").values)
        (box,) = container  # type: ignore[attr-defined]
        assert box.get_x() == pytest.approx(quantile(ascending, 0.25) * NS)
        assert box.get_x() + box.get_width() == pytest.approx(quantile(ascending, 0.75) * NS)
    ends = [xs(line) for line in marked(axes)]
    values = [column(row.good, "cold_start").values for row in in_order(material)]
    assert ends == [pytest.approx([min(own) * NS, max(own) * NS]) for own in values]


@pytest.mark.parametrize("shares", [False, True])
def test_bars_are_the_breakdown(material: Material, found: dict[str, Figure], shares: bool) -> None:
    (panel,) = found["composition" if shares else "latency"].panels
    rows = in_order(material)
    wanted = [[mean(row) * NS for row in rows] for mean in PARTS.values()]
    wanted = [part for part in wanted if any(part)]
    if shares:
        wholes = [sum(parts) for parts in zip(*wanted, strict=True)]
        wanted = [[own / whole for own, whole in zip(part, wholes, strict=True)] for part in wanted]
    assert widths(axes_of(panel)) == [pytest.approx(part) for part in wanted]
    means = [one["mean_ns"] for one in panel.data]
    assert means == pytest.approx([row.mean_ns("trajectory") for row in rows])


@pytest.mark.parametrize(("place", "measure"), [(0, "trajectory"), (1, "amortized_per_action")])
def test_lines_over_length_are_the_medians(
    material: Material, found: dict[str, Figure], place: int, measure: str
) -> None:
    axes = axes_of(found["length"].panels[place])
    lines = {tuple(zip(xs(line), ys(line), strict=True)) for line in axes.lines if line.get_marker() in MARKERS}
    wanted = []
    kinds = sorted(in_order(material), key=lambda row: (row.own_label, row.identity.mode))
    for _, group in groupby(kinds, lambda row: (row.own_label, row.identity.mode)):
        points = [(float(row.length.mean), row.summary(measure).p50.value * NS) for row in group]  # type: ignore[union-attr]
        wanted.append(points)
    assert sorted(map(list, lines)) == [pytest.approx(points) for points in sorted(wanted)]


def test_break_even_lines_are_fixed_and_per_action(material: Material, found: dict[str, Figure]) -> None:
    by_mode = {panel.title.split()[-1]: panel for panel in found["break-even"].panels}
    assert set(by_mode) == {"exec", "session"}
    for mode, panel in by_mode.items():
        long = [row for row in material.rows if row.identity.mode == mode and row.identity.actions == 50]
        lines = [material.projected(row).evidence.line for row in long]  # type: ignore[union-attr]
        slopes = [line for line in axes_of(panel).lines if xs(line)[1] > xs(line)[0]]
        ends = [(ys(line)[0], (ys(line)[1] - ys(line)[0]) / xs(line)[1]) for line in slopes]
        wanted = [(line.fixed_s, line.per_action_s) for line in lines]  # type: ignore[union-attr]
        assert sorted(ends) == [pytest.approx(pair) for pair in sorted(wanted)]


def test_worker_hours_are_those_of_the_projection(material: Material, found: dict[str, Figure]) -> None:
    (panel,) = found["worker-hours"].panels
    axes = axes_of(panel)
    assert [xs(line)[-1] for line in axes.lines] == [MILLION] * 4
    hours = [material.projected(row).worker_hours for row in in_order(material) if row.identity.actions == 50]  # type: ignore[union-attr]
    assert [ys(line)[-1] for line in axes.lines] == pytest.approx([one.value for one in hours])  # type: ignore[union-attr]
    for band, one in zip(axes.collections, hours, strict=True):
        vertices = [float(y) for x, y in band.get_paths()[0].vertices if x == MILLION]
        assert (min(vertices), max(vertices)) == pytest.approx((one.low, one.high))  # type: ignore[union-attr]


def test_the_tax_is_that_of_the_table_by_cause(material: Material, found: dict[str, Figure]) -> None:
    (panel,) = found["tax"].panels
    drawn_sums = [sum(parts) for parts in zip(*widths(axes_of(panel)), strict=True)]
    assert drawn_sums == pytest.approx([row.tax.total.value * NS for row in in_order(material)])  # type: ignore[union-attr]


def test_failures_are_the_rates_with_wilson_s_interval(material: Material, found: dict[str, Figure]) -> None:
    (panel,) = found["failures"].panels
    axes = axes_of(panel)
    rates = [row.failures for row in in_order(material)]
    assert [xs(line)[0] for line in marked(axes)] == pytest.approx([one.value for one in rates])
    spans = [xs(line) for line in axes.lines if line.get_linestyle() == "-"]
    assert spans == [pytest.approx([one.low, one.high]) for one in rates]
    assert any("action:" in error for one in panel.data for error in one["errors"])
    table = failures.section(material.rows)
    assert sum(int(line[3]) for line in table.rows) == sum(row.failed for row in material.rows)


def test_runs_are_their_own_means(material: Material, found: dict[str, Figure]) -> None:
    (panel,) = found["runs"].panels
    dots = [sorted(xs(line)) for line in marked(axes_of(panel))]
    wanted = []
    for row in in_order(material):
        means = [
            sum(own) / len(own)
            for run in sorted({trial.run for trial in row.good})
            if (own := [trial.measures.trajectory_ns * NS for trial in row.good if trial.run == run])
        ]
        wanted.append(sorted(means))
    assert dots == [pytest.approx(means) for means in wanted]


def test_health_is_told_in_slices_none_left_out(material: Material, found: dict[str, Figure]) -> None:
    lag = found["health"].panels[0]
    lags = [int(row[4]) for row in table_rows(material.paths[:1], "health")]  # type: ignore[arg-type]
    assert sum(one["seconds"] for one in lag.data) == len(lags)
    assert max(one["worst_lag_p99_ns"] for one in lag.data) == max(lags)
    line = axes_of(lag).lines[0]
    assert ys(line) == pytest.approx([max(one["median_lag_p99_ns"] * NS, NS) for one in lag.data])
    worst = [max(one["worst_lag_p99_ns"] * NS, NS) for one in lag.data]
    assert max(y for _, y in bands(axes_of(lag))[0]) == pytest.approx(max(worst))
    cpu = found["health"].panels[1]
    permilles = [int(row[6]) for row in table_rows(material.paths[:1], "health")]  # type: ignore[arg-type]
    assert sum(one["seconds"] for one in cpu.data) == len(permilles)
    assert max(one["worst_cpu_permille"] for one in cpu.data) == max(permilles)
    assert ys(axes_of(cpu).lines[0]) == pytest.approx([one["median_cpu_permille"] / 1000 for one in cpu.data])


def bands(axes: Axes) -> list[list[tuple[float, float]]]:
    """The outlines of what is filled."""
    return [[(float(x), float(y)) for x, y in band.get_paths()[0].vertices] for band in axes.collections]


def test_published_hours_stand_apart_where_the_projection_has_them(material: Material) -> None:
    published = read_published(Path("scenarios/published/essay.toml"))
    own = Material(material.rows, material.sources, material.paths, 0, published=[published])
    (panel,) = [one for figure in figures(own) if figure.name == "worker-hours" for one in figure.panels if one.apart]
    assert panel.apart == "PUBLISHED"
    wanted = [
        row.worker_hours.value
        for row in project([published], Demand(trajectories=MILLION, workers=1))
        if row.worker_hours
    ]
    assert [x for line in axes_of(panel).lines if line.get_marker() == "D" for x in xs(line)] == pytest.approx(wanted)


def test_every_panel_says_n_in_its_data_and_flags_in_its_notes(found: dict[str, Figure]) -> None:
    for name, figure in found.items():
        if name != "health":
            assert all({"n", "flags"} <= one.keys() for panel in figure.panels for one in panel.data)
        assert all(panel.about for panel in figure.panels)


def test_the_same_numbers_give_the_same_picture(found: dict[str, Figure]) -> None:
    panel = found["latency"].panels[0]
    assert inline_svg(panel) == inline_svg(panel)
    assert svg_file(panel) == svg_file(panel)
    assert png_file(panel) == png_file(panel)
    assert png_file(panel).startswith(b"\x89PNG")


def test_a_picture_has_a_name_a_description_text_and_the_page_s_colours_only(found: dict[str, Figure]) -> None:
    svg = inline_svg(found["tax"].panels[0])
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
    asked = Demand(trajectories=512, workers=16, **({"batch": 64, "gpus": 8, "gpu_usd_hour": 2.0} if steps else {}))
    providers = [load_provider("daytona", read)] * steps
    own = Material(rows, sources, paths, 0, places=[PlaceAsked("", asked, None)], providers=providers)
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
