"""What a clean-up needs after a run has died: kept in the user's state directory, never in the recording."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path
from typing import Annotated, Final

import msgspec

from taxtui import folders
from taxtui.errors import TaxtuiError
from taxtui.plan.spec import SubstrateRef

_START_FIELD: Final = 19
"""Of /proc/PID/stat behind the program's name: when it started, in ticks since boot."""


_TRIAL_OF_PART: Final = re.compile(r"(?:(?P<part>[0-9a-f]+)x)?(?P<trial>[0-9]+)")
"""The end of a sandbox's name: ``17`` in a run that was never cut short, ``3f2ax17`` in a resumption of it."""


def sandbox_name(run_id: str, part: str, trial: int) -> str:
    """The name of a trial's sandbox; adapters read the run's id from everything before the last hyphen."""
    return f"taxtui-{run_id}-{part}x{trial}" if part else f"taxtui-{run_id}-{trial}"


def part_of(sandbox: str) -> str:
    """The part of its run that made a sandbox; empty for the first part and for a name of another form."""
    matched = _TRIAL_OF_PART.fullmatch(sandbox.rpartition("-")[2])
    return (matched["part"] or "") if matched else ""


class TrialShare(msgspec.Struct, frozen=True):
    """The part of a run's trials that one of its workers runs: their numbers are dealt out in turn."""

    worker: int  # from 0
    workers: int

    def holds(self, sandbox: str) -> bool:
        """Whether a sandbox, whose name ends in its trial's number, belongs to this worker."""
        matched = _TRIAL_OF_PART.fullmatch(sandbox.rpartition("-")[2])
        return matched is not None and int(matched["trial"]) % self.workers == self.worker

    def number(self, turn: int) -> int:
        """The trial that is its own in this turn."""
        return turn * self.workers + self.worker


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One run that has not yet been swept clean."""

    run_id: Annotated[str, msgspec.Meta(pattern=folders.RUN_ID_PATTERN)]
    substrates: tuple[SubstrateRef, ...]
    create_timeout_s: float  # how long a create that was under way may still appear
    pid: int = 0  # of the runner, on this machine
    born: str = ""  # which process of that id it is: ids are used again; "" where this machine does not tell
    share: TrialShare | None = None  # None: everything of the run
    parts: tuple[str, ...] = ("",)  # of the run: empty the first, and a name for each resumption

    @property
    def path(self) -> Path:
        """Where it is kept. Raises ``UsageError``: its run id names no file of the ledger."""
        if self.share is None:
            return _entry_of(self.run_id)
        return workers_folder(self.run_id) / f"{self.share.worker}.json"

    def covers(self, sandbox: str) -> bool:
        """Whether this entry's owner may remove a sandbox of the run, by its name.

        A copy of the recording may be resumed while the run continues elsewhere; each removes its own sandboxes only.
        """
        return part_of(sandbox) in self.parts and (self.share is None or self.share.holds(sandbox))


def write(entry: LedgerEntry) -> Path:
    """Save an entry, readable by this user only: options may name accounts, clusters and endpoints.

    Raises:
        TaxtuiError: the folder cannot be written.
    """
    path = entry.path
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(msgspec.json.encode(entry))
    except OSError as error:
        raise TaxtuiError(
            f"cannot write {path}: {error.strerror}", fix="set XDG_STATE_HOME to a folder of yours"
        ) from error
    return path


def entries() -> list[LedgerEntry]:
    """Every run that was not cleaned, oldest first. Unreadable files are passed over."""
    found = []
    for path in sorted(folders.ledger().rglob("*.json")):
        try:
            found.append(read(path))
        except (OSError, msgspec.DecodeError):
            continue  # being written, or of another version: its run's own watchdog still knows it
    return found


def live_runs() -> dict[str, int]:
    """The runs of this machine whose runner is alive, with its process id."""
    return {entry.run_id: entry.pid for entry in entries() if entry.pid and _alive(entry)}


def recorded_parts(run_id: str) -> tuple[str, ...]:
    """The parts of a run that this machine has not swept clean yet; a resumption has to sweep them too."""
    try:
        return read(_entry_of(run_id)).parts
    except (OSError, msgspec.DecodeError):
        return ()


def unswept_runs(but: str) -> list[str]:
    """The runs of this machine, other than ``but``, whose runner is gone and that nobody has swept clean yet."""
    alive = live_runs()
    return list(dict.fromkeys(entry.run_id for entry in entries() if entry.run_id not in (but, *alive)))


def born(pid: int) -> str:
    """What tells a process from a later one of the same id: the boot and the clock tick of its start; "" if untold."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return f"{boot}:{fields[_START_FIELD]}"


def _alive(entry: LedgerEntry) -> bool:
    try:
        os.kill(entry.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # somebody else's: as alive as any, if it is the same
    return not entry.born or born(entry.pid) in ("", entry.born)


def read(path: Path) -> LedgerEntry:
    """One entry. Raises ``OSError`` or ``msgspec.DecodeError``."""
    return msgspec.json.decode(path.read_bytes(), type=LedgerEntry)


def _entry_of(run_id: str) -> Path:
    """The file of a whole run's entry. Raises ``UsageError`` as ``LedgerEntry.path``."""
    return folders.ledger() / f"{folders.require_run_id(run_id, 'ledger')}.json"


def workers_folder(run_id: str) -> Path:
    """Where the workers of a run on this machine keep their entries and, until it is merged, what they measured.

    Raises ``UsageError``: the run id may come from a recording, and this folder is removed with all that is in it.
    """
    return folders.ledger() / folders.require_run_id(run_id, "ledger")


def worker_file(run_id: str, repetition: int, worker: int) -> Path:
    """Where a worker writes what it measures."""
    return workers_folder(run_id) / f"{repetition}-{worker}.msgpack"


def remove(run_id: str) -> None:
    """Forget a run: nothing of it is left anywhere. Idempotent; an entry that cannot be deleted a later sweep meets."""
    with contextlib.suppress(OSError):
        _entry_of(run_id).unlink()
    shutil.rmtree(workers_folder(run_id), ignore_errors=True)


def taken_over(entry: LedgerEntry) -> bool:
    """Whether another runner has begun to answer for what an entry covers."""
    try:
        return read(entry.path) != entry
    except OSError:  # swept by hand
        return False
    except msgspec.DecodeError:  # it is being written
        return True


def earlier(entry: LedgerEntry) -> bytes | None:
    """The file that an entry would replace, such as that of a run which is resumed; None where there is none."""
    try:
        return entry.path.read_bytes()
    except OSError:
        return None


def withdraw(entry: LedgerEntry, replaced: bytes | None) -> None:
    """Undo the writing of an entry that has covered nothing yet, and nothing else.

    An earlier entry of the run covers sandboxes that may still exist, and its workers' recordings are not merged yet.

    Args:
        entry: it is left alone where another runner has taken over.
        replaced: as ``earlier`` returned it before the entry was written.
    """
    if taken_over(entry):
        return
    with contextlib.suppress(OSError):
        if replaced is None:
            entry.path.unlink()
        elif entry.path.exists():  # else ``taxtui clean`` has found nothing left
            entry.path.write_bytes(replaced)


def settled(entry: LedgerEntry) -> None:
    """Forget what an entry covers."""
    if entry.share is None:
        remove(entry.run_id)
        return
    with contextlib.suppress(OSError):
        entry.path.unlink()
