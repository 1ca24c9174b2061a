"""How often trials failed, where and of what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from taxtui.report.formats import Section
from taxtui.report.measured.rows import MeasuredRow
from taxtui.report.page.lines import MarkLine, lines_axes, lines_height
from taxtui.report.page.material import Material
from taxtui.report.page.palette import light
from taxtui.report.page.panel import Figure, Panel
from taxtui.report.page.scales import Tick
from taxtui.report.page.settings import Setting, identified, name_in
from taxtui.report.page.sheet import Sheet, along_x
from taxtui.terminal_text import clean, cut


def kinds(row: MeasuredRow) -> Counter[tuple[str, str]]:
    """Phase and class of error of a row's failures, with their counts."""
    return Counter((trial.failed_in or "?", trial.error or "?") for trial in row.cell.trials if not trial.ok)


def section(rows: Sequence[MeasuredRow]) -> Section:
    """Every kind of failure of every row, with its count; no lines where nothing failed."""
    lines = [
        [f"{row.label}\n{row.details}", clean(phase), clean(error), f"{count:,}", f"{len(row.cell.trials):,}"]
        for row in rows
        for (phase, error), count in kinds(row).most_common()
    ]
    head = ["sandbox\ntier actions mode", "phase\n", "error\n", "failed\n", "of trials\n"]
    return Section("Failures by phase and class", head, lines, [])


def figures(material: Material) -> list[Figure]:
    """One panel per setting in which anything failed."""
    panels = [_panel(material, setting) for setting in material.settings if any(row.failed for row in setting.rows)]
    notes = material.notes(
        "The share of trials that failed or timed out, with Wilson's 95 % interval; so also where none did.",
    )
    return [Figure("failures", "Failures", panels, notes)]


def _panel(material: Material, setting: Setting) -> Panel:
    rows = setting.rows
    data = [{**identified(row), "trials": len(row.cell.trials), **_rate(row), "errors": _errors(row)} for row in rows]
    lines = [MarkLine(name_in(row, rows, material.letters(row)), _told(row)) for row in rows]
    about = "; ".join(f"{line.name}: {line.told}" for line in lines)
    draw = partial(_draw, lines=lines, data=data, roles=[material.look(row).role for row in rows])
    name = f"failures-{setting.name}"
    return Panel(name, setting.title, about, lines_height(len(rows), 0), draw, data, setting.apart)


def _rate(row: MeasuredRow) -> dict[str, Any]:
    value, low, high = row.failures
    return {"failure_rate": value, "low": low, "high": high}


def _errors(row: MeasuredRow) -> list[str]:
    return [f"{clean(phase)}:{clean(error)}={count}" for (phase, error), count in kinds(row).most_common()]


def _told(row: MeasuredRow) -> str:
    share = f"{row.failed:,} of {len(row.cell.trials):,}"
    most = kinds(row).most_common(1)
    return f"{share}, {cut(clean(f'{most[0][0][1]} in {most[0][0][0]}'), 30)}" if most else share


def _draw(sheet: Sheet, lines: list[MarkLine], data: list[dict[str, Any]], roles: list[str]) -> None:
    axes = lines_axes(sheet, lines, foot=0)
    end = min(1.0, max(item["high"] or item["failure_rate"] for item in data) * 1.08)
    axes.set_xlim(0, end)
    step = next(step for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.25) if end / step <= 5.01)
    along_x(axes, [Tick(step * number, f"{100 * step * number:g} %") for number in range(int(end / step + 1e-9) + 1)])
    for number, (item, role) in enumerate(zip(data, roles, strict=True)):
        if item["low"] is not None and item["high"] is not None:
            axes.plot([item["low"], item["high"]], [number + 0.1] * 2, color=light(role), linewidth=1.2)
        axes.plot(item["failure_rate"], number + 0.1, "o", color=light(role), markersize=4.5)
