"""Curves in the terminal: worker-hours and wall-clock over trajectories, workers or actions."""

from __future__ import annotations

from collections.abc import Sequence

from costmodel.analysis.sensitivity import Axis, Curve
from costmodel.training.length import FIXED
from taxtui.terminal_text import clean

WIDTH, HEIGHT = 78, 20
MARKERS = ("dot", "braille", "x", "o", "+", "*", "sd", "hd")


def to_text(curves: Sequence[Curve], axis: Axis, *, color: bool) -> str:
    """Worker-hours over N, wall-clock over W, trajectory seconds over n; both axes logarithmic where they can be."""
    import plotext

    names = {"trajectories": "worker-hours", "workers": "wall-clock h", "actions": "trajectory s"}
    plotext.clear_figure()
    plotext.plot_size(WIDTH, HEIGHT)
    if not color:
        plotext.theme("clear")
    positive = True
    for number, curve in enumerate(curves):
        points = [(point.at, value) for point in curve.points if (value := _value(point, axis)) is not None]
        if not points:
            continue
        positive &= all(value > 0 for _, value in points)
        label = clean(f"{curve.label} {curve.identity.tier} {curve.identity.mode}").strip()
        if axis != "actions" and curve.identity.length == FIXED:
            label += f" {curve.identity.actions:,}"
        xs, ys = zip(*points, strict=True)
        plotext.plot(xs, ys, label=label, marker=MARKERS[number % len(MARKERS)])
    plotext.xscale("log")
    if positive:
        plotext.yscale("log")
    plotext.title(f"{names[axis]} over {axis}")
    plotext.xlabel(axis)
    return str(plotext.build()).rstrip("\n")


def _value(point: object, axis: Axis) -> float | None:
    field = {"trajectories": "worker_hours", "workers": "wall_clock_hours", "actions": "trajectory_s"}[axis]
    value: float | None = getattr(point, field)
    return value
