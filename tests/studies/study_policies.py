"""Every combination of policies against the SimPy twin, and how many attempts a second are simulated.

    python -m tests.studies.study_policies [CASES]

Random training runs combine two to five policies (tests/support/cost_model/policy_cases.py). Each is projected once
and simulated many times by the twin. A quantity is inside where the two differ by no more than what is stated, the
twin's own noise (three standard errors) and a thousandth.
"""

from __future__ import annotations

import platform
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from costmodel.simulation.attempts import Parts
from costmodel.statistics.distribution import Distribution
from costmodel.training.run import TrainingRun
from tests.support.cost_model.policy_cases import a_case, compared
from tests.support.cost_model.step_twin import StepTwin
from tests.support.cost_model.step_twin_trials import StepAsked, StepTrial
from tests.support.cost_model.stepping import parts, stepped

CASES, RUNS = 60, 40
S = 10**9
ATTEMPTS, SIMPY_ATTEMPTS = 100_000, 6_000


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


def speed() -> list[str]:
    """Attempts of the simulator a second, beside the twin's in the same run."""
    rng = Random(1)
    law = Distribution.of([round(S * rng.lognormvariate(3, 0.4)) for _ in range(100)])
    trials = [parts(create=1, work=value / S) for value in law.values]
    failing = [trials[number] for number in range(0, len(trials), 10)]
    ask: dict[str, Any] = {"trajectories": ATTEMPTS, "workers": 500, "batch": 500, "policy": "async"}
    systems: dict[str, tuple[dict[str, Any], list[Parts]]] = {
        "workers alone": ({}, []),
        "retries, backoff": ({"backoff_s": 1.0}, failing),
        "create rate": ({"create_rate": 20.0, "create_burst": 10}, []),
        "rate, pool, retries": ({"create_rate": 40.0, "warm_pool": 100, "refill_s": 10.0}, failing),
    }
    lines = [f"{'500 workers':22} {'M attempts/s':>13}"]
    for name, (more, failures) in systems.items():
        begin = time.process_time()
        steps = stepped(TrainingRun(**ask | more), trials, failures, steps=ATTEMPTS // 500)
        took = time.process_time() - begin
        lines.append(f"{name:22} {sum(step.attempts for step in steps) / took / 1e6:13.2f}")
    recorded = [StepTrial(True, 0.0, 0.0, 0.0, ((value / S, value / S),), 0.0, 0.0) for value in law.values]
    asked = {"rollouts": SIMPY_ATTEMPTS, "workers": 500, "batch": SIMPY_ATTEMPTS, "policy": "async"}
    begin = time.process_time()
    StepTwin(StepAsked(trials=recorded, rate=20.0, burst=10, **asked), "speed").run()
    took = time.process_time() - begin
    return [*lines, f"{'SimPy twin, create rate':22} {SIMPY_ATTEMPTS / took / 1e6:13.3f}"]


def main(cases: int = CASES) -> str:
    return "\n".join([f"Python {platform.python_version()}", "", *speed(), "", *study(cases)])


if __name__ == "__main__":
    print(main(*map(int, sys.argv[1:2])))
