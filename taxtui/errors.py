"""Every error that taxtui raises on purpose.

::

    TaxtuiError                      exit 1   anything that ends a command with one line
    ├── UsageError                   exit 2   an option, a name or a combination that cannot work
    │   └── ScenarioError            exit 2   a scenario or tier file: what, where, how to fix
    ├── SubstrateError               exit 1   a provider's failure, never a command's own exit code
    │   ├── SubstrateUnavailable     exit 3   missing extra, no daemon, no permission, no image
    │   ├── CreateFailed                      the sandbox could not be made
    │   │   └── QuotaExceeded                 ... and never will be until a quota is raised
    │   ├── Throttled                         try again after ``retry_after_s``; becomes ``queued``
    │   ├── ReadyTimeout                      made, but no command answered in time
    │   ├── ExecFailed                        the command path failed (not: the command failed)
    │   │   └── ExecTimeout                   the command outlived its timeout and was killed
    │   ├── SandboxLost                       it existed and is gone: evicted, OOM-killed, reclaimed
    │   └── CleanupFailed                     it may still exist: say so loudly
    ├── RunCrashed                   exit 1   a bug, of taxtui or of an adapter, ended a run
    ├── RecordingError               exit 4   not a recording, damaged, or of a newer version
    ├── Regressed                    exit 5   ``taxtui compare --fail-above``: a metric is worse than its limit allows
    │                                         ``taxtui doctor --canary``: a step took longer than its limit
    ├── TooLittleData                exit 6   ``taxtui compare --fail-above``: inconclusive
    └── WriteFailed                  exit 1   the recording could not be written on: disk full, disk gone

An error says what went wrong and where, and apart from that, where it is known, how to fix it; together they are one
line. Neither may contain credentials, account ids, or host and user names: they may end up in a recording.
"""

from __future__ import annotations

from typing import ClassVar


class TaxtuiError(Exception):
    """Base of all; ``exit_code`` is what the command line exits with.

    ``problem`` is what went wrong, ``fix`` what helps against it, "" where that is not known; neither ends in a full
    stop. As text it is ``problem; fix``, which nobody has to take apart.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, problem: str = "", *, fix: str = "") -> None:
        """One line in all, whatever they quote; ``fix`` is a command, a setting or a piece of advice."""
        self.problem, self.fix = (" ".join(text.splitlines()) for text in (problem, fix))
        super().__init__(self.problem)

    def __str__(self) -> str:
        return f"{self.problem}; {self.fix}" if self.fix else self.problem


class UsageError(TaxtuiError, ValueError):
    """An option, a name or a combination of them that cannot work."""

    exit_code = 2


class ScenarioError(UsageError):
    """A scenario or tier file is wrong; the problem has file and line, the fix the nearest valid key."""


class SubstrateError(TaxtuiError):
    """A provider failed. Never raised for a command's own exit code."""


class SubstrateUnavailable(SubstrateError):
    """The substrate cannot be used at all; ``fix`` says how to change that."""

    exit_code = 3


class CreateFailed(SubstrateError):
    """The sandbox could not be created."""


class QuotaExceeded(CreateFailed):
    """The sandbox could not be created because a quota is used up; the message names the quota."""


class Throttled(SubstrateError):
    """The provider asked us to wait; ``retry_after_s`` is its advice, or None."""

    def __init__(self, problem: str, retry_after_s: float | None = None) -> None:
        super().__init__(problem)
        self.retry_after_s = retry_after_s


class ReadyTimeout(SubstrateError, TimeoutError):
    """The sandbox exists but no command answered in time."""


class ExecFailed(SubstrateError):
    """The command path failed; nothing is known of the command itself."""


class ExecTimeout(ExecFailed, TimeoutError):
    """The command outlived its timeout; all that it had started was killed."""


class SandboxLost(SubstrateError, ConnectionError):
    """The sandbox existed and is gone."""


class CleanupFailed(SubstrateError):
    """The sandbox may still exist."""


class RunCrashed(TaxtuiError):
    """A bug, of taxtui or of an adapter, ended a run. Its trials have cleaned up, and its watchdog looks again."""


class RecordingError(TaxtuiError, ValueError):
    """Not a recording, a damaged one, or one of a newer version; ``offset`` is the byte it begins at."""

    exit_code = 4

    def __init__(self, problem: str, offset: int | None = None, *, fix: str = "") -> None:
        super().__init__(problem, fix=fix)
        self.offset = offset


class Regressed(TaxtuiError):
    """A metric of ``taxtui compare --fail-above``, or a step of ``taxtui doctor --canary``, is beyond its limit."""

    exit_code = 5


class TooLittleData(TaxtuiError):
    """``taxtui compare --fail-above``: inconclusive."""

    exit_code = 6


class WriteFailed(TaxtuiError, OSError):
    """A recording could not be written on; what was written before is intact."""


def located(error: BaseException) -> str:
    """An error's class and the line of code that raised it, ``OverflowError (frames.py:45)``: fit for a recording."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = f" ({frame.tb_frame.f_code.co_filename.rpartition('/')[2]}:{frame.tb_lineno})" if frame else ""
    return type(error).__name__ + where
