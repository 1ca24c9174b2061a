"""What goes wrong in a stand-in, on request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
LOOK_S = 0.05  # whether whoever waits for an answer is still there
CUT = web.RequestKey("cut", bool)
"""In a request: the handler has to break the connection in the middle of its answer."""


@dataclass
class Fault:
    """What goes wrong with the next ``times`` requests of one kind, after ``skip`` that are answered."""

    on: str
    status: int = 0
    code: str = ""  # AWS's name for the refusal
    retry_after_s: float | None = None
    message: str = "injected"
    hang: Literal["", "before", "after"] = ""  # never answer, before or after the side effect
    reset: Literal["", "before", "after", "mid"] = ""  # break the connection; mid: within a command's output
    times: float = 1  # math.inf: for ever
    skip: int = 0

    async def strike(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Hang or break the connection; the handler sees ``request[CUT]`` where it has to do that itself."""
        request[CUT] = self.reset == "mid"
        if "before" not in (self.hang, self.reset):
            answer = await handler(request)
            if self.reset == "mid":
                return answer
        if self.hang:
            while request.transport is not None and not request.transport.is_closing():
                await asyncio.sleep(LOOK_S)
        if request.transport is not None:
            request.transport.abort()
        return web.Response()


class Faults:
    """Those that are still to come."""

    def __init__(self) -> None:
        self._waiting: list[Fault] = []
        self.struck = 0
        """How many requests so far."""

    def add(self, on: str, **how: Any) -> None:
        self._waiting.append(Fault(on, **how))

    def clear(self) -> None:
        self._waiting.clear()

    def next(self, kind: str) -> Fault | None:
        for fault in self._waiting:
            if fault.on == kind and fault.times > 0:
                if fault.skip:
                    fault.skip -= 1
                    return None
                fault.times -= 1
                self.struck += 1
                return fault
        return None
