"""Kills random workers of runs while they measure: ``python -m tests.support.worker_kills [KILLS] [SEED]``.

After each run the recording must be whole: no trial twice, none missing, what was lost said to be interrupted and done
again, and neither a process nor a sandbox left.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

from costmodel.recording.events import INTERRUPTED, Actions, Clock, RunFinished, TrialEnded, TrialStarted
from costmodel.recording.reader import read_recording
from tests.support import waiting
from tests.support.command_line import Home, ended, events

TRIALS: Final = 40
WORKERS: Final = 3
WORKER: Final = "taxtui.runner.fanout.worker_program"


class Survived(NamedTuple):
    """What became of one run whose worker was killed."""

    lost: int  # trials that were interrupted
    again: int  # trials that were begun a second time


def workers(home: Home) -> list[int]:
    """The processes of a run's workers, their watchdogs and sandboxes aside."""
    found = []
    for pid in home.processes():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if WORKER.encode() in words:
            found.append(pid)
    return sorted(found)


def scenario(home: Home, substrate: str, actions: int = 5, think: str = "0s") -> Path:
    """A run that lasts long enough to be hit."""
    path = home.cwd / "killed.toml"
    path.write_text(
        f'create_timeout = "2s"\nworkers = {WORKERS}\n[[cells]]\nsubstrates = ["{substrate}"]\ntiers = ["T0"]\n'
        f'actions = [{actions}]\ntrials = {TRIALS}\nconcurrency = 6\nwarmup = 1\nmodes = ["exec"]\n'
        f'think = "{think}"\n'
    )
    return path


def one(home: Home, source: random.Random, substrate: str) -> Survived:
    """One run; a random worker of it is killed after a random number of its trials has begun."""
    output = home.cwd / "r.msgpack"
    process = home.start("run", str(scenario(home, substrate)), "-o", str(output), "--progress", "none")
    after = source.randrange(2, TRIALS - 10)

    def begun() -> bool:
        if process.poll() is not None:
            raise AssertionError(f"ended too early: {ended(process)}")
        return output.exists() and output.stat().st_size > 0 and _started(output) >= after

    waiting.block_until(begun, f"{after} trials")
    os.kill(source.choice(workers(home)), signal.SIGKILL)
    done = ended(process)
    assert done.code == 0, done
    survived = whole(output)
    waiting.block_until(lambda: home.processes() == {}, "every process is gone")
    home.assert_nothing_left()
    output.unlink()
    return survived


def _started(path: Path) -> int:
    return sum(isinstance(event, TrialStarted) for event in events(path))


def whole(path: Path, actions: int = 5) -> Survived:
    """What a recording says of a run of which a worker was lost; fails where something is missing or doubled."""
    got = events(path)
    starts = {event.trial: event for event in got if isinstance(event, TrialStarted)}
    ends = {event.trial: event for event in got if isinstance(event, TrialEnded)}
    assert len(starts) == sum(isinstance(event, TrialStarted) for event in got), "a trial starts twice"
    assert len(ends) == sum(isinstance(event, TrialEnded) for event in got), "a trial ends twice"
    assert starts.keys() == ends.keys(), "a trial without an end, or an end without a trial"
    rows: Counter[int] = Counter()
    for event in got:
        if isinstance(event, Actions):
            assert event.first == rows[event.trial], f"trial {event.trial}: commands are missing or doubled"
            rows[event.trial] += len(event.duration_ns)
    counted = [trial for trial, start in starts.items() if not start.warm_up]
    ok = [trial for trial in counted if ends[trial].outcome == "ok"]
    assert len(ok) == TRIALS, f"{len(ok)} of {TRIALS} trials"
    assert all(rows[trial] == actions for trial in ok)
    lost = [trial for trial in starts if ends[trial].outcome == INTERRUPTED]
    again = [trial for trial in counted if starts[trial].attempt == 1]
    assert len(again) == sum(not starts[trial].warm_up for trial in lost), "each lost trial is done once more"
    [finished] = [event for event in got if isinstance(event, RunFinished)]
    assert finished.counts == Counter(ends[trial].outcome for trial in counted)
    assert len({event.worker for event in got if isinstance(event, Clock)}) == WORKERS + 1
    recording = read_recording(path)
    assert (recording.complete, recording.skipped, recording.trials) == (True, 0, TRIALS)
    return Survived(len(lost), len(again))


def main(kills: int, seed: int) -> None:
    """So many runs; a line for each."""
    source = random.Random(seed)
    began, lost = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="taxtui-kills-") as folder:
        for number in range(kills):
            home = Home(Path(folder) / str(number))
            try:
                survived = one(home, source, "local:isolation=plain")
            finally:
                home.close()
            lost += survived.lost
            print(f"{number + 1} {survived.lost} interrupted, {survived.again} again", flush=True)
    print(f"{kills} kills in {time.monotonic() - began:.0f} s: {lost} trials interrupted, all done again; nothing left")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
