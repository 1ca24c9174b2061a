"""Bars by cause, as under the answer in a terminal: a panel for each workload."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final

from matplotlib.patches import Patch

from costmodel import Answer, ranking, warnings
from taxtui.report.bars import Bar, charts
from taxtui.report.page.figure import FONT, Canvas, Figure, Panel, along_x, legend_height, legible
from taxtui.report.page.palette import INK, MUTED, SURFACE, light
from taxtui.report.page.panels import CHOOSE, MOST_PANELS
from taxtui.report.page.scales import amounts, durations, limits
from taxtui.report.words import CAUSES
from taxtui.terminal_text import cut, width

ROW_PX: Final = 33
TEXT_COLUMNS: Final = 58
"""Columns of a name and an amount together."""
SHORTEST_NAME: Final = 12
BAR: Final = 0.36
"""Share of a row's height."""
LEGEND_COLUMNS: Final = 4


def figure(name: str, title: str, answer: Answer) -> Figure:
    """Return the bars of an answer, measured rows apart from others."""
    panels: list[Panel] = []
    drawn = charts(answer)
    for chart in drawn[:MOST_PANELS]:
        ordered = sorted(chart.bars, key=lambda bar: (bar.provenance != warnings.MEASURED, bar.provenance))
        for provenance, group in groupby(ordered, lambda bar: bar.provenance):
            apart = "" if provenance == warnings.MEASURED else provenance.upper().replace("_", "-")
            heading = f"{apart}, {chart.title}" if apart else chart.title
            is_time = answer.measure == ranking.HELD_PER_SUCCESS
            panels.append(_panel(f"{name}-{len(panels) + 1}", heading, list(group), apart, is_time=is_time))
    hidden = len(drawn) - MOST_PANELS
    return Figure(name, title, panels, [f"{hidden:,} more workloads are in the tables. {CHOOSE}"] if hidden > 0 else [])


def _panel(name: str, title: str, bars: Sequence[Bar], apart: str, *, is_time: bool) -> Panel:
    causes = [cause for cause in CAUSES if any(bar.parts.get(cause) for bar in bars)]
    longest = max(sum(bar.parts.values()) for bar in bars)
    ticks = durations(0, longest, log=False) if is_time else amounts(longest, "$" if bars[0].text[:1] == "$" else "")
    height = ROW_PX * len(bars) + 24 + legend_height(len(causes), LEGEND_COLUMNS)
    about = "; ".join(f"{bar.name} {bar.mode}: {bar.text}" for bar in bars)
    return Panel(name, title, about, height, partial(_draw, bars=bars, causes=causes, ticks=ticks), apart)


def _draw(canvas: Canvas, bars: Sequence[Bar], causes: Sequence[str], ticks: Any) -> None:
    """Draw bars below one another, each with its name and amount above, so that both fit a phone."""
    axes = canvas.axes(bottom_px=22 + legend_height(len(causes), LEGEND_COLUMNS), top_px=2)
    axes.set_ylim(len(bars) - 0.52, -0.62)
    for number, bar in enumerate(bars):
        place: dict[str, Any] = {"y": number - 0.22, "va": "bottom", "transform": axes.get_yaxis_transform()}
        amount = legible(", ".join(filter(None, (bar.text, bar.note))))
        name = cut(legible(f"{bar.name} {bar.mode}"), max(SHORTEST_NAME, TEXT_COLUMNS - width(amount)))
        axes.text(x=0, s=name, ha="left", color=light(INK), size=FONT, **place)
        axes.text(x=1, s=amount, ha="right", color=light(MUTED), size=FONT - 1, **place)
    y, starts = [number + 0.08 for number in range(len(bars))], [0.0] * len(bars)
    for cause in causes:
        sizes = [bar.parts.get(cause, 0.0) for bar in bars]
        axes.barh(y, sizes, left=starts, height=BAR, color=light(cause), edgecolor=light(SURFACE), linewidth=0.5)
        starts = [start + size for start, size in zip(starts, sizes, strict=True)]
    axes.set_yticks([])
    axes.set_xlim(0, limits(starts, log=False, room=0.02)[1])
    along_x(axes, ticks)
    canvas.legend([(CAUSES[cause], Patch(color=light(cause))) for cause in causes], LEGEND_COLUMNS)
