"""How often ``taxtui compare`` raises a false alarm and finds a planted +20 %: real repetitions, and simulated runs.

A check compares every cell by the default metrics; of real repetitions 13 cells, of simulated ones one.

python -m tests.studies.study_compare [RECORDING]
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.compared import Repetitions, metrics, rates, simulated_pairs
from tests.support.cost_model.repeated import AA

ROUNDS = 200
LIMITS = (0.0, 0.05, 0.10)
HEAD = f"{'':52} {'checks':>6} {'exit 0':>8} {'exit 5':>8} {'exit 6':>8} {'compared':>8} {'worse':>8}"


def main() -> None:
    """Print the tables."""
    print(HEAD)
    repetitions = Repetitions(Path(sys.argv[1]) if len(sys.argv) > 1 else AA)
    for limit in LIMITS:
        for runs in (1, 2, 3):
            found = rates(repetitions.pairs(runs), metrics(limit))
            print(f"{f'real A/A, {runs} and {runs} runs, limit {limit:.0%}':52} {found.line}")
    for limit in LIMITS:
        for runs in (1, 2, 3):
            found = rates(repetitions.pairs(runs, planted=True), metrics(limit, "mean:trajectory"))
            print(f"{f'real +20 %, {runs} and {runs} runs, limit {limit:.0%}':52} {found.line}")
    for kind, what in (("a", "A/A"), ("slower by 20 %", "+20 %")):
        for run_sd in (0.02, 0.05):
            for runs in (1, 3, 6):
                for limit in LIMITS:
                    found = rates(simulated_pairs(ROUNDS, runs, run_sd, kind), metrics(limit))
                    name = f"simulated {what}, run sd {run_sd:.0%}, {runs} and {runs} runs, limit {limit:.0%}"
                    print(f"{name:52} {found.line}")


if __name__ == "__main__":
    main()
