"""Bounds of the tax where in-sandbox time is unknown: command time is all work, or none.

A reference narrows the lower bound: each command has the median dispatch of a recording of the same substrate, or its
whole time if shorter.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from costmodel.errors import TrainingRunError
from costmodel.projection.row import TaxBounds
from costmodel.recording.breakdown import parted
from costmodel.recording.reader import Recording
from costmodel.workload.attempts import Attempt
from costmodel.workload.estimator import Tally


class MedianDispatch(NamedTuple):
    """Median dispatch of the actions of a reference on one substrate."""

    ns: int
    actions: int
    source: str  # names of recordings

    def of(self, actions: int, taken_ns: int) -> int:
        """Return the least dispatch of ``actions`` commands with ``taken_ns`` in all, in ns."""
        return min(taken_ns, actions * self.ns)

    def in_words(self, substrate: str) -> str:
        """Describe the effect on rows of a substrate."""
        return (
            f"{substrate}: at least {self.ns / 1e6:,.3g} ms of each command is taken to be dispatch, "
            f"the median of {self.actions:,} actions in {self.source}"
        )


Reference = Mapping[str, MedianDispatch]
"""Substrate → median dispatch."""


def reference_of(recordings: Sequence[Recording]) -> Reference:
    """The median dispatch per action by substrate, over all successful trials whose run is known.

    Raises:
        TrainingRunError: no command of theirs has a known run.
    """
    by_substrate: dict[str, tuple[array[int], dict[str, None]]] = {}
    for recording in recordings:
        for cell in recording.cells:
            dispatches, names = by_substrate.setdefault(cell.identity.substrate, (array("q"), {}))
            for trial in cell.trials:
                if trial.ok:
                    dispatches.extend(parted(trial.durations_ns, trial.runs_ns, trial.wrappers_ns)[1])
                    names[recording.name] = None
    medians = {
        substrate: MedianDispatch(sorted(dispatches)[(len(dispatches) - 1) // 2], len(dispatches), ", ".join(names))
        for substrate, (dispatches, names) in by_substrate.items()
        if dispatches
    }
    if not medians:
        names_told = ", ".join(recording.name for recording in recordings)
        raise TrainingRunError(f"{names_told} cannot be a reference: it tells no command's time inside the sandbox")
    return medians


def tax_between(tally: Tally, median: MedianDispatch | None, hours: float, waiting_hours: float) -> TaxBounds | None:
    """Worker-hours of tax if the unsplit commands were all work but for the reference's dispatch, and if none were.

    ``hours`` of the whole run per ns and success. None where the tax is known, so that nothing has to be bounded.
    """
    if tally.run_known:
        return None

    def upper(attempt: Attempt) -> int:
        work_ns = 0 if attempt.unsplit_ns else attempt.run_ns + attempt.wrapper_ns
        return attempt.held_ns - attempt.think_ns - work_ns if attempt.ok else attempt.held_ns

    def lower(attempt: Attempt) -> int:
        dispatch_ns = median.of(attempt.actions, attempt.unsplit_ns) if median else 0
        return upper(attempt) - (attempt.unsplit_ns - dispatch_ns) * attempt.ok

    def whole(part: Callable[[Attempt], int]) -> float:
        return float(tally.total(part) / tally.successes) * hours + waiting_hours

    return TaxBounds(max(0.0, whole(lower)), whole(upper))


def check_reference_used(reference: Reference, unknown: Iterable[str]) -> None:
    """Check that a reference bounds some row with unknown in-sandbox time.

    Raises:
        TrainingRunError: there is no such row, or none on a substrate of the reference.
    """
    substrates = set(unknown)
    if not substrates:
        raise TrainingRunError("every row tells its commands' time inside the sandbox; leave --reference out")
    if substrates.isdisjoint(reference):
        measured, unbounded = ", ".join(sorted(reference)), ", ".join(sorted(substrates))
        raise TrainingRunError(
            f"the reference measured {measured}, and the rows that it could bound ran on {unbounded}"
        )
