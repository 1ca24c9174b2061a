"""Whether the measuring process was fit, second by second."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from costmodel.recording.runner_health import CPU_LIMIT_PERMILLE, LAG_LIMIT_NS
from costmodel.recording.table import rows
from taxtui.report.numbers import duration
from taxtui.report.page.material import Material
from taxtui.report.page.palette import light
from taxtui.report.page.panel import Figure, Panel
from taxtui.report.page.scales import NS, Tick, durations, limits, shares
from taxtui.report.page.sheet import Sheet, along_x, along_y
from taxtui.terminal_text import clean, cut

SLICES: Final = 120
"""Of a recording's time: of each the worst second and the median one are drawn."""
MOST_RECORDINGS: Final = 4
_LATE, _LIMIT = "docker", "failed"


def figures(material: Material) -> list[Figure]:
    """Two panels per recording: how late, how busy."""
    panels: list[Panel] = []
    for number, path in enumerate(material.paths[:MOST_RECORDINGS], 1):
        seconds = _seconds(path)
        if len(seconds) > 1:
            panels += [_panel(path, number, seconds, kind) for kind in ("lag", "cpu")]
    notes = [
        f"Every second of the measuring process: by how much a sleep of 10 ms overslept (p99 of the second), and how "
        f"much of one core it took. Line: the median of a slice of the time, pale: its worst. Dashed: the limits, "
        f"{duration(LAG_LIMIT_NS)} and {CPU_LIMIT_PERMILLE / 10:.0f} %.",
    ]
    if len(material.paths) > MOST_RECORDINGS:
        notes.append(
            f"Not drawn: {len(material.paths) - MOST_RECORDINGS} more recordings; `taxtui recordings info` has them."
        )
    return [Figure("health", "The measuring process", panels, notes)]


def _seconds(path: Path) -> list[tuple[float, int, int]]:
    """Minutes since the first, lag p99 in ns, permille of a core."""
    found = [(row[2], row[4], row[6]) for row in rows([path], "health")]
    whole = [
        (at, lag, cpu)
        for at, lag, cpu in found
        if isinstance(at, int) and isinstance(lag, int) and isinstance(cpu, int)
    ]
    first = min((at for at, _, _ in whole), default=0)
    return sorted(((at - first) / 6e10, lag, cpu) for at, lag, cpu in whole)


def _panel(path: Path, number: int, seconds: Sequence[tuple[float, int, int]], kind: str) -> Panel:
    lag = kind == "lag"
    limit = LAG_LIMIT_NS if lag else CPU_LIMIT_PERMILLE
    values = [one[1] if lag else one[2] for one in seconds]
    beyond = sum(value > limit for value in values)
    data = _slices(path, [one[0] for one in seconds], values, "lag_p99_ns" if lag else "cpu_permille")
    what = "loop lag" if lag else "client CPU"
    title = f"{cut(clean(path.name), 40)}: {what}"
    about = f"{what} over {len(seconds):,} seconds; {beyond:,} of them ({beyond / len(seconds):.1%}) beyond its limit"
    draw = partial(_draw, data=data, lag=lag, about=about)
    return Panel(f"health-{number}-{kind}", title, about, 176, draw, data)


def _slices(path: Path, minutes: Sequence[float], values: Sequence[int], name: str) -> list[dict[str, Any]]:
    found = []
    size = -(-len(values) // SLICES)
    for start in range(0, len(values), size):
        own = sorted(values[start : start + size])
        place = {"recording": path.name, "minute": minutes[start], "seconds": len(own)}
        found.append({**place, f"median_{name}": own[(len(own) - 1) // 2], f"worst_{name}": own[-1]})
    return found


def _draw(sheet: Sheet, data: list[dict[str, Any]], lag: bool, about: str) -> None:
    axes = sheet.axes(left=48, bottom=38, top=22)
    name = "lag_p99_ns" if lag else "cpu_permille"
    factor = NS if lag else 1e-3
    limit = (LAG_LIMIT_NS if lag else CPU_LIMIT_PERMILLE) * factor
    middle = [max(one[f"median_{name}"] * factor, NS) for one in data]
    worst = [max(one[f"worst_{name}"] * factor, NS) for one in data]
    minutes = [one["minute"] for one in data]
    if lag:
        low, high = limits([*middle, *worst, limit], log=True)
        axes.set_yscale("log")
        along_y(axes, durations(low, high, log=True), about.partition("; ")[2])
    else:
        low, high = 0.0, max(1.0, *worst)
        along_y(axes, shares(), about.partition("; ")[2])
    axes.set_ylim(low, high)
    axes.set_xlim(0, (minutes[-1] or 1.0))
    step = next(step for step in (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 10**9) if minutes[-1] / step <= 6)
    along_x(axes, [Tick(step * number, f"{step * number}") for number in range(int(minutes[-1] / step) + 1)], "minutes")
    axes.fill_between(minutes, middle, worst, color=light(_LATE), alpha=0.25, linewidth=0)
    axes.plot(minutes, middle, color=light(_LATE), linewidth=1)
    axes.axhline(limit, color=light(_LIMIT), linewidth=1, linestyle=(0, (4, 2)))
