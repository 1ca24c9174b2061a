"""Reads recordings to their last byte, in a thread of its own, while the interface looks at how far it is."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

import msgspec
from textual.message_pump import MessagePump

from taxtui.errors import RecordingError
from taxtui.live.catalogue import CatalogueEntry, shown
from taxtui.recording.frames import MAX_LENGTH, PREFIX
from taxtui.recording.reader import Follower
from taxtui.terminal_text import clean
from taxtui.tui.background import Newest

SLICE_BYTES: Final = PREFIX.size + MAX_LENGTH
"""Read at once: at least one frame, so that a slice without one is the end."""


class Verdict(msgspec.Struct, frozen=True):
    """What reading every byte has shown, in words."""

    state: Literal["complete", "incomplete", "damaged"]
    text: str
    advice: str = ""  # a command line that helps


class Verification:
    """One reading of one file. ``done_bytes`` may be looked at, and ``stop`` called, from another thread."""

    def __init__(self, entry: CatalogueEntry) -> None:
        """Read nothing yet."""
        self.path = entry.path
        self.stamp = entry.stamp
        self.size_bytes = entry.size_bytes
        self.done_bytes = 0
        self._stopped = False

    def stop(self) -> None:
        """Give up after the slice that is being read. Idempotent."""
        self._stopped = True

    @property
    def share(self) -> float:
        """How much of the file has been read, 0 to 1."""
        return min(1.0, self.done_bytes / self.size_bytes) if self.size_bytes else 0.0

    def run(self) -> Verdict | None:
        """Read everything; None when it was stopped."""
        try:
            return self._read()
        except RecordingError as error:
            words = ["taxtui", "recordings", "verify", shown(self.path), "--salvage", "OUT.msgpack"]
            advice = shlex.join(words) if error.offset else ""  # before the first frame there is nothing to keep
            return Verdict("damaged", clean(str(error).removeprefix(f"{self.path}: ")), advice)
        except OSError as error:  # a disk that fails, a network that goes
            return Verdict("damaged", f"cannot be read beyond byte {self.done_bytes}: {error.strerror}")

    def _read(self) -> Verdict | None:
        with Follower(self.path) as follower:
            events = 0
            while not self._stopped:
                told = follower.poll(SLICE_BYTES)
                if follower.offset == self.done_bytes:
                    return self._judge(follower, events, follower.finish())
                events += len(told)
                self.done_bytes = follower.offset
        return None

    def _judge(self, follower: Follower, events: int, torn_bytes: int) -> Verdict:
        facts = [f"{events:,} events in {follower.frames:,} frames"]
        if torn_bytes:
            facts.append(f"{torn_bytes:,} bytes of a torn frame at the end are ignored")
        if follower.skipped:
            facts.append(f"{follower.skipped:,} events of a newer version are ignored")
        if not follower.chained:
            facts.append("unchained: of an early version")
        state: Literal["complete", "incomplete"] = "complete" if follower.complete else "incomplete"
        missing = "trials are missing" if follower.ended else "the end of the run is missing"
        words = "complete and intact" if follower.complete else f"intact, but {missing}"
        return Verdict(state, f"{words}: {', '.join(facts)}")


class Verifier:
    """Verifies one recording at a time and remembers what came of it, for as long as the file stays as it was."""

    def __init__(self, told: Callable[[Verification, Verdict | None], None], *, on: MessagePump) -> None:
        """Start the thread; ``told`` is called as messages of ``on`` are, with None when the reading was stopped."""
        self.job: Verification | None = None
        self._told = told
        self._verdicts: dict[Path, tuple[tuple[int, int], Verdict]] = {}
        self._reader: Newest[Verification, Verdict | None] = Newest(
            Verification.run, self._heard, lambda job, why: self._heard(job, Verdict("damaged", why)), on=on
        )

    def begin(self, entry: CatalogueEntry) -> None:
        """Read this one; what was being read is given up."""
        self.stop()
        self.job = Verification(entry)
        self._reader.ask(self.job)

    def stop(self) -> None:
        """Give up what is being read. Idempotent."""
        if self.job:
            self.job.stop()
            self.job = None

    def reads(self, entry: CatalogueEntry) -> Verification | None:
        """The reading of this entry that goes on."""
        return self.job if self.job and self.job.path == entry.path else None

    def verdict(self, entry: CatalogueEntry) -> Verdict | None:
        """What reading this entry has shown, where its file has not changed since."""
        stamp, verdict = self._verdicts.get(entry.path, (None, None))
        return verdict if stamp == entry.stamp else None

    def close(self) -> None:
        """End the thread. Idempotent."""
        self.stop()
        self._reader.close()

    def _heard(self, job: Verification, verdict: Verdict | None) -> None:
        if job is self.job:
            self.job = None
        if verdict:
            self._verdicts[job.path] = (job.stamp, verdict)
        self._told(job, verdict)
