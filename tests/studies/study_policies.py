"""Runs without steps against the SimPy twin.

    python -m tests.studies.study_policies [CASES]

Random training runs combine two to five limits (tests/support/cost_model/policy_cases.py). Each is projected once
and simulated many times by the twin. A quantity is inside where the two differ by no more than what is stated, the
twin's own noise (three standard errors) and a thousandth.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.support.cost_model.policy_cases import a_case, compared

CASES, RUNS = 60, 40


def study(cases: int) -> list[str]:
    asked: Counter[str] = Counter()
    inside: Counter[str] = Counter()
    by_policy: Counter[str] = Counter()
    in_policy: Counter[str] = Counter()
    outside = []
    for seed in range(cases):
        case = a_case(seed)
        with tempfile.TemporaryDirectory() as folder:
            for one in compared(case, Path(folder), RUNS):
                asked[one.name] += 1
                inside[one.name] += one.inside
                for policy in case.policies:
                    by_policy[policy] += 1
                    in_policy[policy] += one.inside
                if not one.inside:
                    what = f"{case.law}: {', '.join(case.policies)}"
                    off = one.projected / one.twin - 1 if one.twin else float("inf")
                    noise = one.noise / one.twin if one.twin else 0.0
                    outside.append(f"  {seed:4} {one.name:13} {off:+8.2%} (twin's noise {noise:.2%}) {what}")
    lines = [f"{cases} training runs, each simulated {RUNS} times by the twin", "", f"{'quantity':16} {'inside':>12}"]
    lines += [f"{name:16} {inside[name]:5} of {asked[name]:4} {inside[name] / asked[name]:7.1%}" for name in asked]
    total, found = sum(asked.values()), sum(inside.values())
    lines += [f"{'all':16} {found:5} of {total:4} {found / total:7.1%} (wanted >= 95 %)", "", "by policy"]
    lines += [f"{name:16} {in_policy[name] / by_policy[name]:7.1%}" for name in sorted(by_policy)]
    return [*lines, "", "outside", *(outside or ["  none"])]


def main(cases: int = CASES) -> str:
    return "\n".join(study(cases))


if __name__ == "__main__":
    print(main(*map(int, sys.argv[1:2])))
