"""The errors of taxtui, with their exit codes.

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
