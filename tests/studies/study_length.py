"""How well one recorded length predicts another: every step of the recordings that ship, held out.

python -m tests.studies.study_length
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from costmodel import TrainingRun, load, project
from costmodel.projection.row import HeldOut

RECORDINGS = Path(__file__).parents[2] / "recordings"
SITTINGS = ("run", "short", "gvisor")
"""Files that are projected, each by itself."""

Steps = dict[tuple[int, int], list[tuple[str, HeldOut]]]


def held_out() -> Steps:
    """Each step with the cells that were measured at both of its lengths."""
    found: Steps = defaultdict(list)
    for sitting in SITTINGS:
        rows = project([load(RECORDINGS / f"{sitting}.msgpack")], TrainingRun(trajectories=1, workers=1))
        series = {row.identity._replace(actions=0): row for row in rows}
        for row in series.values():
            name = f"{sitting} {row.label} {row.identity.tier} {row.identity.mode}"
            for step in row.held_out:
                found[step.from_actions, step.to_actions].append((name, step))
    return dict(sorted(found.items()))


def main() -> str:
    lines = ["Held out: a length predicted from a shorter one of the same recording, beside what was measured", ""]
    lines += [f"{'step':10} {'cell':34} {'predicted':>9} {'interval':>17} {'measured':>9} {'error':>7} inside"]
    summary = ["", f"{'step':10} {'inside':>9} {'mean |error|':>13} {'worst':>7}"]
    for (start, end), cells in held_out().items():
        errors = [step.predicted_s.value / step.measured_s.value - 1 for _, step in cells]
        for (name, step), error in zip(cells, errors, strict=True):
            predicted, low, high = step.predicted_s
            lines.append(
                f"{f'{start} to {end}':10} {name:34} {predicted:9.4f} {f'{low:.4f}..{high:.4f}':>17} "
                f"{step.measured_s.value:9.4f} {error:+7.1%} {'yes' if step.inside else 'no'}"
            )
        inside = sum(step.inside is True for _, step in cells)
        mean, worst = sum(map(abs, errors)) / len(errors), max(errors, key=abs)
        summary.append(f"{f'{start} to {end}':10} {f'{inside} of {len(cells)}':>9} {mean:13.1%} {worst:+7.1%}")
    return "\n".join(lines + summary)


if __name__ == "__main__":
    print(main())
