"""How well one recorded length predicts another: every step of the recordings that ship, held out.

python -m tests.studies.study_length
"""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from costmodel import Interval, Pool, TrainingRun, load, pools
from costmodel.projection.diagnostics import beyond_recorded_ns
from costmodel.workload.estimator import Tally
from costmodel.workload.pool import attempts

RECORDINGS = Path(__file__).parents[2] / "recordings"
SITTINGS = ("run", "short", "gvisor")
"""Files that are projected, each by itself."""
ONCE = TrainingRun(trajectories=1, workers=1)


class HeldOut(NamedTuple):
    """Predicted and measured time of a recorded length of a cell."""

    cell: str
    predicted_s: Interval
    measured_s: float

    @property
    def inside(self) -> bool:
        """Whether the measured mean lies in the predicted interval."""
        low, high = self.predicted_s.low, self.predicted_s.high
        return low is not None and high is not None and low <= self.measured_s <= high


Steps = dict[tuple[int, int], list[HeldOut]]


def held_out() -> Steps:
    """Each step with the cells that were measured at both of its lengths."""
    found: Steps = defaultdict(list)
    for sitting in SITTINGS:
        series: dict[object, list[Pool]] = defaultdict(list)
        for pool in pools([load(RECORDINGS / f"{sitting}.msgpack")]):
            if pool.succeeded:
                series[pool.series].append(pool)
        for lengths in series.values():
            for short, long in combinations(sorted(lengths, key=lambda pool: pool.length.high), 2):
                name = f"{sitting} {short.identity.label} {short.identity.tier} {short.identity.mode}"
                tallies = [Tally(attempts(pool, long.length, ONCE), pool.trials) for pool in (short, long)]
                predicted, measured = (one.per_success(lambda each: each.trajectory_ns * each.ok) for one in tallies)
                predicted = predicted.widened(beyond_recorded_ns(tallies[0], short)).times(1e-9)
                step = HeldOut(name, predicted, measured.value / 1e9)
                found[short.length.high, long.length.high].append(step)
    return dict(sorted(found.items()))


def main() -> str:
    lines = ["Held out: a length predicted from a shorter one of the same recording, beside what was measured", ""]
    lines += [f"{'step':10} {'cell':34} {'predicted':>9} {'interval':>17} {'measured':>9} {'error':>7} inside"]
    summary = ["", f"{'step':10} {'inside':>9} {'mean |error|':>13} {'worst':>7}"]
    for (start, end), steps in held_out().items():
        name, errors = f"{start} to {end}", []
        for cell, (value, low, high), measured in steps:
            errors.append(value / measured - 1)
            told = "yes" if low <= measured <= high else "no"
            columns = f"{value:9.4f} {f'{low:.4f}..{high:.4f}':>17} {measured:9.4f} {errors[-1]:+7.1%}"
            lines.append(f"{name:10} {cell:34} {columns} {told}")
        inside = f"{sum(step.inside for step in steps)} of {len(steps)}"
        summary.append(
            f"{name:10} {inside:>9} {sum(map(abs, errors)) / len(errors):13.1%} {max(errors, key=abs):+7.1%}"
        )
    return "\n".join(lines + summary)


if __name__ == "__main__":
    print(main())
