"""Completion over the number of actions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from taxtui.report.measured.rows import MeasuredRow
from taxtui.report.page.figure import Canvas, Figure, along_x, along_y, legend_height, legend_line
from taxtui.report.page.palette import light, style
from taxtui.report.page.panels import PanelRows, curves, panels_of
from taxtui.report.page.scales import NS, Tick, durations, limits

COMPLETION: Final = "trajectory"


def figure(all_rows: Sequence[MeasuredRow], colours: dict[str, str]) -> Figure:
    """Return a panel for each group of rows with several lengths; ``colours``: label → role of its colour."""
    groups, notes = panels_of([row for row in all_rows if row.length.mean and row.summary(COMPLETION)])
    groups = [group for group in groups if len({row.length for row in group.rows}) > 1]
    panels = curves("length", groups, COMPLETION, 220, partial(_draw, colours=colours))
    text = (
        "Median completion with its 95 % interval; solid: exec, dashed: session. Both axes are logarithmic. A longer "
        "trajectory spreads its start over more actions."
    )
    return Figure("length", "Completion by length", panels, [text, *notes])


def _draw(canvas: Canvas, group: PanelRows, colours: dict[str, str]) -> None:
    axes = canvas.axes(left_px=48, bottom_px=24 + legend_height(len(group.kinds), 1), top_px=10)
    medians = {row: summary.p50 for row in group.rows if (summary := row.summary(COMPLETION))}
    lengths = sorted({float(row.length.mean) for row in medians})
    low, high = limits([ns * NS for median in medians.values() for ns in median[:3] if ns], log=True)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(*limits(lengths, log=True))
    axes.set_ylim(low, high)
    along_x(axes, [Tick(length, f"{length:g} actions") for length in lengths])
    along_y(axes, durations(low, high, log=True))
    for label, mode in group.kinds:
        colour = light(colours[label])
        points = [row for row in medians if (row.own_label, row.identity.mode) == (label, mode)]
        x, y = [float(row.length.mean) for row in points], [(medians[row].value or 0) * NS for row in points]
        axes.plot(x, y, color=colour, linestyle=style(mode), linewidth=1.2)
        for length, median in zip(x, map(medians.__getitem__, points), strict=True):
            if median.low is not None and median.high is not None:
                axes.plot([length] * 2, [median.low * NS, median.high * NS], color=colour, linewidth=1)
    canvas.legend([(name, legend_line(colours[label], mode)) for (label, mode), name in group.kinds.items()], 1)
