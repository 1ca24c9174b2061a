"""How long the interface takes to its first frame, beside a Textual app that shows one word; in turns, on terminals.

    python -m tests.benchmarks.bench_first_paint [ROUNDS]
From the start of the process until its terminal has the text. Prints both medians, their ratio and the limit.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import statistics
import struct
import sys
import tempfile
import termios
import time

LIMIT = 1.3
SIZE = (80, 24)
DEADLINE_S = 60
EMPTY = """
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self):
        yield Static("Substrates")
Empty().run()
"""
STARTS = {
    "empty app": (["-c", EMPTY], b"Substrates"),
    "taxtui": (["-m", "taxtui"], b"Substrates"),
    "  its whole form": (["-m", "taxtui"], b"Budget"),
}


def first_paint_s(arguments: list[str], text: bytes) -> float:
    """From the start of a Python process on a terminal of its own until ``text`` has arrived there."""
    began_s = time.monotonic()
    child, terminal = pty.fork()
    if child == 0:
        size = struct.pack("HHHH", SIZE[1], SIZE[0], 0, 0)
        fcntl.ioctl(0, termios.TIOCSWINSZ, size)
        os.execve(sys.executable, [sys.executable, *arguments], {**os.environ, "TERM": "xterm-256color"})
    shown = b""
    try:
        while text not in shown:
            left_s = began_s + DEADLINE_S - time.monotonic()
            ready = select.select([terminal], [], [], max(0, left_s))[0]
            try:
                more = os.read(terminal, 1 << 16) if ready else b""
            except OSError:  # Linux: the process has ended
                more = b""
            if not more:
                raise SystemExit(f"{arguments[:2]} never showed {text!r}; it showed: {shown[-2000:]!r}")
            shown += more
        return time.monotonic() - began_s
    finally:
        os.kill(child, signal.SIGKILL)
        os.close(terminal)
        os.waitpid(child, 0)


def main(rounds: int) -> None:
    taken_s: dict[str, list[float]] = {name: [] for name in STARTS}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = folder
        os.environ["PYTHONPYCACHEPREFIX"] = f"{folder}/compiled"  # both compiled, as installed packages are
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        for number in range(rounds + 1):
            for name, start in STARTS.items():
                seconds = first_paint_s(*start)
                if number:  # the first round compiles
                    taken_s[name].append(seconds)
    medians_s = {name: statistics.median(values) for name, values in taken_s.items()}
    for name, values in taken_s.items():
        spread = f"{min(values) * 1e3:.0f} to {max(values) * 1e3:.0f}"
        print(f"{name:16} {medians_s[name] * 1e3:6.0f} ms   ({spread}, {rounds} starts in turns)")
    print(f"ratio            {medians_s['taxtui'] / medians_s['empty app']:6.2f}      (limit {LIMIT})")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
