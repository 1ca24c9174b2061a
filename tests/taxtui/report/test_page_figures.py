"""What a figure draws is what the tables say."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from costmodel import TrainingRun
from costmodel.analysis.project import SubstrateRun
from costmodel.providers.provider import load_provider
from taxtui.report.cells import TableCell
from taxtui.report.measured.failures import errors
from taxtui.report.measured.rows import PARTS, MeasuredRow, rows_of
from taxtui.report.measured.samples import column, read_samples
from taxtui.report.page.drawing import drawn, inline_svg
from taxtui.report.page.figure import Figure, Panel
from taxtui.report.page.figures import attribution, figures
from taxtui.report.page.material import Material
from taxtui.report.page.palette import OTHERS, RULE, SHADES, SUBSTRATES, SURFACE
from taxtui.report.page.palette import colours as colours_of
from taxtui.report.page.scales import amounts, durations, limits
from taxtui.tui import colours
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
    return drawn(panel).figure.axes[0]


def xs(line: Line2D) -> list[float]:
    return [float(x) for x in line.get_xdata()]  # type: ignore[union-attr]


def ys(line: Line2D) -> list[float]:
    return [float(y) for y in line.get_ydata()]  # type: ignore[union-attr]


def in_order(material: Material) -> list[MeasuredRow]:
    """As a panel has them."""
    (group,) = material.panels
    return group.rows


def widths(axes: Axes) -> list[list[float]]:
    return [[float(bar.get_width()) for bar in container] for container in axes.containers]  # type: ignore[attr-defined]


def test_every_figure_of_the_paper_is_there(found: dict[str, Figure]) -> None:
    assert list(found) == ["causes", "cold-start", "length"]
    panels = [panel.name for figure in found.values() for panel in figure.panels]
    assert len(set(panels)) == len(panels)
    for panel in (panel for figure in found.values() for panel in figure.panels):
        assert panel.about
        assert all({"n", "flags"} <= point.keys() for point in panel.data)


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
    wanted = [[(row.part_ns(part) or 0.0) * NS for row in rows] for part in PARTS]
    assert widths(axes_of(panel)) == [pytest.approx(part) for part in wanted if any(part)]
    assert [one["mean_ns"] for one in panel.data] == pytest.approx([row.mean_ns("trajectory") for row in rows])


def test_lines_over_length_are_the_medians(material: Material, found: dict[str, Figure]) -> None:
    (panel,) = found["length"].panels
    lines = {tuple(zip(xs(line), ys(line), strict=True)) for line in axes_of(panel).lines}
    for label, mode in {(row.own_label, row.identity.mode) for row in material.rows}:
        group = [row for row in in_order(material) if (row.own_label, row.identity.mode) == (label, mode)]
        summaries = [(float(row.length.mean), row.summary("trajectory")) for row in group]
        medians = tuple(
            (length, summary.p50.value * NS) for length, summary in summaries if summary and summary.p50.value
        )
        assert medians in lines


def test_failures_are_counted_by_phase_and_class(material: Material) -> None:
    table = errors(material.rows)
    counts = [cell.value for line in table.rows if isinstance(cell := line[3], TableCell)]
    assert sum(filter(None, counts)) == sum(row.failed for row in material.rows) > 0


def test_the_same_numbers_give_the_same_picture(found: dict[str, Figure]) -> None:
    panel = found["causes"].panels[0]
    assert inline_svg(panel) == inline_svg(panel)


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
    providers = [load_provider("daytona")] * steps
    own = Material(rows, sources, paths, 0, places=[SubstrateRun("", asked, None)], providers=providers)
    (figure,) = attribution.figures(own)
    assert own.run is not None
    assert [panel.provenance for panel in figure.panels] == ["", "COMPOSED"][: 1 + steps]
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


READABLE = 4.5


def luminance(colour: str) -> float:
    """WCAG 2's, from 0 (black) to 1 (white)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(foreground: str, background: str) -> float:
    low, high = sorted((luminance(foreground), luminance(background)))
    return (high + 0.05) / (low + 0.05)


def test_every_colour_is_readable_on_its_background() -> None:
    grounds = {
        SURFACE: [role for role in SHADES if role not in (SURFACE, "panel", RULE)],
        "panel": ["ink", "muted", "link"],
    }
    for ground, roles in grounds.items():
        for role in roles:
            assert contrast(SHADES[role].light, SHADES[ground].light) >= READABLE, role
            assert contrast(SHADES[role].dark, SHADES[ground].dark) >= READABLE, role
    assert len({shade.light for shade in SHADES.values()}) == len(set(SHADES.values())), "a drawn colour has one shade"


def test_substrates_have_the_colours_of_the_screens_and_variants_other_colours() -> None:
    for name in SUBSTRATES:
        colour = colours.SUBSTRATES[name][1].lower()
        if contrast(colour, SHADES[SURFACE].dark) >= 5.5:
            assert SHADES[name].dark == colour
    roles = colours_of(["docker:runc", "docker:runsc", "local:bwrap", "modal", "e2b"])
    assert roles["docker:runc"] == "docker"
    assert roles["docker:runsc"] in OTHERS
    assert len(set(roles.values())) == 5


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.008, 0.6, ["10 ms", "50 ms", "100 ms", "500 ms"]),
        (3.0, 22.0, ["5 s", "10 s", "20 s"]),
        (0.2, 0.3, ["200 ms", "220 ms", "240 ms", "260 ms", "280 ms"]),
        (30.0, 1200.0, ["2 min", "20 min"]),
    ],
)
def test_a_logarithmic_axis_of_times_has_a_few_round_ticks(low: float, high: float, words: list[str]) -> None:
    assert [tick.label for tick in durations(low, high, log=True)] == words


@settings(max_examples=60)
@given(low=st.floats(1e-9, 1e15), factor=st.floats(1.001, 1e12))
def test_ticks_are_few_and_between_the_ends(low: float, factor: float) -> None:
    high = low * factor
    assert [tick.label for tick in amounts(40, "$")] == ["$0", "$10", "$20", "$30", "$40"]
    for ticks, start in ((durations(low, high, log=True), low), (amounts(high), 0.0)):
        assert len(ticks) <= 7
        assert all(start * (1 - 1e-6) <= tick.at <= high * (1 + 1e-6) for tick in ticks)
        assert [tick.at for tick in ticks] == sorted({tick.at for tick in ticks})


@settings(max_examples=60)
@given(values=st.lists(st.just(0.0) | st.floats(1e-12, 1e18), min_size=1), log=st.booleans())
def test_limits_of_an_axis_contain_all_values(values: list[float], log: bool) -> None:
    low, high = limits(values, log=log)
    assert 0 <= low < high < math.inf
    assert all(low <= value <= high for value in values if value > 0 or not log)
    assert low > 0 or not log
