"""The TUI's effect on a measurement: the same run from the TUI in tmux, and from ``taxtui run``, in turns.

    python -m tests.benchmarks.bench_ui [ROUNDS]
Both measure T1 on local. Prints p50, p95 and p99 of ``exec`` actions with and without the TUI, and their ratios.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from costmodel import Follower, read_recording

WITHOUT_DOCKER = {**os.environ, "DOCKER_HOST": "unix:///nonexistent"}
DEADLINE_S = 300


def durations(path: Path) -> list[int]:
    """Return the duration of each counted ``exec`` action, in ns."""
    cells = [cell for cell in read_recording(path).cells if cell.identity.mode == "exec"]
    return [ns for cell in cells for trial in cell.trials for ns in trial.durations_ns]


def headless(folder: Path, number: int) -> Path:
    """Follow the run's file, as ``watched`` does."""
    here = folder / f"off{number}"
    here.mkdir()
    command = [sys.executable, "-m", "taxtui", "run", "-o", str(here / "run.msgpack"), "--progress", "none"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=WITHOUT_DOCKER):
        return _finished(here)


def watched(folder: Path, number: int) -> Path:
    """Start the TUI's default measurement with ctrl+r, and wait for its end."""
    here = folder / f"on{number}"
    (here / "recordings").mkdir(parents=True)
    tmux = ["tmux", "-L", f"taxtui-bench-{os.getpid()}", "-f", "/dev/null"]
    start = f"cd {shlex.quote(str(here))} && exec {shlex.quote(sys.executable)} -m taxtui"
    subprocess.run(
        [*tmux, "new-session", "-d", "-s", "s", "-x", "120", "-y", "40", start], check=True, env=WITHOUT_DOCKER
    )
    try:
        time.sleep(4)  # first paint; the check of substrates ends when the run begins
        subprocess.run([*tmux, "send-keys", "-t", "s", "C-r"], check=True)
        return _finished(here / "recordings")
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


def _finished(folder: Path) -> Path:
    until = time.monotonic() + DEADLINE_S
    while not (paths := list(folder.glob("*.msgpack"))):
        _wait(until)
    with Follower(paths[0]) as follower:
        while not follower.complete:
            _wait(until)
            while follower.poll():
                pass
    return paths[0]


def _wait(until: float) -> None:
    if time.monotonic() > until:
        raise SystemExit("the run that was launched did not finish")
    time.sleep(1)


def main(rounds: int) -> None:
    on: list[int] = []
    off: list[int] = []
    with tempfile.TemporaryDirectory() as name:
        for number in range(rounds):
            off += durations(headless(Path(name), number))
            on += durations(watched(Path(name), number))
    print(
        f"{'':5} {'TUI on':>10} {'off':>10} {'ratio':>7}   local T1 exec, {len(on)} and {len(off)} actions, interleaved"
    )
    for share in (0.50, 0.95, 0.99):
        ms = [sorted(sample)[int(share * len(sample))] / 1e6 for sample in (on, off)]
        print(f"p{share * 100:<4.0f} {ms[0]:7.2f} ms {ms[1]:7.2f} ms {ms[0] / ms[1]:7.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
