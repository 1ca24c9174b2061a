"""Runs without steps against the SimPy twin.

    python -m tests.studies.study_policies [CASES]
Random training runs combine two to five limits (tests/support/cost_model/step_cases.py). Inside: projection and twin
differ by at most the stated error, three standard errors of the twin and a thousandth.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.support.cost_model.step_cases import a_limits_case, limits_compared

CASES, RUNS = 60, 40


def main(cases: int = CASES) -> str:
    asked: Counter[str] = Counter()
    inside: Counter[str] = Counter()
    outside = []
    for seed in range(cases):
        case = a_limits_case(seed)
        with tempfile.TemporaryDirectory() as folder:
            for one in limits_compared(case, Path(folder), RUNS):
                if one.model or one.twin:
                    for name in (one.name, *(f"with {limit}" for limit in case.kinds[1:]), "all"):
                        asked[name] += 1
                        inside[name] += one.inside
                if not one.inside:
                    outside.append(f"  {seed:4} {one}; {', '.join(case.kinds)}")
    lines = [f"{cases} training runs, each simulated {RUNS} times by the twin (wanted: 95 % of all inside)", ""]
    lines += [f"{name:16} {inside[name]:5} of {asked[name]:4} {inside[name] / asked[name]:7.1%}" for name in asked]
    return "\n".join([*lines, "", "outside", *(outside or ["  none"])])


if __name__ == "__main__":
    print(main(*map(int, sys.argv[1:2])))
