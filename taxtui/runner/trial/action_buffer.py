"""A buffer of ended commands for the recording, as columns."""

from __future__ import annotations

from typing import Any, Final

from costmodel import Actions, events

_OFTEN_UNKNOWN: Final = ("cpu_ns", "wrapper_ns")


class ActionBuffer:
    """Collects commands for ``events.Actions``."""

    def __init__(self, trial: int, step: str) -> None:
        self._trial = trial
        self._step = step
        self._first = 0
        self._rows: list[dict[str, int]] = []

    def append(self, **row: int) -> None:
        """Add a command: a value for each column of ``events.Actions``."""
        self._rows.append(row)

    def drain(self) -> Actions | None:
        """Return the commands since the last call; None where there are none."""
        if not self._rows:
            return None
        columns: dict[str, Any] = {name: [row[name] for row in self._rows] for name in self._rows[0]}
        for name in columns.keys() - {"duration_ns"}:
            columns[name] = events.sparse(columns[name], events.UNKNOWN if name in _OFTEN_UNKNOWN else 0)
        first, self._first = self._first, self._first + len(self._rows)
        self._rows = []
        return Actions(trial=self._trial, step=self._step, first=first, **columns)
