"""Random training runs that combine what docs/simulation.md has, asked of the cost model and of its SimPy twin."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, Final

from costmodel import Images, Precision, Recording, Think, TrainingRun, load, load_prices, pools, project
from costmodel.attribution.replications import Replications, repeated
from costmodel.projection.wall_clock import timed_run
from costmodel.simulation.attempts import Trials
from costmodel.simulation.state import StepTaken
from costmodel.workload.pool import attempts
from costmodel.workload.rescaling import Alternatives
from tests.support.asking import present
from tests.support.cost_model.costmodel_files import S, cell, price_sheet, trial, write
from tests.support.cost_model.step_twin import StepFound, StepTwin
from tests.support.cost_model.step_twin_parts import StepAsked, StepTrial

ACTIONS: Final = 4
TRIALS: Final = 16
KINDS: Final = ("nodes", "images", "pool", "rate", "failures", "timeout", "think", "over", "trainer", "cleanup")
WIDE: Final = 3.5
"""Standard errors of a difference, of 16 worlds and of the twin's runs, that chance stays within in 99.9 %."""


@dataclass(frozen=True)
class StepCase:
    kinds: tuple[str, ...]
    training_run: TrainingRun
    asked: StepAsked


class Question:
    """A training run in the terms of the cost model and of the twin, which agree in most of the names."""

    def __init__(self, trials: Sequence[StepTrial], **both: Any) -> None:
        self.both, self.ours = both, dict[str, Any]()
        self.theirs: dict[str, Any] = {"trials": trials}

    def images(self, sizes: tuple[float, ...]) -> None:
        self.ours["images"], self.theirs["images"] = Images.of(sizes), sizes

    def think(self, median_s: float, sigma: float) -> None:
        self.ours["think"], self.theirs["think"] = Think(round(median_s * S), sigma), (median_s, sigma)

    def case(self, *kinds: str) -> StepCase:
        return StepCase(kinds, TrainingRun(**self.both | self.ours), StepAsked(**self.both | self.theirs))


@dataclass(frozen=True)
class Compared:
    """One quantity of a run from the cost model and from the twin, and by how much chance lets them differ."""

    name: str
    model: float
    twin: float
    chance: float

    @property
    def inside(self) -> bool:
        """Whether chance explains the difference; a thousandth of a quantity is never told apart."""
        slack = 1e-3 * max(abs(self.twin), abs(self.model)) + 1e-9
        return abs(self.model - self.twin) <= self.chance + slack

    def __str__(self) -> str:
        return f"{self.name:20} {self.model:10.4g}, twin {self.twin:10.4g} ± {self.chance:.2g}"


def a_step_case(seed: int) -> StepCase:
    """Two to six kinds of what may be asked for, with random settings."""
    rng = Random(f"step {seed}")
    kinds = set(rng.sample(KINDS, rng.randint(2, 6)))
    if "images" in kinds:
        kinds.add("nodes")
    trials = [a_trial(rng) for _ in range(TRIALS)]
    mean = sum(t.create_s + t.ready_s + t.preload_s + sum(c for c, _ in t.commands_s) for t in trials) / TRIALS
    group, prompts, steps = rng.choice((2, 4, 8)), rng.choice((2, 4, 6)), rng.choice((1, 2, 3, 4))
    batch = group * prompts
    rollouts = batch * steps + (rng.choice((0, group)) if steps > 1 else 0)
    workers = max(group, rng.choice((batch, batch // 2, 2 * batch)))
    found = Question(trials, trajectories=rollouts, workers=workers, group_size=group)
    both = found.both
    # both of these trials, and of no other run
    found.ours |= {"prompts": prompts, "precision": Precision(seed=seed), "run_sd": 0.0}
    found.theirs["batch"] = batch
    policy = both["policy"] = rng.choice(("sync", "one-step-off", "async")) if "trainer" in kinds else "sync"
    if "trainer" in kinds:
        both["train_s"] = round(mean * rng.choice((0.3, 1.5)), 2)
        if policy == "async" and rng.random() < 0.7:
            both["staleness"] = rng.choice((1, 2))
    if "nodes" in kinds:
        pods = both["pods_per_node"] = rng.choice((2, 4))
        both["nodes"] = max(-(-group // pods), rng.choice((workers // pods, workers // pods // 2, workers // pods + 2)))
    if "images" in kinds:
        found.images(tuple(round(rng.uniform(1, 6), 2) for _ in range(rng.choice((2, 5, 12)))))
        both["placement"] = rng.choice(("spread", "colocated", "prepulled"))
        if both["placement"] != "prepulled":
            both["pull_gb_s"] = round(3 / mean * rng.choice((0.5, 2.0)), 3)
            if rng.random() < 0.5:
                gib = found.ours["node_disk_gib"] = rng.choice((7.0, 12.0))
                found.theirs["disk_gb"] = gib * 2**30 / 1e9
    if "rate" in kinds:
        both["create_rate"] = round(workers / mean * rng.choice((0.5, 1.0, 3.0)), 3)
        both["create_burst"] = rng.choice((1, 6))
    if "failures" in kinds:
        both |= _failures(rng, mean, kinds, policy)
    if "think" in kinds:
        found.think(round(mean / 8, 2), rng.choice((0.6, 1.2)))
        both["think_correlation"] = rng.choice((0.0, 0.5, 0.9))
    way = both.get("on_failure")
    if "timeout" in kinds:  # it counts waits for pods and images too: without an end to tries there might be none
        think = found.ours["think"].mean_ns / S * (ACTIONS - 1) if "think" in kinds else 0.0
        both["timeout_s"] = round((mean + think) * rng.choice((1.3, 2.0)), 3)
        if way in (None, "retry"):
            both["max_attempts"] = rng.choice((2, 3))
    if "pool" in kinds and way != "resample":
        both["warm_pool"] = rng.choice((1, 2, 5))
        kind = "own" if "images" in kinds else rng.choice(("own", "refill_s", "refill_rate"))
        if kind == "refill_s":
            both[kind] = round(mean * rng.choice((0.5, 2)), 3)
        elif kind == "refill_rate":
            both[kind] = round(workers / mean * rng.choice((0.2, 0.6)), 3)
    if "over" in kinds and policy != "async" and way != "resample":
        both["over_provision"] = rng.choice((0.25, 0.5))
    if "cleanup" in kinds:
        both["include_cleanup"] = True
    return found.case(*(kind for kind in KINDS if kind in kinds))


def _failures(rng: Random, mean: float, kinds: set[str], policy: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if rng.random() < 0.7:
        found["failure_rate"] = rng.choice((0.05, 0.2))
    else:
        found["failure_hazard"] = round(3600 / mean * rng.choice((0.05, 0.2)), 3)
    way = rng.choice(["retry", "retry"] + ["mask", "resample"] * (policy != "async"))
    if way == "resample" and not kinds.isdisjoint(("over", "pool", "timeout")):
        way = "mask"  # what it does not go with, or what would have groups redone for ever
    if way == "mask" and round(1000 * mean) % 2:
        way = "keep"  # without a draw of its own, so that all other cases stay as they were
    found["on_failure"] = way
    if way in ("retry", "resample"):
        found["max_attempts"] = rng.choice((None, 2))
    if way == "retry":
        found["backoff_s"] = rng.choice((0.0, round(mean / 3, 2)))
    return found


LIFE: Final = ("suspend", "fork", "recycle", "build")


def a_life_case(kind: str, seed: int) -> StepCase:
    """Steps that suspend, fork, recycle or build, alone or on nodes and with a create rate."""
    rng = Random(f"life {kind} {seed}")
    trials = [a_trial(rng) for _ in range(TRIALS)]
    group, prompts, steps = rng.choice((4, 8)), rng.choice((2, 4)), rng.choice((1, 3))
    batch = group * prompts
    workers = rng.choice((batch, batch // 2)) if kind != "recycle" else rng.choice((2, 5))
    found = Question(trials, trajectories=batch * steps, workers=workers, group_size=group)
    both = found.both
    found.ours |= {"prompts": prompts, "precision": Precision(seed=seed), "run_sd": 0.0}
    found.theirs["batch"] = batch
    if kind == "suspend":
        found.think(4.0, 1.0)
        suspend = found.theirs["suspend"] = rng.choice((0.0, 3.0)), rng.choice((0.0, 2.0)), rng.choice((0.0, 1.5))
        found.ours |= dict(zip(("suspend_after_s", "suspend_s", "resume_s"), suspend, strict=True))
        found.ours["suspended_usd_hour"] = 0.0
    elif kind != "build":
        both[f"{kind}_s"] = rng.choice((0.0, 0.7))
    if kind == "build" or (kind != "suspend" and rng.random() < 0.5):
        both |= {"nodes": max(2, workers // 4 + 1, -(-group // 4)), "pods_per_node": 4}
        found.images(tuple(round(rng.uniform(1, 6), 2) for _ in range(6)))
        both["placement"] = rng.choice(("spread", "colocated", "prepulled"))
        if both["placement"] != "prepulled":
            both["pull_gb_s"] = 1.0
    if kind == "build":
        both |= {"build_s": rng.choice((5.0, 60.0)), "builders": rng.choice((1, 2, None))}
    if rng.random() < 0.5:
        both["create_rate"] = round(workers / 10, 3)
    if rng.random() < 0.5 and kind != "suspend":
        both["failure_rate"] = 0.1
    return found.case(kind)


def a_trial(rng: Random) -> StepTrial:
    """An attempt of four commands."""
    commands = [rng.lognormvariate(0.5, 0.6) for _ in range(ACTIONS)]
    return StepTrial(
        ok=True,
        create_s=round(rng.lognormvariate(0.3, 0.4), 3),
        ready_s=round(rng.lognormvariate(-0.7, 0.5), 3),
        preload_s=round(rng.uniform(0, 0.6), 3),
        commands_s=tuple((round(took, 3), round(took * rng.uniform(0.5, 0.9), 3)) for took in commands),
        gap_s=round(rng.uniform(0.02, 0.1), 3),
        cleanup_s=round(rng.uniform(0.2, 1.5), 3),
    )


LAWS: Final[dict[str, Callable[[Random], float]]] = {
    "gamma CV .3": lambda rng: rng.gammavariate(11.1, 1.8),
    "lognormal .5": lambda rng: rng.lognormvariate(2.9, 0.5),
    "lognormal 1": lambda rng: rng.lognormvariate(2.5, 1.0),
    "Pareto 2.5": lambda rng: 12 * rng.paretovariate(2.5),
    "90/10": lambda rng: rng.gauss(14, 0.5) if rng.random() < 0.9 else rng.gauss(90, 2),
}
LIMITS: Final = ("rate", "retries", "timeout", "pool", "think", "quota")


def a_limits_case(seed: int) -> StepCase:
    """A run without steps of 40 trials of a random law, with two to five limits."""
    rng = Random(seed)
    law = rng.choice(list(LAWS))
    kinds = tuple(sorted(rng.sample(LIMITS, rng.randint(2, 5)), key=LIMITS.index))
    trials = []
    for number in range(40):
        length, ok = LAWS[law](rng), not ("retries" in kinds and number % 7 == 3)
        cold = round(length * rng.uniform(0.1, 0.4), 3)
        each = round((length - cold) / 4 if ok else (length - cold) / 8, 3)
        trials.append(StepTrial(ok, cold, 0.0, 0.0, ((each, each),) * (4 if ok else 2), gap_s=0.0, cleanup_s=0.5))
    lengths = sorted(one.create_s + sum(took for took, _ in one.commands_s) for one in trials)
    mean = sum(lengths) / len(lengths)
    rollouts, workers = rng.choice((40, 90, 150)), rng.choice((10, 25, 60))
    found = Question(trials, trajectories=rollouts, workers=workers)
    both = found.both
    found.ours["precision"] = Precision(seed=seed)
    found.theirs |= {"batch": rollouts, "policy": "async"}
    if "rate" in kinds:
        both["create_rate"] = round(workers / mean * rng.choice((0.4, 0.8, 1.5)), 3)
        both["create_burst"] = rng.choice((1, 5, 20))
    if "retries" in kinds:
        both |= {"max_attempts": rng.choice((None, 2, 4)), "backoff_s": rng.choice((0.0, round(mean / 3, 2)))}
    if "timeout" in kinds:
        thinks = 0.45 * mean * ("think" in kinds)
        both["timeout_s"] = round(lengths[len(lengths) * 4 // 5] + thinks, 4) + 0.00005
    if "think" in kinds:
        found.think(round(mean / 10, 2), rng.choice((0.6, 1.2)))
    if "pool" in kinds:
        both["warm_pool"] = rng.choice((3, 8, 30))
        kind = rng.choice(("refill_s", "refill_rate", "group_size"))
        if kind == "group_size":
            both[kind] = 8
        else:
            value = mean * rng.choice((0.5, 2)) if kind == "refill_s" else workers / mean * rng.choice((0.3, 0.7))
            both[kind] = round(value, 3)
    if "quota" in kinds:
        found.ours["quota"] = found.theirs["workers"] = max(4, workers * 2 // 3)
    return found.case(law, *kinds)


def recorded(trials: Sequence[StepTrial], folder: Path) -> Recording:
    """Write a recording of these trials, beside a price sheet; what only the recording has takes no time."""
    events = []
    for number, one in enumerate(trials):
        own = trial(
            number,
            create=_ns(one.create_s),
            ready=_ns(one.ready_s),
            actions=[_ns(took) for took, _ in one.commands_s],
            runs=[_ns(run) for _, run in one.commands_s],
            gaps=[_ns(one.gap_s)] * len(one.commands_s),
            cleanup=_ns(one.cleanup_s),
            extra=_ns(one.preload_s),
            outcome="ok" if one.ok else "failed",
        )
        start = own[2][3] + own[2][4]
        events.append([*own[:3], [5, number, "preload", start, _ns(one.preload_s)], *own[3:]])
    recording = load(write(folder / "case.msgpack", events, cell(actions=ACTIONS)))
    assert isinstance(recording, Recording)
    price_sheet(folder, "usd_per_hour = 3600")
    return recording


def _ns(seconds: float) -> int:
    return round(seconds * S)


QUANTITIES: Final[dict[str, tuple[Callable[[StepTaken], float], Callable[[StepFound], float]]]] = {
    "wall-clock": (lambda step: step.wall_ns / 1e9, lambda run: run.wall_s),
    "worker time": (lambda step: step.held_ns / 1e9, lambda run: run.worker_s),
    "sandboxes": (lambda step: step.usd, lambda run: run.billed_s),
    "attempts": (lambda step: step.attempts, lambda run: run.counts["attempts"]),
    "delivered": (lambda step: step.delivered, lambda run: run.counts["delivered"]),
    "hits": (lambda step: step.hits, lambda run: run.counts["hits"]),
    "pulled": (lambda step: step.pulled_gb, lambda run: run.pulled_gb),
}
"""Name → what the model says of a step, and the twin of a run."""


def compared(case: StepCase, folder: Path, runs: int, causes: Sequence[str] = ()) -> Iterator[Compared]:
    """Every quantity of a case, and the wall-clock and worker time that each of ``causes`` costs, where it acts."""
    (pool,) = pools([recorded(case.asked.trials, folder)])
    run = Alternatives(pool, case.training_run, load_prices(folder / "sheet.toml"))
    found = Replications(run, Trials(pool, case.training_run))
    repeated([found], lambda: 0.0)
    weights = found.sample.stands_for
    plain = [StepTwin(case.asked, f"{case.training_run.precision.seed}:{run}").run() for run in range(runs)]

    def total(look: Sequence[StepTaken], of: Callable[[StepTaken], float]) -> float:
        return math.fsum(weight * of(step) for weight, step in zip(weights, look, strict=True))

    for name, (ours, theirs) in QUANTITIES.items():
        if name == "sandboxes" and case.asked.warm_pool is not None:
            continue  # the model's has what stands ready in it
        yield _pair(name, [total(world[0], ours) for world in found.plain], list(map(theirs, plain)))
    acting = [cause for cause, acts in found.causes.items() if acts]
    for cause in causes:
        if cause not in acting:
            continue
        look = 1 + acting.index(cause)
        asked = replace(case.asked, without=frozenset({cause}))
        without = [StepTwin(asked, f"{case.training_run.precision.seed}:{run}").run() for run in range(runs)]
        for name in ("wall-clock", "worker time"):
            ours, theirs = QUANTITIES[name]
            saved = [total(world[0], ours) - total(world[look], ours) for world in found.plain]
            yield _pair(f"{cause}: {name}", saved, [theirs(a) - theirs(b) for a, b in zip(plain, without, strict=True)])


def _pair(name: str, ours: Sequence[float], theirs: Sequence[float]) -> Compared:
    (model, model_se), (twin, twin_se) = map(_mean, (ours, theirs))
    return Compared(name, model, twin, WIDE * math.hypot(model_se, twin_se))


def _mean(values: Sequence[float]) -> tuple[float, float]:
    center = math.fsum(values) / len(values)
    return center, math.sqrt(math.fsum((one - center) ** 2 for one in values) / (len(values) - 1) / len(values))


def limits_compared(case: StepCase, folder: Path, runs: int) -> Iterator[Compared]:
    """Every quantity of a run without steps: projected with its stated error, and three standard errors of the twin."""
    recording = recorded(case.asked.trials, folder)
    (row,) = project([recording], case.training_run, load_prices(folder / "sheet.toml"), effort=0.0)
    (pool,) = pools([recording])
    timed = present(timed_run(attempts(pool, pool.length, case.training_run), pool, case.training_run))
    outcome = timed.run.outcome
    twins = [StepTwin(case.asked, f"twin {case.training_run.precision.seed} {run}").run() for run in range(runs)]

    def pair(name: str, model: float, error: float, of: Callable[[StepFound], float]) -> Compared:
        center, noise = _mean([of(one) for one in twins])
        return Compared(name, model, center, error + 3 * noise)

    wall, hour = present(row.wall_clock_hours), 3600.0
    yield pair("wall-clock", wall.value * hour, (wall.error or 0.0) * hour, lambda one: one.wall_s)
    pooled = bool(case.training_run.warm_pool)
    hours_error = 0.0 if outcome is None else (outcome.waited_ns.error + pooled * outcome.held_ns.error) / 1e9
    yield pair("worker-hours", present(row.worker_hours).value * hour, hours_error, lambda one: one.worker_s)
    if outcome is None:
        return
    cost = present(row.cost)
    billed_error = hours_error * cost.billed_ratio * 2 * pooled
    yield pair("billed", cost.sandbox_usd.value, billed_error, lambda one: one.billed_s)
    yield pair("creates", outcome.attempts.value, outcome.attempts.error, lambda one: one.counts["attempts"])
    yield pair("throttled", outcome.waited_ns.value, outcome.waited_ns.error, lambda one: one.throttled_s * 1e9)
    yield pair("hits", outcome.hits.value, outcome.hits.error, lambda one: one.counts["hits"])
