"""Whose request a client is sending, so that the sandbox which needed a new connection for it is told so."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, TypeVar

from taxtui.sandboxes.protocol import Marks

T = TypeVar("T")

connecting: ContextVar[Marks | None] = ContextVar("connecting", default=None)
"""The ``Marks`` of the sandbox whose request the current task is sending."""


def tell_cold(trace: T) -> T:
    """Have an ``aiohttp.TraceConfig`` tell ``connecting`` whenever a connection was made; returns the same trace."""

    async def made(*_: object) -> None:
        if marks := connecting.get():
            marks.cold()

    hooks: Any = trace
    hooks.on_connection_create_end.append(made)
    return trace
