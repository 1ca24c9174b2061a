"""What comes after a run: ``taxtui project`` on its recording, in a process of its own."""

from __future__ import annotations

import asyncio
import shlex
import sys
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.table import Table
from rich.text import Text

from taxtui.state import clean

TRAJECTORIES: Final = 1_000_000
WORKERS: Final = 500


def command(path: Path) -> str:
    """The command line that shows the same numbers."""
    return shlex.join(["taxtui", *_arguments(path)])


async def project(path: Path) -> Text | Table:
    """Worker-hours and wall-clock of every cell, or what the command complained about."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "taxtui", *_arguments(path), "--format", "json"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await child.communicate()
    try:
        return _table(path, msgspec.json.decode(out, type=list[dict[str, Any]]))
    except msgspec.DecodeError:
        lines = err.decode(errors="replace").strip().splitlines()
        return Text(f"{clean(lines[-1]) if lines else 'no projection'}\n\n$ {command(path)}")


def _arguments(path: Path) -> list[str]:
    return ["project", str(path), "--trajectories", str(TRAJECTORIES), "--workers", str(WORKERS)]


def _table(path: Path, rows: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, caption_justify="left", title_justify="left")
    table.title = f"{TRAJECTORIES:,} trajectories on {WORKERS:,} workers"
    for name in ("substrate", "cell", "worker-hours", "95 % interval", "wall-clock", ""):
        right = name in ("worker-hours", "wall-clock")
        table.add_column(name, justify="right" if right else "left", no_wrap=name != "")
    flags = [[clean(str(flag)) for flag in row.get("flags") or ()] for row in rows]
    shared = [flag for flag in flags[0] if all(flag in others for others in flags)] if flags else []
    for row, own in zip(rows, flags, strict=True):
        hours, wall = row.get("worker_hours") or {}, row.get("wall_clock_hours") or {}
        low, high = hours.get("low"), hours.get("high")
        table.add_row(
            clean(":".join(filter(None, (str(row.get("substrate", "?")), str(row.get("variant") or ""))))),
            clean(f"{row.get('tier')}×{row.get('actions')} {row.get('mode')}"),
            _hours(hours.get("value")),
            "–" if low is None or high is None else f"{_hours(low)} … {_hours(high)}",
            f"{_hours(wall.get('value'))} h",
            ", ".join(flag for flag in own if flag not in shared),
        )
    note = f"all rows: {', '.join(shared)}\n" if shared else ""
    table.caption = Text(f"\n{note}$ {command(path)}")
    return table


def _hours(value: object) -> str:
    if not isinstance(value, int | float):
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
