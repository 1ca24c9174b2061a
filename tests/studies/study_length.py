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
    """Predicted and measured time of a recorded length."""

    predicted_s: Interval
    measured_s: Interval

    @property
    def inside(self) -> bool:
        """Whether the measured mean lies in the predicted interval."""
        low, high = self.predicted_s.low, self.predicted_s.high
        return low is not None and high is not None and low <= self.measured_s.value <= high


Steps = dict[tuple[int, int], list[tuple[str, HeldOut]]]


def mean_s(tally: Tally, margin: Interval) -> Interval:
    return tally.of_successes(lambda sample: sample.trajectory_ns).widened(margin).times(1e-9)


def predicted(short: Pool, long: Pool) -> HeldOut:
    tally = Tally(attempts(short, long.length, ONCE), short.trials)
    measured = mean_s(Tally(attempts(long, long.length, ONCE), long.trials), Interval(0.0, 0.0, 0.0))
    return HeldOut(mean_s(tally, beyond_recorded_ns(tally, short)), measured)


def held_out() -> Steps:
    """Each step with the cells that were measured at both of its lengths."""
    found: Steps = defaultdict(list)
    for sitting in SITTINGS:
        series: dict[object, list[Pool]] = defaultdict(list)
        for pool in pools([load(RECORDINGS / f"{sitting}.msgpack")]):  # type: ignore[list-item]
            if pool.succeeded:
                series[pool.series].append(pool)
        for lengths in series.values():
            for short, long in combinations(sorted(lengths, key=lambda pool: pool.length.high), 2):
                name = f"{sitting} {short.identity.label} {short.identity.tier} {short.identity.mode}"
                found[short.length.high, long.length.high].append((name, predicted(short, long)))
    return dict(sorted(found.items()))


def main() -> str:
    lines = ["Held out: a length predicted from a shorter one of the same recording, beside what was measured", ""]
    lines += [f"{'step':10} {'cell':34} {'predicted':>9} {'interval':>17} {'measured':>9} {'error':>7} inside"]
    summary = ["", f"{'step':10} {'inside':>9} {'mean |error|':>13} {'worst':>7}"]
    for (start, end), cells in held_out().items():
        errors = [step.predicted_s.value / step.measured_s.value - 1 for _, step in cells]
        for (name, step), error in zip(cells, errors, strict=True):
            value, low, high = step.predicted_s
            lines.append(
                f"{f'{start} to {end}':10} {name:34} {value:9.4f} {f'{low:.4f}..{high:.4f}':>17} "
                f"{step.measured_s.value:9.4f} {error:+7.1%} {'yes' if step.inside else 'no'}"
            )
        inside = sum(step.inside for _, step in cells)
        mean, worst = sum(map(abs, errors)) / len(errors), max(errors, key=abs)
        summary.append(f"{f'{start} to {end}':10} {f'{inside} of {len(cells)}':>9} {mean:13.1%} {worst:+7.1%}")
    return "\n".join(lines + summary)


if __name__ == "__main__":
    print(main())
