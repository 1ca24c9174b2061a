"""The README's picture: where the worker-hours of Docker and of local go, from recordings/run.msgpack.

``make screenshots`` writes it. Its numbers are those that COMMAND prints, and nobody draws it by hand.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from taxtui.report.palette import LOOKS
from taxtui.report.words import CAUSES

PICTURE: Final = Path("docs/screens/docker-against-local.svg")
COMMAND: Final = "taxtui project recordings/run.msgpack --trajectories 1000000 --workers 500 --format json"
TIER: Final = "T1"
ACTIONS: Final = 50
ORDER: Final = (("docker", "exec"), ("local", "exec"), ("docker", "session"), ("local", "session"))

_ROW, _TOP, _LEFT, _WIDTH, _BAR = 46, 66, 190, 760, 430


def rows() -> list[dict[str, Any]]:
    """The rows of the picture, as the command prints them."""
    command = [sys.executable, "-m", *COMMAND.split()]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    found = {(row["substrate"], row["mode"]): row for row in told if (row["tier"], row["actions"]) == (TIER, ACTIONS)}
    return [found[key] for key in ORDER]


def svg(shown: Sequence[dict[str, Any]]) -> str:
    """Stacked bars, to scale, on a ground of their own: readable on light and on dark pages."""
    most = max(row["worker_hours"]["value"] for row in shown)
    height = _TOP + _ROW * len(shown) + 44
    title = f"Worker-hours of 1,000,000 trajectories of {ACTIONS} actions ({TIER})"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" role="img">',
        f"<title>{title}</title>",
        f'<rect width="{_WIDTH}" height="{height}" rx="8" fill="#ffffff" stroke="#d6d3d1"/>',
        f'<text x="20" y="32" font-size="17" font-weight="bold" fill="#1c1917">{title}</text>',
    ]
    causes = [cause for cause in CAUSES if any(row["by_cause"].get(cause) for row in shown)]
    for number, row in enumerate(shown):
        lines += _bar(row, causes, _TOP + _ROW * number, _BAR / most)
    lines += [*_legend(causes, height - 22), "</svg>"]
    return "\n".join(lines) + "\n"


def _bar(row: dict[str, Any], causes: Sequence[str], y: int, per_hour: float) -> Iterator[str]:
    hours, x = row["worker_hours"], float(_LEFT)
    name = f"{row['label']} · {row['mode']}"
    yield f'<text x="{_LEFT - 12}" y="{y + 19}" font-size="14" text-anchor="end" fill="#1c1917">{name}</text>'
    for cause in causes:
        width = row["by_cause"][cause] * per_hour
        yield f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="28" fill="{LOOKS[cause].shade.light}"/>'
        x += width
    told = f"{hours['value']:,.0f} h"
    span = f"{hours['low']:,.0f} … {hours['high']:,.0f}"
    yield f'<text x="{x + 8:.1f}" y="{y + 13}" font-size="14" font-weight="bold" fill="#1c1917">{told}</text>'
    yield f'<text x="{x + 8:.1f}" y="{y + 27}" font-size="11" fill="#57534e">{span}</text>'


def _legend(causes: Sequence[str], y: int) -> Iterator[str]:
    for number, cause in enumerate(causes):
        x = _LEFT + 140 * number
        yield f'<rect x="{x}" y="{y - 11}" width="12" height="12" fill="{LOOKS[cause].shade.light}"/>'
        yield f'<text x="{x + 18}" y="{y}" font-size="13" fill="#1c1917">{CAUSES[cause]}</text>'


if __name__ == "__main__":
    PICTURE.write_text(svg(rows()), encoding="utf-8")
