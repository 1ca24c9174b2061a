"""Work in a background thread: the newest request counts, and older requests are dropped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from textual.message_pump import MessagePump

from costmodel import CostModelError
from taxtui.errors import TaxtuiError

Request = TypeVar("Request")
Result = TypeVar("Result")


class Newest(Generic[Request, Result]):
    """Answers the newest request in a thread; the listeners run in the thread of the interface.

    Quitting does not wait for the thread. Its priority is the priority of the interface: a nicer thread could hold the
    interpreter while other programs have the processor.
    """

    def __init__(
        self,
        work: Callable[[Request], Result],
        on_result: Callable[[Request, Result], None],
        failed: Callable[[Request, str], None],
        *,
        on: MessagePump,
    ) -> None:
        """Start the thread; the listeners are called like messages of ``on``."""
        self._work, self._on_result, self._failed, self._pump = work, on_result, failed, on
        self._waiting: list[Request] = []
        self._newest = 0  # number of the newest request
        self._answered = 0  # number of the newest answered request
        self._changed = threading.Condition()
        self._closed = False
        threading.Thread(target=self._run, name="taxtui-background", daemon=True).start()

    def ask(self, request: Request) -> None:
        with self._changed:
            self._waiting[:] = [request]
            self._newest += 1
            self._changed.notify()

    @property
    def busy(self) -> bool:
        return self._answered < self._newest

    def close(self) -> None:
        """End the thread after the current request. Idempotent."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def forget(self) -> None:
        """Drop every request. Idempotent."""
        with self._changed:
            self._waiting.clear()
            self._newest += 1
            self._answered = self._newest

    def _run(self) -> None:
        while (item := self._next()) is not None:
            number, request = item
            try:
                self._answer(number, request)
            except (TaxtuiError, CostModelError) as error:
                self._deliver(number, self._failed, request, str(error))
            except Exception as error:  # on the screen instead of the answer
                self._deliver(number, self._failed, request, f"{type(error).__name__}: {error}")

    def _answer(self, number: int, request: Request) -> None:
        self._deliver(number, self._on_result, request, self._work(request))

    def _next(self) -> tuple[int, Request] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            return None if self._closed else (self._newest, self._waiting.pop())

    def _is_obsolete(self, number: int) -> bool:
        """Whether a newer request has arrived, or the thread is closed."""
        return self._closed or number < self._newest

    def _deliver(self, number: int, listener: Callable[..., None], *arguments: object, last: bool = True) -> None:
        self._pump.call_later(self._call, number, last, listener, arguments)  # posts a message, as any thread may

    def _call(self, number: int, last: bool, listener: Callable[..., None], arguments: tuple[object, ...]) -> None:
        if self._is_obsolete(number):
            return
        if last:
            self._answered = number
        listener(*arguments)


class Unfolding(Newest[Request, Result]):
    """Answers in parts, each better than the part before; a newer request ends the answer after a part.

    ``ended`` is called after the last part.
    """

    def __init__(
        self,
        work: Callable[[Request], Iterator[Result]],
        on_result: Callable[[Request, Result], None],
        failed: Callable[[Request, str], None],
        ended: Callable[[Request], None],
        *,
        on: MessagePump,
    ) -> None:
        """As ``Newest``; ``work`` yields the parts."""
        self._parts, self._ended = work, ended
        super().__init__(lambda request: next(work(request)), on_result, failed, on=on)

    def _answer(self, number: int, request: Request) -> None:
        for part in self._parts(request):
            if self._is_obsolete(number):
                return
            self._deliver(number, self._on_result, request, part, last=False)
        self._deliver(number, self._ended, request)
