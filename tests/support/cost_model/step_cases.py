"""Random runs in steps that combine what docs/simulation.md has, asked of the step model and of its SimPy twin."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from costmodel import Precision, Recording, Think, TrainingRun, load, load_prices
from costmodel.attribution.replications import Replications, repeated
from costmodel.simulation.attempts import Trials
from costmodel.simulation.state import StepTaken
from costmodel.training.run import Images
from costmodel.workload.pool import pools
from tests.support.cost_model.costmodel_files import S, cell, trial, write
from tests.support.cost_model.step_twin import StepFound, StepTwin
from tests.support.cost_model.step_twin_trials import StepAsked, StepTrial

ACTIONS: Final = 4
TRIALS: Final = 16
KINDS: Final = ("nodes", "images", "pool", "rate", "failures", "timeout", "think", "over", "trainer", "cleanup")
SHEET: Final = (
    'date = 2026-01-01\n[[sandbox]]\nsubstrate = "docker"\nusd_per_hour = 3600\nminimum_s = 0\nincrement_s = 0.000001\n'
    'source = "a test"\n'
)
WIDE: Final = 3.5
"""Standard errors of a difference, of 16 worlds and of the twin's runs, that chance stays within in 99.9 %."""


@dataclass(frozen=True)
class StepCase:
    """One training run, for both."""

    kinds: tuple[str, ...]
    training_run: TrainingRun
    asked: StepAsked

    @property
    def told(self) -> str:
        """What it combines."""
        asked = self.asked
        more = [asked.policy, asked.on_failure]
        more += [asked.placement] if asked.images else []
        more += ["hazard"] if asked.failure_hazard else []
        more += [f"correlation {asked.correlation}"] if asked.correlation else []
        more += [f"staleness {asked.staleness}"] if asked.staleness else []
        return f"{', '.join(self.kinds)} ({', '.join(more)})"


@dataclass(frozen=True)
class StepCompared:
    """One quantity of a run: the model's mean over its worlds and the twin's over its runs, with standard errors."""

    name: str
    model: float
    model_se: float
    twin: float
    twin_se: float

    @property
    def inside(self) -> bool:
        """Whether chance explains the difference; a thousandth of a quantity is never told apart."""
        slack = 1e-3 * max(abs(self.twin), abs(self.model)) + 1e-9
        return abs(self.model - self.twin) <= WIDE * math.hypot(self.model_se, self.twin_se) + slack

    def __str__(self) -> str:
        """As the benchmark prints it."""
        return f"{self.name:20} {self.model:10.4g} ± {self.model_se:.2g}, twin {self.twin:10.4g} ± {self.twin_se:.2g}"


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
    asked: dict[str, Any] = {"trials": trials, "rollouts": rollouts, "workers": workers, "batch": batch, "group": group}
    training_run: dict[str, Any] = {
        "trajectories": rollouts,
        "workers": workers,
        "prompts": prompts,
        "group_size": group,
    }
    training_run |= {"precision": Precision(seed=seed), "run_sd": 0.0}  # both of these trials, and of no other run
    policy = rng.choice(("sync", "one-step-off", "async")) if "trainer" in kinds else "sync"

    def both(ours: str, theirs: str, value: Any) -> None:
        training_run[ours] = asked[theirs] = value

    both("policy", "policy", policy)
    if "trainer" in kinds:
        both("train_s", "train_s", round(mean * rng.choice((0.3, 1.5)), 2))
        if policy == "async" and rng.random() < 0.7:
            both("staleness", "staleness", rng.choice((1, 2)))
    if "nodes" in kinds:
        pods = rng.choice((2, 4))
        nodes = max(-(-group // pods), rng.choice((workers // pods, workers // pods // 2, workers // pods + 2)))
        both("nodes", "nodes", nodes)
        training_run["pods_per_node"] = asked["pods"] = pods
    if "images" in kinds:
        _images(rng, mean, policy, both, training_run, asked)
    if "rate" in kinds:
        both("create_rate", "rate", round(workers / mean * rng.choice((0.5, 1.0, 3.0)), 3))
        both("create_burst", "burst", rng.choice((1, 6)))
    if "failures" in kinds:
        _failures(rng, mean, kinds, policy, both)
    if "think" in kinds:
        median, sigma = round(mean / 8, 2), rng.choice((0.6, 1.2))
        training_run["think"], asked["think"] = Think(round(median * S), sigma), (median, sigma)
        training_run["think_correlation"] = asked["correlation"] = rng.choice((0.0, 0.5, 0.9))
    if "timeout" in kinds:  # it counts waits for pods and images too: without an end to tries there might be none
        think = training_run["think"].mean_ns / S * (ACTIONS - 1) if "think" in kinds else 0.0
        both("timeout_s", "timeout_s", round((mean + think) * rng.choice((1.3, 2.0)), 3))
        if asked.get("on_failure") in (None, "retry"):
            both("max_attempts", "max_attempts", rng.choice((2, 3)))
    if "pool" in kinds and asked.get("on_failure") != "resample":
        _pool(rng, mean, workers, both, training_run, asked)
    if "over" in kinds and policy != "async" and asked.get("on_failure") != "resample":
        both("over_provision", "over", rng.choice((0.25, 0.5)))
    if "cleanup" in kinds:
        both("include_cleanup", "include_cleanup", True)
    return StepCase(tuple(kind for kind in KINDS if kind in kinds), TrainingRun(**training_run), StepAsked(**asked))


LIFE: Final = ("suspend", "fork", "recycle", "build")


def a_life_case(kind: str, seed: int) -> StepCase:
    """Steps that suspend, fork, recycle or build, alone or on nodes and with a create rate."""
    rng = Random(f"life {kind} {seed}")
    trials = [a_trial(rng) for _ in range(TRIALS)]
    group, prompts, steps = rng.choice((4, 8)), rng.choice((2, 4)), rng.choice((1, 3))
    batch = group * prompts
    workers = rng.choice((batch, batch // 2)) if kind != "recycle" else rng.choice((2, 5))
    training_run: dict[str, Any] = {"trajectories": batch * steps, "workers": workers, "prompts": prompts}
    training_run |= {"precision": Precision(seed=seed), "group_size": group, "run_sd": 0.0}
    asked: dict[str, Any] = {"trials": trials, "rollouts": batch * steps, "workers": workers, "batch": batch}
    asked |= {"group": group}

    def both(ours: str, theirs: str, value: Any) -> None:
        training_run[ours] = asked[theirs] = value

    if kind == "suspend":
        training_run["think"], asked["think"] = Think(4 * S, 1.0), (4.0, 1.0)
        suspend = rng.choice((0.0, 3.0)), rng.choice((0.0, 2.0)), rng.choice((0.0, 1.5))
        asked["suspend"] = suspend
        training_run |= dict(zip(("suspend_after_s", "suspend_s", "resume_s"), suspend, strict=True))
        training_run["suspended_usd_hour"] = 0.0
    elif kind != "build":
        both(f"{kind}_s", f"{kind}_s", rng.choice((0.0, 0.7)))
    if kind == "build" or (kind != "suspend" and rng.random() < 0.5):
        pods = 4
        both("nodes", "nodes", max(2, workers // pods + 1, -(-group // pods)))
        training_run["pods_per_node"] = asked["pods"] = pods
        sizes = tuple(round(rng.uniform(1, 6), 2) for _ in range(6))
        training_run["images"], asked["images"] = Images.of(sizes), sizes
        both("placement", "placement", rng.choice(("spread", "colocated", "prepulled")))
        if asked["placement"] != "prepulled":
            both("pull_gb_s", "pull_gb_s", 1.0)
    if kind == "build":
        both("build_s", "build_s", rng.choice((5.0, 60.0)))
        both("builders", "builders", rng.choice((1, 2, None)))
    if rng.random() < 0.5:
        both("create_rate", "rate", round(workers / 10, 3))
    if rng.random() < 0.5 and kind != "suspend":
        both("failure_rate", "failure_rate", 0.1)
    return StepCase((kind,), TrainingRun(**training_run), StepAsked(**asked))


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


def _images(rng: Random, mean: float, policy: str, both: Callable[..., None], training_run: Any, asked: Any) -> None:
    sizes = tuple(round(rng.uniform(1, 6), 2) for _ in range(rng.choice((2, 5, 12))))
    training_run["images"], asked["images"] = Images.of(sizes), sizes
    both("placement", "placement", rng.choice(("spread", "colocated", "prepulled")))
    if asked["placement"] != "prepulled":
        both("pull_gb_s", "pull_gb_s", round(3 / mean * rng.choice((0.5, 2.0)), 3))
        if rng.random() < 0.5:
            training_run["node_disk_gib"] = rng.choice((7.0, 12.0))
            asked["disk_gb"] = training_run["node_disk_gib"] * 2**30 / 1e9


def _failures(rng: Random, mean: float, kinds: set[str], policy: str, both: Callable[..., None]) -> None:
    if rng.random() < 0.7:
        both("failure_rate", "failure_rate", rng.choice((0.05, 0.2)))
    else:
        both("failure_hazard", "failure_hazard", round(3600 / mean * rng.choice((0.05, 0.2)), 3))
    ways = ["retry", "retry"] + ["mask", "resample"] * (policy != "async")
    way = rng.choice(ways)
    if way == "resample" and not kinds.isdisjoint(("over", "pool", "timeout")):
        way = "mask"  # what it does not go with, or what would have groups redone for ever
    if way == "mask" and round(1000 * mean) % 2:
        way = "keep"  # without a draw of its own, so that all other cases stay as they were
    both("on_failure", "on_failure", way)
    if way == "retry":
        both("max_attempts", "max_attempts", rng.choice((None, 2)))
        both("backoff_s", "backoff_s", rng.choice((0.0, round(mean / 3, 2))))
    if way == "resample":
        both("max_attempts", "max_attempts", rng.choice((None, 2)))


def _pool(rng: Random, mean: float, workers: int, both: Callable[..., None], training_run: Any, asked: Any) -> None:
    both("warm_pool", "pool", rng.choice((1, 2, 5)))
    kind = "own" if asked.get("images") else rng.choice(("own", "refill_s", "refill_rate"))
    if kind == "refill_s":
        both(kind, kind, round(mean * rng.choice((0.5, 2)), 3))
    elif kind == "refill_rate":
        both(kind, kind, round(workers / mean * rng.choice((0.2, 0.6)), 3))


# -- answers ---------------------------------------------------------------------------------------------------------


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
    (folder / "sheet.toml").write_text(SHEET)
    return recording


def modelled(case: StepCase, folder: Path) -> Replications:
    """What the step model finds."""
    (pool,) = pools([recorded(case.asked.trials, folder)])
    found = Replications(pool, Trials(pool, case.training_run), case.training_run, load_prices(folder / "sheet.toml"))
    repeated([found], lambda: 0.0)
    return found


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


def compared(case: StepCase, folder: Path, runs: int, causes: Sequence[str] = ()) -> Iterator[StepCompared]:
    """Every quantity of a case, and the wall-clock and worker time that each of ``causes`` costs, where it acts."""
    found = modelled(case, folder)
    weights = found.sample.stands_for
    plain = [StepTwin(case.asked, f"{case.training_run.precision.seed}:{run}").run() for run in range(runs)]

    def total(look: Sequence[StepTaken], of: Callable[[StepTaken], float]) -> float:
        return math.fsum(weight * of(step) for weight, step in zip(weights, look, strict=True))

    for name, (ours, theirs) in QUANTITIES.items():
        if name == "sandboxes" and case.asked.pool is not None:
            continue  # the model's has what stands ready in it
        yield _pair(name, [total(world[0], ours) for world in found.plain], list(map(theirs, plain)))
    acting = [cause for cause, acts in found.causes.items() if acts]
    for cause in causes:
        if cause not in acting:
            continue
        look = 1 + acting.index(cause)
        without = [
            StepTwin(_without(case.asked, cause), f"{case.training_run.precision.seed}:{run}").run()
            for run in range(runs)
        ]
        for name in ("wall-clock", "worker time"):
            ours, theirs = QUANTITIES[name]
            saved = [total(world[0], ours) - total(world[look], ours) for world in found.plain]
            yield _pair(f"{cause}: {name}", saved, [theirs(a) - theirs(b) for a, b in zip(plain, without, strict=True)])


def _without(asked: StepAsked, cause: str) -> StepAsked:
    return StepAsked(**{**vars(asked), "without": frozenset({cause})})


def _pair(name: str, ours: Sequence[float], theirs: Sequence[float]) -> StepCompared:
    (model, model_se), (twin, twin_se) = map(_mean, (ours, theirs))
    return StepCompared(name, model, model_se, twin, twin_se)


def _mean(values: Sequence[float]) -> tuple[float, float]:
    center = math.fsum(values) / len(values)
    return center, math.sqrt(math.fsum((one - center) ** 2 for one in values) / (len(values) - 1) / len(values))
