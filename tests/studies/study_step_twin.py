"""Runs in steps that combine all of docs/simulation.md: the step model against a second implementation of that page.

    python -m tests.studies.study_step_twin [CASES [CASES_WITH_CAUSES]]
Each case combines two to six kinds of options (tests/support/cost_model/step_cases.py). The model answers in 16 worlds,
the SimPy twin in 30 runs. Inside: the two differ by at most 3.5 standard errors and a thousandth. Of the first cases
each acting cause is removed too.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from costmodel import CAUSES
from tests.support.cost_model.step_cases import a_step_case, compared

CASES, WITH_CAUSES, RUNS = 400, 60, 30


def main(cases: int = CASES, with_causes: int = WITH_CAUSES) -> str:
    asked: Counter[str] = Counter()
    inside: Counter[str] = Counter()
    outside, begin = [], time.monotonic()
    for seed in range(cases):
        case = a_step_case(seed)
        way = f"on failure: {case.asked.on_failure}"
        with tempfile.TemporaryDirectory() as folder:
            for one in compared(case, Path(folder), RUNS, CAUSES if seed < with_causes else ()):
                for name in (one.name, *(f"with {kind}" for kind in case.kinds), way, "all"):
                    asked[name] += 1
                    inside[name] += one.inside
                if not one.inside:
                    outside.append(f"  {seed:4} {one}; {', '.join(case.kinds)} ({case.asked.policy}, {way})")
    lines = [f"{cases} cases, {with_causes} of them with each cause taken away, {time.monotonic() - begin:.0f} s", ""]
    lines += [f"{name:26} {inside[name]:5} of {asked[name]:5} {inside[name] / asked[name]:7.1%}" for name in asked]
    return "\n".join([*lines, "", "outside", *(outside or ["  none"])])


if __name__ == "__main__":
    print(main(*map(int, sys.argv[1:3])))
