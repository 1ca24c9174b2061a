"""What each run said by itself: how much runs differ, where there are several."""

from __future__ import annotations

from functools import partial
from typing import Any

from taxtui.report.measured.rows import Row
from taxtui.report.numbers import duration
from taxtui.report.page.lines import MarkLine, lines_axes, lines_height
from taxtui.report.page.material import Material
from taxtui.report.page.palette import INK, light
from taxtui.report.page.panel import Figure, Panel
from taxtui.report.page.scales import NS, durations, limits
from taxtui.report.page.settings import Setting, identified, name_in
from taxtui.report.page.sheet import Sheet, along_x


def figures(material: Material) -> list[Figure]:
    """One panel per setting of which any row has two runs or more."""
    panels = [_panel(material, setting) for setting in material.settings if _rows(setting)]
    notes = material.notes(
        "A dot per run: its own mean completion. The line is the 95 % interval of the mean over all runs, which has "
        "how much runs differ in it: measured from three runs on, with fewer assumed. sd: that, relative to the mean.",
    )
    return [Figure("runs", "Runs and their spread", panels, notes)]


def _rows(setting: Setting) -> list[Row]:
    return [row for row in setting.rows if row.basis is not None and row.basis.runs > 1]


def _panel(material: Material, setting: Setting) -> Panel:
    rows = _rows(setting)
    data, lines = [], []
    for row in rows:
        summary, basis = row.summary("trajectory"), row.basis
        assert summary is not None
        assert basis is not None
        means = [part.value for part in summary.estimate.parts]
        value, low, high = summary.mean
        data.append({**identified(row), "mean_ns": value, "low_ns": low, "high_ns": high, "run_means_ns": means})
        kind = "measured" if basis.measured else "assumed"
        told = f"{duration(value).strip()}, {basis.runs} runs, sd {100 * basis.sd:.2g} % {kind}"
        lines.append(MarkLine(name_in(row, rows, material.letters(row)), told))
    about = "; ".join(f"{line.name}: {line.told}" for line in lines)
    draw = partial(_draw, lines=lines, data=data, roles=[material.look(row).role for row in rows])
    return Panel(f"runs-{setting.name}", setting.title, about, lines_height(len(rows), 0), draw, data, setting.apart)


def _draw(sheet: Sheet, lines: list[MarkLine], data: list[dict[str, Any]], roles: list[str]) -> None:
    axes = lines_axes(sheet, lines, foot=0)
    ends = [
        ns * NS for one in data for ns in (*one["run_means_ns"], one["mean_ns"], one["low_ns"], one["high_ns"]) if ns
    ]
    low, high = limits(ends, log=True)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    along_x(axes, durations(low, high, log=True))
    for number, (one, role) in enumerate(zip(data, roles, strict=True)):
        y = number + 0.1
        if one["low_ns"] and one["high_ns"]:
            axes.plot([one["low_ns"] * NS, one["high_ns"] * NS], [y + 0.16] * 2, color=light(INK), linewidth=1.2)
        means = [ns * NS for ns in one["run_means_ns"]]
        axes.plot(means, [y] * len(means), "o", color=light(role), markersize=4, alpha=0.8, linestyle="none")
        axes.plot([one["mean_ns"] * NS] * 2, [y - 0.14, y + 0.14], color=light(role), linewidth=1.6)
