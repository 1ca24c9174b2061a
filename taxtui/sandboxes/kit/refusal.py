"""A provider's refusal in the provider's terms, and the table from refusals to taxtui's errors.

An adapter's client raises a subclass of ``Refused``. The ``table`` has a row for each kind of answer with a special
meaning; the first matching row decides, else the caller's error type. A table has no I/O and no SDK: tests need only
plain data.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from typing import Any, ClassVar, NamedTuple, TypeVar

from taxtui.errors import CreateFailed, SubstrateError, Throttled
from taxtui.sandboxes.protocol import Availability, Marks


class Refused(Exception):
    """A provider refused a request; ``status`` 0 without an answer. Never leaves the substrate."""

    table: ClassVar[tuple[Meaning, ...]] = ()

    def __init__(self, status: int, reason: str, message: str, retry_after_s: float | None = None) -> None:
        """``reason``: the provider's code, or the kind of silence; ``message``: one line for people."""
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s

    @property
    def final(self) -> bool:
        """Asking again cannot help: wrong credentials, or no permission."""
        return self.status in (401, 403)

    def __str__(self) -> str:
        code = self.status or self.reason
        return f"{self.message} ({code})" if code else self.message

    def describe(self, doing: str) -> str:
        """The message of the resulting error, before any advice: the request and the refusal."""
        return f"{doing}: {self}"

    def as_error(self, otherwise: type[SubstrateError], doing: str) -> SubstrateError:
        """taxtui's error for this refusal: as the table says, else ``otherwise``."""
        for row in self.table:
            if row.when(self) and (otherwise is CreateFailed or not row.before_a_sandbox):
                if row.becomes is Throttled:
                    return Throttled(self.describe(doing), self.retry_after_s)
                return row.becomes(self.describe(doing), fix=row.fix)
        return otherwise(self.describe(doing))

    def unless_final(self, otherwise: type[SubstrateError], doing: str = "") -> SubstrateError:
        """``Throttled``, as for a conflict or a server's fault; ``otherwise`` for a final refusal."""
        text = self.describe(doing) if doing else str(self)
        return otherwise(text) if self.final else Throttled(text, self.retry_after_s)


async def check_opened(substrate: AbstractAsyncContextManager[Any], advice: str) -> Availability:
    """The answer of ``check`` by a substrate that is open for this call; ``advice`` is for a failed opening."""
    try:
        async with substrate as opened:
            answer: Availability = await opened.check()
            return answer
    except SubstrateError as error:
        return Availability.refused(error, advice)


class Meaning(NamedTuple):
    """A row of a provider's table: a condition on a refusal, and the resulting error."""

    becomes: type[SubstrateError]
    when: Callable[[Any], object]  # of the ``Refused``; any true value matches
    fix: str = ""  # unused for a ``Throttled``
    before_a_sandbox: bool = False  # only for a create: there the refusal means a wrong set-up, in use a plain failure


def is_named(error: BaseException, *names: str) -> bool:
    """Whether an exception's class has any of these names, for a classifier without an SDK."""
    return any(kind.__name__ in names for kind in type(error).__mro__)


def last_line(text: str | bytes) -> str:
    """The last non-blank line of a program's output, stripped; "" without one."""
    whole = text.decode(errors="replace") if isinstance(text, bytes) else text
    return next((line.strip() for line in reversed(whole.splitlines()) if line.strip()), "")


T = TypeVar("T")

connecting: ContextVar[Marks | None] = ContextVar("connecting", default=None)
"""The ``Marks`` of the current task's sandbox."""


def tell_cold(trace: T) -> T:
    """Have an ``aiohttp.TraceConfig`` report each new connection to ``connecting``; returns the same trace."""

    async def connected(*_: object) -> None:
        if marks := connecting.get():
            marks.cold()

    hooks: Any = trace
    hooks.on_connection_create_end.append(connected)
    return trace
