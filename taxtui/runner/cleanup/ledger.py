"""The ledger: facts for a clean-up after a run has died, in the user's state directory."""

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
from taxtui.plan.spec import Plan, SubstrateRef

_START_FIELD: Final = 19
"""Position in /proc/PID/stat, after the program's name, of its start in ticks since boot."""


_TRIAL_OF_PART: Final = re.compile(r"(?:(?P<part>[0-9a-f]+)x)?(?P<trial>[0-9]+)(?:\.[a-z]+)?")
"""The end of a sandbox's name: ``17`` in the first part of a run, ``3f2ax17`` in a resumption.

A snapshot, fork or image of the trial has the same name and a suffix: ``17.fork``.
"""


def sandbox_name(run_id: str, part: str, trial: int) -> str:
    """Return the name of a trial's sandbox; adapters read the run id before the last hyphen."""
    return f"taxtui-{run_id}-{part}x{trial}" if part else f"taxtui-{run_id}-{trial}"


def part_of(sandbox: str) -> str:
    """Return a sandbox's part of the run; empty for the first part and for names of another form."""
    matched = _TRIAL_OF_PART.fullmatch(sandbox.rpartition("-")[2])
    return (matched["part"] or "") if matched else ""


class TrialShare(msgspec.Struct, frozen=True):
    """The trial numbers of one worker: every ``workers``-th."""

    worker: int  # from 0
    workers: int

    def holds(self, sandbox: str) -> bool:
        """Whether a sandbox belongs to this worker, by the trial number in the name."""
        matched = _TRIAL_OF_PART.fullmatch(sandbox.rpartition("-")[2])
        return matched is not None and int(matched["trial"]) % self.workers == self.worker

    def number(self, turn: int) -> int:
        return turn * self.workers + self.worker


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The facts for the clean-up of one run."""

    run_id: Annotated[str, msgspec.Meta(pattern=folders.RUN_ID_PATTERN)]
    substrates: tuple[SubstrateRef, ...]
    create_timeout_s: float  # a sandbox of a create under way may still appear for this time
    pid: int = 0  # of the runner, on this machine
    born: str = ""  # identifies the process, because ids are used again; "": unknown
    share: TrialShare | None = None  # None: everything of the run
    parts: tuple[str, ...] = ("",)  # of the run: empty the first, and a name for each resumption

    @property
    def path(self) -> Path:
        """Return the entry's file. Raises ``UsageError``: the run id is invalid."""
        if self.share is None:
            return _entry_of(self.run_id)
        return workers_folder(self.run_id) / f"{self.share.worker}.json"

    def covers(self, sandbox: str) -> bool:
        """Whether the entry's owner may remove a sandbox of the run, by name.

        A copy of the recording may be resumed while the run continues elsewhere; each removes its own sandboxes only.
        """
        return part_of(sandbox) in self.parts and (self.share is None or self.share.holds(sandbox))


def entry_of_this_process(
    plan: Plan, run_id: str, parts: tuple[str, ...], share: TrialShare | None = None
) -> LedgerEntry:
    """Return the entry of a run or a worker in this process."""
    return LedgerEntry(
        run_id=run_id,
        substrates=tuple({str(cell.substrate): cell.substrate for cell in plan.cells}.values()),
        create_timeout_s=plan.create_timeout_s,
        pid=os.getpid(),
        born=born(os.getpid()),
        share=share,
        parts=parts,
    )


def write(entry: LedgerEntry) -> Path:
    """Save an entry, readable by this user only: options may name accounts, clusters and endpoints.

    Raises:
        TaxtuiError: the folder cannot be written.
    """
    path = entry.path
    new = path.with_name(f"{path.name}.{os.getpid()}")  # an earlier entry stays whole until this one is
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(msgspec.json.encode(entry))
        new.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            new.unlink()
        raise TaxtuiError(
            f"cannot write {path}: {error.strerror}", fix="set XDG_STATE_HOME to a folder of yours"
        ) from error
    return path


def entries() -> list[LedgerEntry]:
    """Return every run to clean up, oldest first. Unreadable files are skipped."""
    readable = []
    for path in sorted(folders.ledger().rglob("*.json")):
        try:
            readable.append(read(path))
        except (OSError, msgspec.DecodeError):
            continue  # being written, or of another version: the run's watchdog still has the entry
    return readable


def live_runs() -> dict[str, int]:
    """Return the runs of this machine with a living runner, and the runner's process id."""
    return {entry.run_id: entry.pid for entry in entries() if entry.pid and _alive(entry)}


def recorded_parts(run_id: str) -> tuple[str, ...]:
    """Return the unswept parts of a run on this machine, for the sweep of a resumption."""
    try:
        return read(_entry_of(run_id)).parts
    except (OSError, msgspec.DecodeError):
        return ()


def unswept_runs(but: str) -> list[str]:
    """Return the unswept runs of this machine without a runner, other than ``but``."""
    alive = live_runs()
    return list(dict.fromkeys(entry.run_id for entry in entries() if entry.run_id not in (but, *alive)))


def born(pid: int) -> str:
    """Return boot and clock tick of a process's start, unique on this machine; "" where unknown."""
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
        pass  # a process of another user is alive
    return not entry.born or born(entry.pid) in ("", entry.born)


def read(path: Path) -> LedgerEntry:
    """Read one entry. Raises ``OSError`` or ``msgspec.DecodeError``."""
    return msgspec.json.decode(path.read_bytes(), type=LedgerEntry)


def _entry_of(run_id: str) -> Path:
    """Return the file of a whole run's entry. Raises ``UsageError`` as ``LedgerEntry.path``."""
    return folders.ledger() / f"{folders.require_run_id(run_id, 'ledger')}.json"


def workers_folder(run_id: str) -> Path:
    """Return the folder of the workers of a run on this machine: their entries.

    Raises ``UsageError`` for an unsafe run id: it may come from a recording, and the folder is removed as a whole.
    """
    return folders.ledger() / folders.require_run_id(run_id, "ledger")


def remove(run_id: str) -> None:
    """Forget a run without leftovers. Idempotent; an entry remains where deletion fails."""
    with contextlib.suppress(OSError):
        _entry_of(run_id).unlink()
    shutil.rmtree(workers_folder(run_id), ignore_errors=True)


def taken_over(entry: LedgerEntry) -> bool:
    """Whether another runner has taken over the entry's sandboxes."""
    try:
        return read(entry.path) != entry
    except OSError:  # swept by hand
        return False
    except msgspec.DecodeError:  # being written
        return True


def settled(entry: LedgerEntry) -> None:
    """Forget the entry's sandboxes."""
    if entry.share is None:
        remove(entry.run_id)
        return
    with contextlib.suppress(OSError):  # the folder has entries of other workers
        entry.path.unlink()
        entry.path.parent.rmdir()
