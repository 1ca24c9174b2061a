"""The states of sandboxes, from Daytona's event socket or from polling within a budget of requests.

Each state carries its resolution: 0 for an event, the time since the last look for a poll. Looks are spread over all
pending sandboxes and never exceed ``LOOKS_PER_S``: an account may make 10,000 requests a minute, and forty sandboxes
polled every 0.1 s would make 24,000.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import socketio  # type: ignore[import-untyped]
from socketio.exceptions import SocketIOError  # type: ignore[import-untyped]

from taxtui.sandboxes.kit.retry import LookupThrottle, Retry
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.daytona.client import REQUEST_S, Clients, ask
from taxtui.substrates.daytona.failure import GONE, DaytonaRefused

LOOKS_PER_S: Final = 20.0
FAST_LOOK_S: Final = 0.1
SAFETY_LOOK_S: Final = 1.0
"""How often we look although the event socket is connected: events can be lost."""
CONNECT_S: Final = 5.0
REMEMBERED: Final = 1000

STARTED: Final = "started"


class StateFollower(Protocol):
    """Receiver of the states of one sandbox. Called from the event loop; must not wait."""

    def changed(self, state: str, reason: str, at_ns: int, resolution_ns: int, late_ns: int = 0) -> None:
        """The sandbox is now in this state; ``destroyed`` also for an unknown sandbox.

        ``late_ns``: the delay of the look by throttling.
        """
        ...


class States:
    """Follows sandboxes by id."""

    def __init__(self, clients: Clients, *, events: bool) -> None:
        """Connected by ``open``."""
        self._clients = clients
        self._events = events
        self._followers: dict[str, StateFollower] = {}
        self._pending: dict[str, int] = {}  # id → when we last looked, until it has started
        self._early: OrderedDict[str, tuple[str, str, int]] = OrderedDict()  # events that overtook create's answer
        self._socket: Any = None
        self._looking: asyncio.Task[None] | None = None
        self._someone = asyncio.Event()
        self._refused_ns = 0  # when the looking was throttled, for as long as it pauses
        self._retry = Retry()
        self._quiet_until_ns = 0
        self._throttle = LookupThrottle()

    @property
    def by_events(self) -> bool:
        """Whether the event socket is connected now."""
        return self._socket is not None and bool(self._socket.connected)

    async def open(self) -> None:
        """Connect the event socket if possible, and begin to poll."""
        if self._events:
            await self._connect()
        self._looking = asyncio.get_running_loop().create_task(self._look_forever())

    async def close(self) -> None:
        """Stop."""
        if self._looking is not None:
            self._looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._looking
        if self._socket is not None:
            await self._socket.disconnect()

    def follow(self, sandbox_id: str, follower: StateFollower) -> None:
        """Report every state of this sandbox, also states from before this call."""
        self._followers[sandbox_id] = follower
        self._pending[sandbox_id] = time.monotonic_ns()
        if early := self._early.pop(sandbox_id, None):
            self._tell(sandbox_id, *early, 0)
        self._someone.set()

    def unfollow(self, sandbox_id: str) -> None:
        """Stop reporting."""
        self._followers.pop(sandbox_id, None)
        self._pending.pop(sandbox_id, None)

    def report_throttling(self, marks: Marks) -> None:
        """Report the throttling since the last report as a notice, to the first sandbox that asks."""
        self._throttle.report(marks)

    def _tell(self, sandbox_id: str, state: str, reason: str, at_ns: int, resolution_ns: int, late_ns: int = 0) -> None:
        if state == STARTED:
            self._pending.pop(sandbox_id, None)
        if follower := self._followers.get(sandbox_id):
            follower.changed(state, reason, at_ns, resolution_ns, late_ns)

    # ------------------------------------------------------------------------------------------------------- events

    async def _connect(self) -> None:
        self._socket = socketio.AsyncClient(reconnection=True, logger=False, engineio_logger=False)
        self._socket.on("sandbox.state.updated", self._heard)
        parts = urlsplit(self._clients.url)
        with contextlib.suppress(SocketIOError, TimeoutError, OSError):  # polling then
            async with asyncio.timeout(CONNECT_S):
                await self._socket.connect(
                    f"{parts.scheme}://{parts.netloc}?source=taxtui",
                    socketio_path=f"{parts.path.rstrip('/')}/socket.io/",
                    auth={"token": self._clients.key},
                    transports=["websocket"],
                )

    async def _heard(self, data: Any) -> None:
        now = time.monotonic_ns()
        sandbox = data.get("sandbox", data) if isinstance(data, dict) else None
        if not isinstance(sandbox, dict):
            return  # not an event as Daytona sends it: the sandbox is looked at in its turn
        state, name = sandbox.get("state") or data.get("newState"), sandbox.get("id")
        if not isinstance(state, str) or not isinstance(name, str):
            return
        reason = str(sandbox.get("errorReason") or "")
        if name in self._followers:
            self._tell(name, state, reason, now, 0)
            return
        self._early[name] = (state, reason, now)
        while len(self._early) > REMEMBERED:
            self._early.popitem(last=False)

    # ------------------------------------------------------------------------------------------------------ polling

    async def _look_forever(self) -> None:
        while True:
            if not self._pending:
                self._someone.clear()
                await self._someone.wait()
            began = time.monotonic()
            for sandbox_id in list(self._pending):
                await asyncio.sleep(max(0, self._quiet_until_ns - time.monotonic_ns()) / 1e9)
                looked = time.monotonic()
                await self.look(sandbox_id)
                await asyncio.sleep(max(0.0, 1 / LOOKS_PER_S - (time.monotonic() - looked)))
            round_s = SAFETY_LOOK_S if self.by_events else FAST_LOOK_S
            await asyncio.sleep(max(0.0, round_s - (time.monotonic() - began)))

    async def look(self, sandbox_id: str) -> None:
        """Look once, now."""
        began = time.monotonic_ns()
        try:
            seen = await ask(self._clients.sandboxes.get_sandbox(sandbox_id, _request_timeout=REQUEST_S))
        except DaytonaRefused as error:
            if error.status == 429:
                self._refused(began, error.retry_after_s)
            if error.status != 404:
                return  # looked at again in its turn
            state, reason = GONE, ""
        else:
            state, reason = (seen.state.value if seen.state else ""), seen.error_reason or ""
        now = time.monotonic_ns()
        last = self._pending.get(sandbox_id, began)
        if sandbox_id in self._pending:
            self._pending[sandbox_id] = now
        # A sandbox that was last polled before the pause has waited for its end.
        late_ns = now - self._refused_ns if last <= self._refused_ns else 0
        self._retry.reset()
        self._throttle.at_least(late_ns)
        self._tell(sandbox_id, state, reason, now, now - last, late_ns)

    def _refused(self, asked_ns: int, advice_s: float | None) -> None:
        """One pause for all requests, as long as Daytona says: the limit is the account's."""
        if not self._retry.refusals:
            self._refused_ns = asked_ns
        self._quiet_until_ns = time.monotonic_ns() + round(self._retry.pause_s(advice_s) * 1e9)
