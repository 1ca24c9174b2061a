"""The states of sandboxes, from Daytona's event socket and from lookups within a budget of requests.

The resolution of an event is 0, the resolution of a lookup is the time since the previous lookup. All lookups of
``States`` never exceed ``LOOKS_PER_S``; removals look outside of this budget. An account may make 10,000 requests a
minute, and 40 sandboxes with a lookup every 0.1 s would make 24,000.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

import socketio  # type: ignore[import-untyped]
from socketio.exceptions import SocketIOError  # type: ignore[import-untyped]

from taxtui.sandboxes.kit.retry import LookupThrottle, Retry
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.daytona.client import REQUEST_S, Clients, ask
from taxtui.substrates.daytona.failure import GONE, DaytonaRefused

T = TypeVar("T")

LOOKS_PER_S: Final = 20.0
FAST_LOOK_S: Final = 0.1
SAFETY_LOOK_S: Final = 1.0
"""Between two lookups of a sandbox: without the event socket, and with the socket, because events can be lost."""
CONNECT_S: Final = 5.0
REMEMBERED: Final = 1000
"""Events of unknown sandboxes at most: events can overtake the answer to a create."""

STARTED: Final = "started"
_THROTTLED: Final = 429


class StateReport(NamedTuple):
    """A state of a sandbox, as seen by an event or a lookup."""

    state: str  # "destroyed" also for an unknown sandbox
    reason: str
    at_ns: int  # monotonic
    resolution_ns: int
    late_ns: int = 0  # delay of the lookup by throttling


Follower = Callable[[StateReport], None]
"""Receiver of the states of a sandbox, called from the event loop."""


class States:
    """Follows sandboxes by id."""

    def __init__(self, clients: Clients, *, events: bool) -> None:
        """``events``: use the event socket."""
        self.clients = clients
        self._events = events
        self._followers: dict[str, Follower] = {}
        self._watched: dict[str, int] = {}  # id → time of the last lookup
        self._any_watched = asyncio.Event()
        self._early: OrderedDict[str, StateReport] = OrderedDict()  # events of unknown sandboxes
        self._socket: Any = None
        self._polling: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self._next_lookup_ns = 0
        self._throttled_ns = 0  # time of the first throttled lookup of the last pause
        self._retry = Retry()
        self._throttle = LookupThrottle()

    @property
    def by_events(self) -> bool:
        """Whether the event socket is connected now."""
        return self._socket is not None and bool(self._socket.connected)

    async def open(self) -> None:
        """Connect the event socket if possible, and begin to poll."""
        if self._events:
            await self._connect()
        self._polling = asyncio.get_running_loop().create_task(self._poll())

    async def close(self) -> None:
        if self._polling is not None:
            self._polling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._polling
        if self._socket is not None:
            await self._socket.disconnect()

    def follow(self, sandbox_id: str, follower: Follower) -> None:
        """Report every state of this sandbox that an event or a lookup shows, also an event before this call."""
        self._followers[sandbox_id] = follower
        if early := self._early.pop(sandbox_id, None):
            follower(early)

    def unfollow(self, sandbox_id: str) -> None:
        self._followers.pop(sandbox_id, None)

    @contextlib.contextmanager
    def watched(self, sandbox_id: str) -> Iterator[None]:
        """During the block, look up the state of a followed sandbox again and again."""
        self._watched[sandbox_id] = time.monotonic_ns()
        self._any_watched.set()
        try:
            yield
        finally:
            self._watched.pop(sandbox_id, None)

    def report_throttling(self, marks: Marks) -> None:
        """Report the throttling since the last report as a notice, to the first sandbox that asks."""
        self._throttle.report(marks)

    # ------------------------------------------------------------------------------------------------------- events

    async def _connect(self) -> None:
        self._socket = socketio.AsyncClient(reconnection=True, logger=False, engineio_logger=False)
        self._socket.on("sandbox.state.updated", self._on_event)
        parts = urlsplit(self.clients.url)
        with contextlib.suppress(SocketIOError, TimeoutError, OSError):  # polling then
            async with asyncio.timeout(CONNECT_S):
                await self._socket.connect(
                    f"{parts.scheme}://{parts.netloc}?source=taxtui",
                    socketio_path=f"{parts.path.rstrip('/')}/socket.io/",
                    auth={"token": self.clients.key},
                    transports=["websocket"],
                )

    async def _on_event(self, data: Any) -> None:
        """Report the state in an event; ignore a payload of another form."""
        now_ns = time.monotonic_ns()
        sandbox = data.get("sandbox", data) if isinstance(data, dict) else None
        if not isinstance(sandbox, dict):
            return
        state, sandbox_id = sandbox.get("state") or data.get("newState"), sandbox.get("id")
        if not isinstance(state, str) or not isinstance(sandbox_id, str):
            return
        report = StateReport(state, str(sandbox.get("errorReason") or ""), now_ns, 0)
        if follower := self._followers.get(sandbox_id):
            follower(report)
            return
        self._early[sandbox_id] = report
        while len(self._early) > REMEMBERED:
            self._early.popitem(last=False)

    # ------------------------------------------------------------------------------------------------------ lookups

    async def _poll(self) -> None:
        while True:
            if not self._watched:
                self._any_watched.clear()
                await self._any_watched.wait()
            began_s = time.monotonic()
            for sandbox_id in list(self._watched):
                if sandbox_id in self._watched:
                    await self.look(sandbox_id)
            round_s = SAFETY_LOOK_S if self.by_events else FAST_LOOK_S
            await asyncio.sleep(max(0.0, round_s - (time.monotonic() - began_s)))

    async def look(self, sandbox_id: str) -> None:
        """Look up the state of a sandbox once, and report the state unless the lookup is refused."""
        began_ns = time.monotonic_ns()
        get = self.clients.sandboxes.get_sandbox
        try:
            answer = await self.lookup(lambda: get(sandbox_id, _request_timeout=REQUEST_S))
        except DaytonaRefused as error:
            if error.status != 404:
                return
            state, reason = GONE, ""
        else:
            state, reason = (answer.state.value if answer.state else ""), answer.error_reason or ""
        now_ns = time.monotonic_ns()
        last_ns = self._watched.get(sandbox_id, began_ns)
        if sandbox_id in self._watched:
            self._watched[sandbox_id] = now_ns
        # The state of a sandbox with a last lookup before the pause was delayed by the pause.
        late_ns = now_ns - self._throttled_ns if last_ns <= self._throttled_ns else 0
        self._throttle.at_least(late_ns)
        if follower := self._followers.get(sandbox_id):
            follower(StateReport(state, reason, now_ns, now_ns - last_ns, late_ns))

    async def lookup(self, request: Callable[[], Awaitable[T]]) -> T:
        """The answer to a request for a state, made within the budget. Raises ``DaytonaRefused``.

        After a throttled lookup all lookups pause, because the limit belongs to the account.
        """
        async with self._turn:
            while (began_ns := time.monotonic_ns()) < self._next_lookup_ns:  # noqa: ASYNC110  # a pause may begin meanwhile
                await asyncio.sleep((self._next_lookup_ns - began_ns) / 1e9)
            self._next_lookup_ns = began_ns + round(1e9 / LOOKS_PER_S)
        try:
            answer = await ask(request())
        except DaytonaRefused as error:
            if error.status == 404:
                self._retry.reset()
            elif error.status == _THROTTLED:
                if not self._retry.refusals:
                    self._throttled_ns = began_ns
                pause_ns = round(self._retry.pause_s(error.retry_after_s) * 1e9)
                self._next_lookup_ns = max(self._next_lookup_ns, time.monotonic_ns() + pause_ns)
            raise
        self._retry.reset()
        return answer
