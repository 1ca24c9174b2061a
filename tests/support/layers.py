"""What each layer costs, from recordings/layers.msgpack: the table of docs/layers.md, and its picture.

``python -m tests.support.layers`` rewrites both. Their numbers are those that COMMAND prints.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from taxtui.report.numbers import duration

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs/layers.md"
PICTURE: Final = ROOT / "docs/screens/layers.svg"
SUBSTRATES: Final = ("local:bwrap", "docker:runc", "docker:runsc", "ssh")
"""The recording holds more: substrates of earlier versions, which nobody can measure anew."""
COMMAND: Final = " ".join(
    ("taxtui report recordings/layers.msgpack --format json", *(f"--substrate {label}" for label in SUBSTRATES))
)
_TABLE: Final = re.compile(r"^\| substrate \|.*?\n\n", re.DOTALL | re.MULTILINE)


class Column(NamedTuple):
    """One quantity of one workload."""

    name: str
    tier: str
    mode: str
    quantity: str


COLUMNS: Final = (
    Column("cold start", "T0", "exec", "cold_start_ns"),
    Column("dispatch, exec", "T0", "exec", "dispatch_ns"),
    Column("dispatch, session", "T0", "session", "dispatch_ns"),
    Column("T1 x 20, exec", "T1", "exec", "trajectory_ns"),
    Column("T2 x 10, exec", "T2", "exec", "trajectory_ns"),
)


class Cell(NamedTuple):
    """The median of a quantity, with its 95 % interval where there are trials enough."""

    p50_ns: float
    low_ns: float
    high_ns: float


class Layer(NamedTuple):
    """A substrate with a cell for each column, and by how much its runs differ: the least and the most of its rows."""

    label: str
    cells: tuple[Cell, ...]
    sds: tuple[float, float]


def layers() -> list[Layer]:
    """In the order of ``SUBSTRATES``."""
    command = [sys.executable, "-m", *COMMAND.split()]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout)
    found: dict[str, list[dict[str, Any]]] = {}
    for row in told:
        found.setdefault(row["answer"]["place"], []).append(row)
    return [_layer(label, found[label]) for label in SUBSTRATES]


def _layer(label: str, rows: Sequence[dict[str, Any]]) -> Layer:
    by_work = {(row["tier"], row["mode"]): row for row in rows}
    cells = []
    for column in COLUMNS:
        p50 = by_work[column.tier, column.mode][column.quantity]["p50"]
        cells.append(Cell(p50["value"], p50["low"], p50["high"]))
    sds = [row["runs"]["sd"] for row in rows]
    assert all(row["runs"]["measured"] for row in rows)
    return Layer(label, tuple(cells), (min(sds), max(sds)))


def table(found: Sequence[Layer]) -> str:
    """As Markdown."""
    head = ["substrate", *(column.name for column in COLUMNS), "runs differ by"]
    lines = [f"| {' | '.join(head)} |", "|---|" + "---|" * (len(head) - 1)]
    for layer in found:
        cells = [duration(*one).replace("\n", " (") + ")" for one in layer.cells]
        spread = " … ".join(f"{100 * sd:.0f} %" for sd in layer.sds)
        lines.append(f"| `{layer.label}` | {' | '.join(cells)} | {spread} |")
    return "\n".join(lines) + "\n\n"


_ROW, _TOP, _LEFT, _PANEL, _BAR = 34, 66, 118, 168, 96


def svg(found: Sequence[Layer]) -> str:
    """A panel for each column, its bars to scale; on a ground of their own, readable on light and on dark pages."""
    width, height = _LEFT + _PANEL * len(COLUMNS) + 12, _TOP + _ROW * len(found) + 12
    title = "What each layer costs: medians, with 95 % intervals"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" role="img">',
        f"<title>{title}</title>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff" stroke="#d6d3d1"/>',
        f'<text x="20" y="28" font-size="16" font-weight="bold" fill="#1c1917">{title}</text>',
    ]
    for number, layer in enumerate(found):
        y = _TOP + _ROW * number
        lines.append(
            f'<text x="{_LEFT - 10}" y="{y + 15}" font-size="13" text-anchor="end" fill="#1c1917">{layer.label}</text>'
        )
    for number, column in enumerate(COLUMNS):
        lines += _panel(column, [layer.cells[number] for layer in found], _LEFT + _PANEL * number)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _panel(column: Column, cells: Sequence[Cell], x: int) -> Iterator[str]:
    yield f'<text x="{x}" y="54" font-size="12" fill="#57534e">{column.name}</text>'
    scale = _BAR / max(cell.high_ns for cell in cells)
    for number, cell in enumerate(cells):
        y = _TOP + _ROW * number
        end, low, high = (x + scale * ns for ns in cell)
        yield f'<rect x="{x}" y="{y}" width="{max(1.0, end - x):.1f}" height="20" fill="#0f766e"/>'
        yield f'<path d="M{low:.1f} {y + 10}H{high:.1f}" stroke="#1c1917" stroke-width="2"/>'
        yield f'<text x="{high + 6:.1f}" y="{y + 15}" font-size="12" fill="#1c1917">{duration(cell.p50_ns)}</text>'


def redrawn(found: Sequence[Layer]) -> str:
    """The page with the table of today."""
    return _TABLE.sub(lambda _: table(found), PAGE.read_text(encoding="utf-8"), count=1)


if __name__ == "__main__":
    today = layers()
    PAGE.write_text(redrawn(today), encoding="utf-8")
    PICTURE.write_text(svg(today), encoding="utf-8")
