"""Where the Live screen's events come from: a run in a child process, or a recording that is played back.

Both follow a file and fold it into ``state``; there is never a message per event.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import msgspec

from taxtui.errors import RecordingError
from taxtui.events import Event, TrialEnded
from taxtui.recording import Follower
from taxtui.state import RunState, clean

SLICE_BYTES: Final = 128 << 10
BUDGET_S: Final = 0.03
"""How long one ``advance`` may fold: the loop stays responsive whatever the file grows by."""

NICENESS: Final = 10


class Feed(Protocol):
    """What the Live screen follows."""

    path: Path
    state: RunState
    live: bool  # a run that can be paused and cancelled, not a replay

    def advance(self) -> bool:
        """Fold what is new, for at most ``BUDGET_S``; True when more is waiting. Raises ``RecordingError``."""
        ...

    @property
    def over(self) -> bool:
        """Nothing more will come."""
        ...

    @property
    def size_bytes(self) -> int:
        """How much of the recording has been read."""
        ...

    def close(self) -> None:
        """Let go of the file and the child. Idempotent."""
        ...


class Launcher:
    """Starts children at normal priority although the interface is niced.

    On Linux a niceness belongs to a thread and passes to what the thread starts. So children are started by one
    thread that exists before the interface's own is niced.
    """

    def __init__(self) -> None:
        """Start the thread."""
        self._pool = ThreadPoolExecutor(1, "taxtui-launcher")
        self._pool.submit(os.getpid).result()
        self._niced = False

    def start(self, command: list[str], stderr: Any) -> Future[subprocess.Popen[bytes]]:
        """Start ``command`` in a session of its own: it gets an end of file, not a signal, when the terminal goes."""
        return self._pool.submit(
            subprocess.Popen,
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )

    def yield_cpu(self) -> None:
        """Nice the calling thread, once: what is measured comes before what is shown."""
        if not self._niced and sys.platform == "linux":
            os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
            self._niced = True


class RunFeed:
    """A run in a child process, ``taxtui run … --control stdin``, and the file that it appends to."""

    live = True

    def __init__(
        self, scenario: dict[str, Any] | str, path: Path, launcher: Launcher, options: Sequence[str] = ()
    ) -> None:
        """Start the run of a scenario, given as a mapping, or by name or path; its recording goes to ``path``."""
        self.path = path
        self.state = RunState()
        self.paused = False
        self.cancelled = False
        self._folder = tempfile.TemporaryDirectory(prefix="taxtui-")
        if isinstance(scenario, dict):
            plan = Path(self._folder.name) / "plan.json"
            plan.write_bytes(msgspec.json.encode(scenario))
            scenario = str(plan)
        self._stderr = (Path(self._folder.name) / "stderr").open("w+b")
        command = [sys.executable, "-m", "taxtui", "run", scenario, "-o", str(path)]
        command += ["--control", "stdin", "--progress", "none", *options]
        self._child = launcher.start(command, self._stderr).result()
        self._follower: Follower | None = None
        self._drained = False

    def advance(self) -> bool:
        """As ``Feed.advance``. The file appears a moment after the child does."""
        exited = self._child.poll() is not None  # asked before the file is read, so that nothing is missed
        if self._follower is None:
            if not self.path.exists():
                return False
            self._follower = Follower(self.path)
        deadline = time.monotonic() + BUDGET_S
        while told := self._follower.poll(SLICE_BYTES):
            for event in told:
                self.state.apply(event)
            if time.monotonic() > deadline:
                return True
        self._drained = exited
        return False

    @property
    def exit_code(self) -> int | None:
        """The child's; None while it runs."""
        return self._child.poll()

    @property
    def over(self) -> bool:
        """The child is gone and its file is read to the end, or never came to be."""
        return self.exit_code is not None and (self._drained or not self.path.exists())

    @property
    def size_bytes(self) -> int:
        """What has been read of the file."""
        return self._follower.offset if self._follower else 0

    @property
    def complaint(self) -> list[str]:
        """The last lines that the child wrote to stderr."""
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").splitlines()
        return [clean(line) for line in lines if line.strip()][-12:]

    def pause(self) -> None:
        """Launch no more trials, or launch again."""
        self.paused = not self.paused
        self._send("pause" if self.paused else "resume")

    def cancel(self) -> None:
        """Stop launching, abandon nothing, clean up."""
        self.cancelled = True
        self._send("cancel")

    def _send(self, op: Literal["pause", "resume", "cancel"]) -> None:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(msgspec.json.encode({"op": op}) + b"\n")
            self._child.stdin.flush()
        except OSError:
            pass  # it has just ended, which the next advance() shows

    def close(self) -> None:
        """End of file on the child's stdin means cancel and clean up; wait until it has."""
        if self._child.stdin and not self._child.stdin.closed:
            self._child.communicate()
        if self._follower:
            self._follower.close()
        if not self._stderr.closed:
            self._stderr.close()
            self._folder.cleanup()


class ReplayFeed:
    """A recording, played back by the instants in its events."""

    live = False
    SPEEDS: Final = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0, 0.0)  # 0 = as fast as it can be read

    def __init__(self, path: Path, speed: float = 1.0) -> None:
        """Open a recording. Raises ``RecordingError`` for what is none."""
        self.path = path
        self.state = RunState()
        self.speed = speed
        self.paused = False
        self.torn_bytes = 0
        self._follower = Follower(path)
        self._waiting: deque[Event] = deque()
        self._ended = False
        try:
            while self.state.started_unix_ns == 0 and (event := self._next()):
                self.state.apply(event)
        except RecordingError:
            self.close()
            raise
        self._until_unix_ns = float(self.state.now_unix_ns)
        self._ticked_s = time.monotonic()

    def advance(self) -> bool:
        """As ``Feed.advance``: everything up to where the replay's clock now stands."""
        now_s = time.monotonic()
        elapsed_s, self._ticked_s = now_s - self._ticked_s, now_s
        if self.paused:
            return False
        self._until_unix_ns += elapsed_s * 1e9 * self.speed
        deadline = now_s + BUDGET_S
        while event := self._next():
            if self.speed and self.state.instant_unix_ns(event) > self._until_unix_ns:
                self._waiting.appendleft(event)
                return False
            self.state.apply(event)
            if time.monotonic() > deadline:
                return True
        return False

    def step(self) -> None:
        """Stop the clock and go on to the end of the next trial."""
        self.paused = True
        while event := self._next():
            self.state.apply(event)
            if isinstance(event, TrialEnded):
                break
        self._until_unix_ns = float(self.state.now_unix_ns)

    def faster(self, steps: int) -> None:
        """The speed ``steps`` further up or down the ladder; its top is as fast as it can be read."""
        nearest = min(self.SPEEDS, key=lambda speed: abs(speed - self.speed))
        place = self.SPEEDS.index(nearest) + steps
        self.speed = self.SPEEDS[min(max(place, 0), len(self.SPEEDS) - 1)]
        self._until_unix_ns = float(self.state.now_unix_ns)

    def pause(self) -> None:
        """Stop the clock, or let it go on."""
        self.paused = not self.paused

    def _next(self) -> Event | None:
        if not self._waiting and not self._ended:
            self._waiting.extend(self._follower.poll(SLICE_BYTES))
            if not self._waiting:
                self._ended = True
                self.torn_bytes = self._follower.finish()
        return self._waiting.popleft() if self._waiting else None

    @property
    def over(self) -> bool:
        """Everything has been shown."""
        return self._ended and not self._waiting

    @property
    def size_bytes(self) -> int:
        """What has been read of the file."""
        return self._follower.offset

    def close(self) -> None:
        """Close the file."""
        self._follower.close()
