"""Random runs without steps that combine limits, asked of ``project`` and of the SimPy twin, and their answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from costmodel import Precision, Think, TrainingRun, load_prices, project
from costmodel.projection.wall_clock import timed_run
from costmodel.workload.pool import attempts, pools
from tests.support.asking import present
from tests.support.cost_model.costmodel_files import S
from tests.support.cost_model.step_cases import recorded
from tests.support.cost_model.step_twin import StepTwin
from tests.support.cost_model.step_twin_trials import StepAsked, StepTrial

LAWS: Final[dict[str, Callable[[Random], float]]] = {
    "gamma CV .3": lambda rng: rng.gammavariate(11.1, 1.8),
    "lognormal .5": lambda rng: rng.lognormvariate(2.9, 0.5),
    "lognormal 1": lambda rng: rng.lognormvariate(2.5, 1.0),
    "Pareto 2.5": lambda rng: 12 * rng.paretovariate(2.5),
    "90/10": lambda rng: rng.gauss(14, 0.5) if rng.random() < 0.9 else rng.gauss(90, 2),
}
POLICIES: Final = ("rate", "retries", "timeout", "pool", "think", "quota")
TRIALS: Final = 40


@dataclass(frozen=True)
class Case:
    """One training run."""

    law: str
    policies: tuple[str, ...]
    training_run: TrainingRun
    asked: StepAsked


@dataclass(frozen=True)
class Compared:
    """One quantity: projected with its stated error, and simulated with the twin's own."""

    name: str
    projected: float
    error: float
    twin: float
    noise: float

    @property
    def inside(self) -> bool:
        """Whether the two agree within both errors; a thousandth of a quantity is never told apart."""
        slack = 1e-3 * max(abs(self.twin), 1e-6)
        return abs(self.projected - self.twin) <= self.error + self.noise + slack


def a_case(seed: int) -> Case:
    """A random law, and two to five policies with random settings."""
    rng = Random(seed)
    law = rng.choice(list(LAWS))
    policies = tuple(sorted(rng.sample(POLICIES, rng.randint(2, 5)), key=POLICIES.index))
    fails = "retries" in policies
    trials = []
    for number in range(TRIALS):
        length, ok = LAWS[law](rng), not (fails and number % 7 == 3)
        cold = round(length * rng.uniform(0.1, 0.4), 3)
        each = round((length - cold) / 4 if ok else (length - cold) / 8, 3)
        commands = ((each, each),) * (4 if ok else 2)
        trials.append(StepTrial(ok, cold, 0.0, 0.0, commands, gap_s=0.0, cleanup_s=0.5))
    lengths = sorted(one.create_s + sum(took for took, _ in one.commands_s) for one in trials)
    mean = sum(lengths) / TRIALS
    rollouts, workers = rng.choice((40, 90, 150)), rng.choice((10, 25, 60))
    asked: dict[str, Any] = {"trials": trials, "rollouts": rollouts, "workers": workers}
    asked |= {"batch": rollouts, "policy": "async"}
    training_run: dict[str, Any] = {"trajectories": rollouts, "workers": workers, "precision": Precision(seed=seed)}

    def both(ours: str, theirs: str, value: Any) -> None:
        training_run[ours] = asked[theirs] = value

    if "rate" in policies:
        both("create_rate", "rate", round(workers / mean * rng.choice((0.4, 0.8, 1.5)), 3))
        both("create_burst", "burst", rng.choice((1, 5, 20)))
    if fails:
        both("max_attempts", "max_attempts", rng.choice((None, 2, 4)))
        both("backoff_s", "backoff_s", rng.choice((0.0, round(mean / 3, 2))))
    if "timeout" in policies:
        thinks = 0.45 * mean * ("think" in policies)
        both("timeout_s", "timeout_s", round(lengths[TRIALS * 4 // 5] + thinks, 4) + 0.00005)
    if "think" in policies:
        median, sigma = round(mean / 10, 2), rng.choice((0.6, 1.2))
        training_run["think"], asked["think"] = Think(round(median * S), sigma), (median, sigma)
    if "pool" in policies:
        both("warm_pool", "pool", rng.choice((3, 8, 30)))
        kind = rng.choice(("refill_s", "refill_rate", "group"))
        if kind == "group":
            both("group_size", "group", 8)
        else:
            value = mean * rng.choice((0.5, 2)) if kind == "refill_s" else workers / mean * rng.choice((0.3, 0.7))
            both(kind, kind, round(value, 3))
    if "quota" in policies:
        training_run["quota"] = asked["workers"] = max(4, workers * 2 // 3)
    return Case(law, policies, TrainingRun(**training_run), StepAsked(**asked))


def compared(case: Case, folder: Path, runs: int) -> Iterator[Compared]:
    """Every quantity of a case, from ``project`` and from ``runs`` of the twin."""
    recording = recorded(case.asked.trials, folder)
    (row,) = project([recording], case.training_run, load_prices(folder / "sheet.toml"), effort=0.0)
    (pool,) = pools([recording])
    timed = present(timed_run(attempts(pool, pool.length, case.training_run), pool, case.training_run))
    outcome = timed.run.outcome
    found = [StepTwin(case.asked, f"twin {case.training_run.precision.seed} {run}").run() for run in range(runs)]

    def mean(value: Callable[[Any], float]) -> tuple[float, float]:
        values = [value(one) for one in found]
        center = math.fsum(values) / runs
        return center, 3 * math.sqrt(math.fsum((one - center) ** 2 for one in values) / (runs - 1) / runs)

    wall, hour = present(row.wall_clock_hours), 3600.0
    twin_wall = mean(lambda one: one.wall_s)
    yield Compared("wall-clock", wall.value * hour, (wall.error or 0.0) * hour, *twin_wall)
    hours_error = 0.0
    if outcome is not None:
        hours_error = outcome.waited_ns.error / 1e9
        if case.training_run.warm_pool:
            hours_error += outcome.held_ns.error / 1e9
    busy = mean(lambda one: one.worker_s)
    yield Compared("worker-hours", present(row.worker_hours).value * hour, hours_error, *busy)
    if outcome is None:
        return
    billed_error = hours_error * present(row.cost).billed_ratio * 2 if case.training_run.warm_pool else 0.0
    yield Compared("billed", present(row.cost).sandbox_usd.value, billed_error, *mean(lambda one: one.billed_s))
    for name, one, value in (
        ("creates", outcome.attempts, lambda one: one.counts["attempts"]),
        ("throttled", outcome.waited_ns, lambda one: one.waited["token"] * 1e9),
        ("hits", outcome.hits, lambda one: one.counts["hits"]),
    ):
        if one.value or mean(value)[0]:
            yield Compared(name, one.value, one.error, *mean(value))
