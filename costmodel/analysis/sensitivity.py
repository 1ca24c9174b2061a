"""What small changes add up to, which input matters most, and how results move with N, W and n."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final, Literal, NamedTuple

from costmodel.analysis.project import project
from costmodel.errors import TrainingRunError
from costmodel.projection.row import Row
from costmodel.recording.published import Published
from costmodel.recording.reader import CellIdentity, Recording
from costmodel.training.run import Delta, TrainingRun
from costmodel.units import NS_PER_HOUR

Axis = Literal["trajectories", "workers", "actions"]
STANDARD: Final = (Delta(1_000_000_000, False), Delta(10_000_000, True), Delta(100_000_000, True))
"""1 s per rollout, 10 and 100 ms per action: the paper's Table 1."""
LEVER: Final = 0.1


class Effect(NamedTuple):
    """Worker-hours that a change adds to a run, and the percentage of the row that this is (None: no row)."""

    change: str
    worker_hours: float
    percent: float | None


def sensitivity(training_run: TrainingRun, actions: float, row: Row | None = None) -> list[Effect]:
    """What the standard and the training run's own changes add to ``training_run.trajectories`` rollouts of ``actions``
    each.

    ``actions`` may be a mean. Linear in the change, because every second that a worker is held is a second, whoever
    caused it.
    """
    effects = []
    for delta in dict.fromkeys((*STANDARD, *training_run.deltas)):
        per_rollout = delta.ns * (Fraction(actions) if delta.per_action else 1)
        hours = float(training_run.trajectories * per_rollout / NS_PER_HOUR)
        effects.append(Effect(_in_words(delta), hours, _percent(hours, row)))
    return effects


def levers(row: Row) -> list[Effect]:
    """What 10 % less of each cause saves in worker-hours, the largest first."""
    if row.by_cause_worker_hours is None:
        return []
    causes = {name: hours for name, hours in row.by_cause_worker_hours._asdict().items() if hours}
    saved = [
        Effect(f"10 % less {name}", -LEVER * hours, _percent(-LEVER * hours, row)) for name, hours in causes.items()
    ]
    return sorted(saved, key=lambda effect: effect.worker_hours)


def _percent(hours: float, row: Row | None) -> float | None:
    if row is None or row.worker_hours is None or not row.worker_hours.value:
        return None
    return 100 * hours / row.worker_hours.value


def _in_words(delta: Delta) -> str:
    seconds = delta.ns / 1e9
    amount = f"{seconds * 1000:+g} ms" if abs(seconds) < 1 else f"{seconds:+g} s"
    return f"{amount} per {'action' if delta.per_action else 'rollout'}"


class Point(NamedTuple):
    """One point of a curve; None where the row has no number."""

    at: int
    worker_hours: float | None
    wall_clock_hours: float | None
    trajectory_s: float | None


class Curve(NamedTuple):
    """How one cell moves along an axis."""

    identity: CellIdentity
    label: str
    points: list[Point]


def curve(
    recordings: Sequence[Recording | Published],
    training_run: TrainingRun,
    axis: Axis = "trajectories",
    at: Sequence[int] = (),
) -> list[Curve]:
    """One curve per cell over N, W or n (paper, Figure 6: over N), at the given values or at round ones around it.

    Raises:
        TrainingRunError: the axis is unknown, or nothing that was recorded moves along it; or as for ``project``.
    """
    if axis not in ("trajectories", "workers", "actions"):
        raise TrainingRunError(f"a curve is over trajectories, workers or actions, not {axis!r}")
    trials = (trial for one in recordings if isinstance(one, Recording) for cell in one.cells for trial in cell.trials)
    if axis == "actions" and not at and not any(trial.ok for trial in trials):
        raise TrainingRunError(
            "a published latency is of one length, so there is no curve over actions; take trajectories or workers"
        )
    curves: dict[CellIdentity, Curve] = {}
    for value in at or around(_center(recordings, training_run, axis)):
        if axis == "trajectories" and value < (training_run.step_rollouts or 0):
            continue  # no training step is that small
        for row in project(recordings, _moved(training_run, axis, value), effort=0.0, stressed=False):
            key = row.identity._replace(actions=0) if axis == "actions" else row.identity
            found = curves.setdefault(key, Curve(row.identity, row.label, []))
            found.points.append(
                Point(
                    value,
                    row.worker_hours.value if row.worker_hours else None,
                    row.wall_clock_hours.value if row.wall_clock_hours else None,
                    row.trajectory_s.mean.value if row.trajectory_s else None,
                )
            )
    return list(curves.values())


def _moved(training_run: TrainingRun, axis: Axis, value: int) -> TrainingRun:
    if axis == "trajectories":
        return replace(training_run, trajectories=value)
    return replace(training_run, workers=value) if axis == "workers" else replace(training_run, actions=value)


def _center(recordings: Sequence[Recording | Published], training_run: TrainingRun, axis: Axis) -> int:
    if axis != "actions":
        return max(1, training_run.trajectories if axis == "trajectories" else training_run.workers)
    if training_run.length is not None:
        return max(1, round(training_run.length.mean))
    cells = (cell for one in recordings if isinstance(one, Recording) for cell in one.cells)
    lengths = [len(trial.durations_ns) for cell in cells for trial in cell.trials]
    return max(1, max(lengths, default=50))


def around(center: int) -> list[int]:
    """Round numbers from a tenth to ten times ``center``: 1, 2, 5, 10 … and ``center`` itself."""
    low, high = max(1, center // 10), center * 10
    exponent = len(str(low)) - 1
    rounds = [step * 10**power for power in range(exponent, exponent + 4) for step in (1, 2, 5)]
    return sorted({center, *(value for value in rounds if low <= value <= high)})
