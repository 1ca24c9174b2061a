"""The errors of taxtui, with their exit codes.

::

    TaxtuiError                      exit 1   anything that ends a command with one line
    ├── UsageError                   exit 2   an option, a name or a combination that cannot work
    │   └── ScenarioError            exit 2   a scenario or tier file: what, where, how to fix
    ├── SubstrateError               exit 1   a failure of the provider, never the exit code of a command
    │   ├── SubstrateUnavailable     exit 3   missing extra, no daemon, no permission, no image
    │   ├── CreateFailed                      the sandbox could not be created
    │   │   └── QuotaExceeded                 a quota is used up: a retry does not help
    │   ├── Throttled                         retry after ``retry_after_s``; becomes ``queued``
    │   ├── ReadyTimeout                      created, but no command answered in time
    │   ├── ExecFailed                        the command path failed (not: the command failed)
    │   │   └── ExecTimeout                   the command outlived its timeout and was killed
    │   ├── SandboxLost                       the sandbox is gone: evicted, OOM-killed, reclaimed
    │   └── CleanupFailed                     the sandbox may still exist
    ├── RunCrashed                   exit 1   a bug, of taxtui or of an adapter, ended a run
    ├── RecordingError               exit 4   not a recording, damaged, or of a newer version
    ├── Regressed                    exit 5   ``taxtui compare --fail-above``: a metric is worse than its limit allows
    │                                         ``taxtui doctor --canary``: a step took longer than its limit
    ├── TooLittleData                exit 6   ``taxtui compare --fail-above``: inconclusive
    └── WriteFailed                  exit 1   a file could not be written: disk full, disk gone

An error has a problem (what, where) and, if known, a fix; both together are one line. Neither may contain credentials,
account ids, or host and user names, because a recording may contain the message.
"""

from __future__ import annotations

from typing import ClassVar


class TaxtuiError(Exception):
    """Base class. ``exit_code`` is the exit code of the command line.

    ``problem`` is the failure and ``fix`` its remedy, "" if unknown; neither ends in a full stop. The text of the error
    is ``problem; fix``.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, problem: str = "", *, fix: str = "") -> None:
        """Line breaks become spaces. ``fix``: a command, a setting or advice."""
        self.problem, self.fix = (" ".join(text.splitlines()) for text in (problem, fix))
        super().__init__(self.problem)

    def __str__(self) -> str:
        return f"{self.problem}; {self.fix}" if self.fix else self.problem


class UsageError(TaxtuiError, ValueError):
    """A wrong option, name or combination."""

    exit_code = 2


class ScenarioError(UsageError):
    """A wrong scenario or tier file; the problem has file and line, the fix has the nearest valid key."""


class SubstrateError(TaxtuiError):
    """A provider failed. The exit code of a command is no failure of a provider."""


class SubstrateUnavailable(SubstrateError):
    """The substrate cannot be used."""

    exit_code = 3


class CreateFailed(SubstrateError):
    """The sandbox could not be created."""


class QuotaExceeded(CreateFailed):
    """The sandbox could not be created because a quota is used up; the message names the quota."""


class Throttled(SubstrateError):
    """The provider refused a request for now; ``retry_after_s``: the provider's advice, or None."""

    def __init__(self, problem: str, retry_after_s: float | None = None) -> None:
        super().__init__(problem)
        self.retry_after_s = retry_after_s


class ReadyTimeout(SubstrateError, TimeoutError):
    """The sandbox exists but no command answered in time."""


class ExecFailed(SubstrateError):
    """The command path failed; the result of the command is unknown."""


class ExecTimeout(ExecFailed, TimeoutError):
    """The command outlived the timeout; all processes were killed."""


class SandboxLost(SubstrateError, ConnectionError):
    """The sandbox has disappeared."""


class CleanupFailed(SubstrateError):
    """The sandbox may still exist."""


class RunCrashed(TaxtuiError):
    """A bug of taxtui or of an adapter ended a run. The trials have cleaned up; the watchdog searches once more."""


class RecordingError(TaxtuiError, ValueError):
    """Not a recording, or of a newer version, or damaged; ``offset``: first byte of the damage."""

    exit_code = 4

    def __init__(self, problem: str, offset: int | None = None, *, fix: str = "") -> None:
        super().__init__(problem, fix=fix)
        self.offset = offset


class Regressed(TaxtuiError):
    """A metric of ``taxtui compare --fail-above``, or a step of ``taxtui doctor --canary``, is beyond the limit."""

    exit_code = 5


class TooLittleData(TaxtuiError):
    """``taxtui compare --fail-above``: inconclusive."""

    exit_code = 6


class WriteFailed(TaxtuiError, OSError):
    """A file could not be written; a recording keeps earlier frames."""


def located(error: BaseException) -> str:
    """Return an error's class and the line of code that raised the error: ``OverflowError (frames.py:45)``."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = f" ({frame.tb_frame.f_code.co_filename.rpartition('/')[2]}:{frame.tb_lineno})" if frame else ""
    return type(error).__name__ + where
