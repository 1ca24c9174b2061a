"""Work in a background thread: the newest request counts, and older requests are dropped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from textual.message_pump import MessagePump

from costmodel import CostModelError
from taxtui.errors import TaxtuiError

Request = TypeVar("Request")
Result = TypeVar("Result")


class Newest(Generic[Request, Result]):
    """Answers the newest request in a thread, in one part or in several; a newer request ends the answer after a part.

    Quitting does not wait for the thread. Its priority is the priority of the interface: a nicer thread could hold the
    interpreter while other programs have the processor.
    """

    def __init__(
        self,
        work: Callable[[Request], Iterable[Result]],
        on_part: Callable[[Result], None],
        failed: Callable[[str], None],
        ended: Callable[[], None] = lambda: None,
        *,
        on: MessagePump,
    ) -> None:
        """Start the thread; the listeners are called like messages of ``on``.

        Args:
            work: returns the parts of an answer; called in the thread.
            on_part: listener for each part.
            failed: listener for the reason of a failure.
            ended: listener for the end of an answer.
            on: the widget with the listeners.
        """
        self._work, self._on_part, self._failed, self._ended, self._pump = work, on_part, failed, ended, on
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
        """End the thread after the current part. Idempotent."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _run(self) -> None:
        while (item := self._next()) is not None:
            number, request = item
            try:
                for part in self._work(request):
                    if self._is_obsolete(number):
                        break
                    self._pump.call_later(self._deliver, number, self._on_part, part)  # as any thread may
            except (TaxtuiError, CostModelError) as error:
                self._pump.call_later(self._deliver, number, self._failed, str(error))
            except Exception as error:  # on the screen instead of the answer
                self._pump.call_later(self._deliver, number, self._failed, f"{type(error).__name__}: {error}")
            self._pump.call_later(self._end, number)

    def _next(self) -> tuple[int, Request] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            return None if self._closed else (self._newest, self._waiting.pop())

    def _is_obsolete(self, number: int) -> bool:
        """Whether a newer request has arrived, or the thread is closed."""
        return self._closed or number < self._newest

    def _deliver(self, number: int, listener: Callable[..., None], *arguments: object) -> None:
        if not self._is_obsolete(number):
            listener(*arguments)

    def _end(self, number: int) -> None:
        if not self._is_obsolete(number):
            self._answered = number
            self._ended()
