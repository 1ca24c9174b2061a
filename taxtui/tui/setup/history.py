"""The times that earlier recordings tell of, read in the background while a person looks at the Setup screen."""

from __future__ import annotations

from collections.abc import Callable

from textual.message_pump import MessagePump

from taxtui.report.plan_time import HistoryReader, Table
from taxtui.tui.background import Newest


class History:
    """Keeps a table of recorded times up to date, and stops reading as soon as it is told to rest."""

    def __init__(self, on: MessagePump, changed: Callable[[], None], failed: Callable[[str], None]) -> None:
        """Begin to read; the listeners are called as messages of ``on`` are."""
        self.table: Table | None = None  # None: not read yet
        self._changed, self._failed = changed, failed
        self._resting = False
        reader = HistoryReader()
        self._thread = Newest[bool, Table](
            lambda _: reader.table(lambda: self._resting), self._read, self._unreadable, on=on
        )
        self.refresh()

    def refresh(self) -> None:
        """Read what has changed since."""
        self._resting = False
        self._thread.ask(True)

    def rest(self) -> None:
        """Read no further: what is measured comes before what is estimated."""
        self._resting = True

    def close(self) -> None:
        """Let the thread go. Idempotent."""
        self.rest()
        self._thread.close()

    def _read(self, _: bool, table: Table) -> None:
        if not self._resting:
            self.table = table
            self._changed()

    def _unreadable(self, _: bool, why: str) -> None:
        self.table = Table()
        self._changed()
        self._failed(f"no estimate of the time: {why}")
