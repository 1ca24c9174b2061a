"""A buffer of ended commands for the recording, as columns."""

from __future__ import annotations

from costmodel import Actions, events


class ActionBuffer:
    """Collects commands for ``events.Actions``."""

    def __init__(self, trial: int, step: str) -> None:
        self._trial = trial
        self._step = step
        self._first = 0
        self._rows: list[tuple[int, ...]] = []

    def append(
        self,
        *,
        gap_ns: int,
        think_ns: int,
        duration_ns: int,
        run_ns: int,
        cpu_ns: int,
        wrapper_ns: int,
        exit_code: int,
        stdout_bytes: int,
        stderr_bytes: int,
    ) -> None:
        self._rows.append(
            (gap_ns, think_ns, duration_ns, run_ns, exit_code, stdout_bytes, stderr_bytes, cpu_ns, wrapper_ns)
        )

    def drain(self) -> Actions | None:
        """Return the commands since the last call; None where there are none."""
        if not self._rows:
            return None
        columns = (list(column) for column in zip(*self._rows, strict=True))
        gap, think, duration, run, code, out, err, cpu, wrapper = columns
        first, self._first = self._first, self._first + len(self._rows)
        self._rows = []
        return Actions(
            trial=self._trial,
            step=self._step,
            first=first,
            gap_ns=events.sparse(gap),
            think_ns=events.sparse(think),
            duration_ns=duration,
            run_ns=events.sparse(run),
            exit_code=events.sparse(code),
            stdout_bytes=events.sparse(out),
            stderr_bytes=events.sparse(err),
            cpu_ns=events.sparse(cpu, events.UNKNOWN),
            wrapper_ns=events.sparse(wrapper, events.UNKNOWN),
        )
