"""Decisions with a known truth: equal pairs in steps, and providers with unmeasured inputs drawn from their ranges.

A wrong verdict is a MOVE or a STAY that costs money. At most 5 % may be wrong; of equal pairs any verdict is.
python -m tests.studies.study_decide [WORLDS]
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.support.cost_model.decision_worlds import equal_pair, planted

PAIRS = ((60, 0.3, 1.0), (150, 0.6, 1.0), (150, 1.0, 1.0), (150, 0.3, 1.05), (150, 0.3, 1.2))
"""Trials of each place, sigma of its commands' lognormal times, and how much longer they take at the second."""


def main(worlds: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"{'trials':>6} {'sigma':>5} {'longer':>6}  {'move':>5} {'stay':>5} {'cannot tell':>11}")
        for trials, sigma, longer in PAIRS:
            found = Counter(equal_pair(folder, seed, trials, sigma, longer, effort=0.03) for seed in range(200, 240))
            told = f"{found['move']:>5} {found['stay']:>5} {found['cannot_tell']:>11}"
            print(f"{trials:>6} {sigma:>5} {longer:>6}  {told}", flush=True)
        drawn = [planted(folder, seed) for seed in range(worlds)]
        found = Counter(world.decision.verdict for world in drawn)
        told = f"{found['move']} move, {found['stay']} stay, {found['cannot_tell']} cannot tell"
        print(f"{worlds} planted worlds: {told}, wrong {sum(world.wrong for world in drawn) / worlds:.3f}   ≤ .05")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
