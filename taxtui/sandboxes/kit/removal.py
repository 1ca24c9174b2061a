"""Remove a sandbox: request the end until the provider accepts, look until the sandbox is gone, up to a deadline."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
import weakref
from collections.abc import Awaitable, Callable, Sequence
from typing import Final
from weakref import WeakKeyDictionary

from taxtui.errors import CleanupFailed, SubstrateError, SubstrateUnavailable, Throttled
from taxtui.sandboxes.kit.retry import FIND_S, Retry, StatePoller
from taxtui.sandboxes.protocol import Found, Substrate

REMOVE_S: Final = 100.0
"""Time limit of a removal, throttling included: a little less than the runner's: the reason is then reported."""
SETTLING_S: Final = 60.0
"""Until then "not found" does not mean "gone": a provider may not know a new sandbox yet."""
INSIST_S: Final = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Pauses before requests to remove the result of a cancelled create; leaving the substrate waits for them."""
LOOK_S: Final = 1.0
LONGEST_LOOK_S: Final = 4.0
"""Between two looks: at first, and at most."""
_SLOWER: Final = 1.5


def settled(launched_s: float) -> bool:
    """Whether a provider must know a sandbox of this launch time (monotonic)."""
    return time.monotonic() - launched_s > SETTLING_S


async def remove(
    subject: str,
    ask: Callable[[], Awaitable[bool]],
    ended: Callable[[], Awaitable[bool | None]] | None = None,
    *,
    gone: asyncio.Event | None = None,
    look_s: float = LOOK_S,
    first_s: float | None = None,
    launched_s: float = -math.inf,
    more_s: float = 0.0,
    stuck: str = "the provider accepted the removal and did not complete it",
) -> None:
    """Request the end of ``subject`` until the provider accepts, then look until the sandbox is gone.

    ``ask`` returns False, and ``ended`` None, if the provider does not know the sandbox: gone, unless launched a moment
    ago. ``ended`` is left out if an accepted request means gone. After ``Throttled`` from either, the end is requested
    again, after a first pause of ``first_s``. Any other error is final.

    Args:
        gone: set by a watch, possibly before a look sees the end.
        look_s: between the first two looks; 0 if ``ended`` waits itself.
        launched_s: time of the launch, monotonic, if "not found" may come too early.
        more_s: time limit in addition to ``REMOVE_S``.
        stuck: the reason and the place to look at, if the end was accepted and does not come.

    Raises:
        CleanupFailed: refused, or not gone in time; the message begins with ``subject``.
    """
    notified, within_s = gone or asyncio.Event(), REMOVE_S + more_s
    accepted, trouble = False, "the provider did not accept the removal"
    retry = Retry(first_s=first_s)
    try:
        async with asyncio.timeout(within_s):
            while True:
                wait_s = look_s
                look_s = min(look_s * _SLOWER, LONGEST_LOOK_S)
                try:
                    over: bool | None
                    if accepted and ended is not None:
                        over = await ended()
                    else:
                        accepted = await ask()
                        over = ended is None if accepted else None
                        trouble = stuck if accepted else "the provider does not know the sandbox yet"
                    if over or (over is None and settled(launched_s)):
                        return
                    if not accepted:
                        wait_s = retry.pause_s()
                except Throttled as error:
                    accepted, trouble = False, f"the provider did not accept the removal: {error}"
                    wait_s = retry.pause_s(error.retry_after_s)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await notified.wait()
                        return
    except SubstrateError as error:
        raise CleanupFailed(f"{subject} may still exist: {error}") from error
    except TimeoutError:
        raise CleanupFailed(f"{subject} may still exist after {within_s:g} s: {trouble}") from None


def insist(ask: Callable[[], object], refusals: tuple[type[Exception], ...]) -> None:
    """Request the removal of a cancelled create's sandbox, possibly throttled or unknown to the provider; blocks.

    Suppresses ``refusals``: a remaining sandbox has a deadline, and labels for ``taxtui clean``.
    """
    for pause_s in INSIST_S:
        time.sleep(pause_s)
        with contextlib.suppress(*refusals):
            ask()
            return


_FINDERS: Final[WeakKeyDictionary[Substrate, StatePoller[Sequence[Found]]]] = WeakKeyDictionary()


async def find_together(substrate: Substrate, run_id: str) -> Sequence[Found]:
    """As ``Substrate.find``, for many failed creates at once: however many call, two lists are enough.

    With 200 creates refused for lack of capacity, a list for each would throttle the lookups of running sandboxes.
    """
    known = weakref.proxy(substrate)

    async def find(run_ids: list[str]) -> dict[str, Sequence[Found]]:
        try:
            async with asyncio.timeout(FIND_S):  # no caller's time limit ends the request of all
                return {run_id: await known.find(run_id) for run_id in run_ids}
        except (TimeoutError, Throttled) as error:
            raise SubstrateUnavailable(f"the list of sandboxes: {str(error) or 'no answer'}") from error

    finder = _FINDERS.setdefault(substrate, StatePoller(find, 0.0))
    return (await finder.next(run_id)).state or ()
