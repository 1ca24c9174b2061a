"""Seeded questions to the cost model, and their answers to nine digits in ``pinned.json``.

A changed number is a changed projection, interval or verdict of somebody. Every difference belongs into the note of its
change, with the reason. ``python -m tests.costmodel.test_pinned`` then writes the table again.
"""

from __future__ import annotations

import itertools
import json
import math
import tempfile
import tomllib
import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass, replace
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

import costmodel as cm
from costmodel.projection.wall_clock import tail_limits
from costmodel.recording.breakdown import Measures
from costmodel.recording.causes import CAUSE_POLICIES, cause_of, policy_of, recorded_cause
from costmodel.recording.events import Health
from costmodel.recording.runner_health import WorkerFitness
from costmodel.recording.trial import PER_ACTION, PER_TRIAL, RecordedTrial, values_of
from costmodel.simulation import makespan
from costmodel.simulation.attempts import Retries, Trials, timed, with_retries
from costmodel.simulation.random_streams import AttemptStream, RandomStream, ThinkQuantiles
from costmodel.simulation.rules import StepRules
from costmodel.simulation.simulator import simulate_steps
from costmodel.simulation.step_sampling import following, is_alike, rollouts_of, sample_steps, settling, smaller
from costmodel.statistics import intervals, quantiles, repetitions, verdict
from costmodel.statistics.distribution import Distribution, strata_of_sum, strata_of_sums
from costmodel.statistics.repetitions import RunKey, estimate
from costmodel.workload.pool import Pool, pools
from costmodel.workload.rescaling import Level, LevelCurve
from tests.support.compared import noisy_cells
from tests.support.cost_model.costmodel_files import S, cell, trial, write
from tests.support.cost_model.decision_worlds import RUN, candidate_at, measured, record, unmeasured
from tests.support.cost_model.repeated import estimated

TABLE: Final = Path(__file__).with_name("pinned.json")
PUBLISHED: Final = Path(__file__).parents[2] / "scenarios" / "published"
MS: Final = S // 1000
ERRORS: Final = ["ExecTimeout", "AgentTimeoutError", "VerifierTimeoutError", "RateLimitError", "BadRequestError", "Odd"]
QUESTIONS: Final[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("pinned_questions.toml").read_text())


# -- recordings


def _trials(
    rng: Random, cells: int, repetitions: int, trials: int, sd: float, *, actions: int, known: bool, fails: float
) -> Iterator[list[list[Any]]]:
    """Trials with every part of a trajectory, failures of every cause, and seconds of the runner between them."""
    effects = [rng.lognormvariate(0, sd) for _ in range(repetitions)]
    for number in range(cells * trials):
        repetition = number * repetitions // (cells * trials)
        slow = effects[repetition] * (1 + 0.3 * (number % cells))
        failed = rng.random() < fails
        count = rng.randint(1, actions - 1) if failed else actions
        taken = [round(slow * rng.lognormvariate(0, 0.7) * S) for _ in range(count)]
        runs = [ns * 7 // 10 if known or rng.random() < 0.7 else -1 for ns in taken]
        create, preload = round(slow * rng.lognormvariate(0.5, 0.4) * S), rng.choice((0, 300 * MS))
        events = trial(
            number,
            cell=number % cells,
            create=create,
            ready=round(rng.lognormvariate(-0.5, 0.4) * S),
            actions=taken,
            runs=runs,
            cpus=[max(0, run) * 3 // 5 for run in runs] if rng.random() < 0.9 or known else (),
            wrappers=[ns // 40 for ns in taken],
            thinks=[round(rng.uniform(0, 3) * S) for _ in range(count)],
            gaps=[rng.randrange(40 * MS) for _ in range(count)],
            setup=[(S // 2, S // 3), (S // 4, S // 8)] if number % 3 else (),
            ready_again=rng.choice((0, S // 5)),
            queued=rng.choice((0, 0, S)),
            cleanup=round(rng.uniform(0.2, 2) * S),
            outcome=rng.choice(("failed", "timeout")) if failed else "ok",
            error=rng.choice(ERRORS) if failed else "",
            block=number // (4 * cells),
            warm_up=number == 1,
            repetition=repetition,
            extra=preload,
        )
        start, end = events[0][4], events[-1][6]
        created = events[1][3] + create
        more = [[4, number, "started", created - S // 3, MS], [5, number, "preload", created, preload]] * (preload > 0)
        more += [[5, number, "suspend", created, S // 9], [5, number, "resume", created, S // 7]] * (number % 5 == 0)
        more += [[4, number, rng.choice(("image_cached", "image_built", "borrowed", "other")), created, MS]]
        events[0] += ["task", "image", rng.choice((-1, 7 * MS)), rng.choice(("", "g")), rng.choice((-1, 0, 3))]
        events[-1] += ["node", "verifier_failed" if failed and number % 7 == 0 else ""]
        after = [[5, number, "verify", end, S], [5, number, "snapshot", end, 2 * S], [5, number, "fork", end, 3 * S]]
        yield [*events[: 2 + (number % 9 > 0)], *more, *events[3:-1], *after, events[-1]]  # some without a ready phase
        seconds = [(start + second * S, rng.choice((MS,) * 9 + (6 * MS,))) for second in range(3)]
        yield [[8, at, 0, lag, 0, rng.choice((100, 300, 900)), 1, 0, MS] for at, lag in seconds]


@cache
def _recording(
    name: str,
    cells: int = 2,
    repetitions: int = 3,
    trials: int = 40,
    sd: float = 0.08,
    actions: int = 6,
    *,
    known: bool = True,
    fails: float = 0.15,
    apart: str = "substrate",
) -> cm.Recording:
    rng = Random(name)
    values = {"substrate": ("docker", "local"), "concurrency": (1, 4, 16), "actions": (6, 9)}[apart]
    more: dict[str, Any] = {"cycle": 3}
    if name == "untold":
        more |= {"provenance": "imported", "capabilities": ["unknown:held", "unknown:think", "not unknown:create"]}
    more |= {"arrival": "open:2/s"} if apart == "actions" else {}
    described = [cell(place, **{"actions": actions, **more, apart: values[place]}) for place in range(cells)]
    events = list(_trials(rng, cells, repetitions, trials, sd, actions=actions, known=known, fails=fails))
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / f"{name}.msgpack", events, *described, run_id=name)
        recording = cm.load(path)
        assert isinstance(recording, cm.Recording)
        recording.table = {table: cm.frame(path, table=table) for table in ("trials", "actions")}  # type: ignore[attr-defined]
    return recording


# -- questions


UNPINNED: Final = ("identity", "length", "label", "provenance", "sources", "trials")
"""Fields of a row that say where it is from."""


READ: Final[dict[str, Callable[[Any], object]]] = {
    "think": lambda given: cm.Think(*given),
    "images": lambda given: cm.Images.between(*given),
    "actions": lambda given: cm.Length.between(*given) if isinstance(given, list) else given,
    "precision": lambda given: cm.Precision(**given),
}


def _training_run(**changes: Any) -> cm.TrainingRun:
    return cm.TrainingRun(**{name: READ[name](given) if name in READ else given for name, given in changes.items()})


def _asked(**changes: Any) -> cm.TrainingRun:
    return _training_run(**{"trajectories": 2000, "workers": 40, "precision": {"effort": 0.2}, **changes})


def _rows(recording: cm.Recording, training_run: cm.TrainingRun, **more: Any) -> dict[str, object]:
    prices = cm.load_prices(Path(__file__).with_name("pinned_prices.toml"))
    rows = cm.project(recording, training_run, prices, **{"effort": 0.0, **more})
    names = [field.name for field in fields(rows[0]) if field.name not in UNPINNED]
    answer = {f"{place} {name}": getattr(row, name) for place, row in enumerate(rows) for name in names}
    lasting = [[flag for flag in row.flags if flag != "stale_prices"] for row in rows]  # it comes with the calendar
    return answer | {f"{place} flags": flags for place, flags in enumerate(lasting)}


def _projected(section: str, name: str) -> dict[str, object]:
    usual, effort = ({"trajectories": 150}, 0.001) if section == "attributed" else ({}, 0.0)
    return _rows(_recording("measured"), _asked(**{**usual, **QUESTIONS[section][name]}), effort=effort)


def _of_other_recordings() -> dict[str, object]:
    """Repetitions 1, 2 and 6, unknown in-sandbox times, no failures, a few trials, concurrencies and lengths."""
    unknown, levels = _recording("unknown", known=False), _recording("levels", 3, apart="concurrency")
    others = {
        **{f"{runs} runs": _rows(_recording(f"runs {runs}", 1, runs, 24, 0.1), _asked()) for runs in (1, 2, 6)},
        "few": _rows(_recording("few", 1, 1, 4, fails=0.0), _asked(actions=40)),
        "unknown": _rows(unknown, _asked(batch=60)),
        "levels": _rows(levels, _asked()),
        "beyond": _rows(levels, _asked(workers=11), each_level=True),
        "lengths": _rows(_recording("lengths", apart="actions"), _asked(actions=8)),
        "untold": _rows(_recording("untold", 1, known=False), _asked()),
        "provider": _rows(_recording("measured"), _asked(), providers=[cm.load_provider("e2b")]),
        "nothing": _rows(_recording("measured"), _asked(trajectories=0, batch=60)),
        "printed": _rows(cm.load(PUBLISHED / "essay.toml"), _asked()),
    }
    for name in ("essay", "paper"):
        rows = cm.project(cm.load(PUBLISHED / f"{name}.toml"), cm.TrainingRun(trajectories=10_000, workers=500))
        others[name] = {
            str(place): [row.worker_hours, row.wall_clock_hours, row.versus, row.flags]
            for place, row in enumerate(rows)
        }
    others["reference"] = _rows(unknown, _asked(), reference=cm.reference_of([_recording("measured")]))
    return {f"{name} {key}": value for name, answer in others.items() for key, value in answer.items()}


# -- decisions and comparisons


def _decided() -> dict[str, object]:
    """Measured sides, unmeasured ones, whose inputs have ranges, with their thresholds, and ``--what-if``."""
    with tempfile.TemporaryDirectory() as folder:
        both = record(Path(folder) / "both", Random(1), [0.3, 0.3], [1.0, 1.4], 130)
        alone = record(Path(folder) / "alone", Random(1), [0.3], [1.0], 130)
    start, slower = (measured(both, name, RUN) for name in ("docker", "kubernetes"))
    provider, limits = "daytona:slowdown=1,dispatch=300ms", replace(RUN, create_rate=10.0, create_burst=600)
    stated = candidate_at(alone, provider, limits, frozenset({"create_rate", "failure_rate"}))
    unstated = candidate_at(alone, provider, RUN)
    sides = {"slower": (start, slower), "faster": (slower, start)}
    sides |= {"stated": (start, unmeasured(stated)), "unstated": (start, unmeasured(unstated))}
    found = {key: cm.decide_between(*pair, effort=0.01) for key, pair in sides.items()}
    names = ("verdict", "unit", "saving", "saving_at_worst", "saving_at_best", "start_bill", "goal_bill", "open_points")
    answer = {f"{key} {name}": getattr(each, name) for key, each in found.items() for name in names}
    for key in ("stated", "unstated"):
        for effect in cm.input_effects(found[key], rough=key == "unstated"):
            answer[f"{key} {effect.input.name}"] = [effect.best, effect.worst, effect.at]
    prices = cm.load_prices(Path(__file__).with_name("pinned_prices.toml"))
    asleep = {"think": cm.Think(4 * S, 1.0), "suspend_after_s": 2.0, "suspended_usd_hour": 0.01, "workers": 4}
    built = {"images": cm.Images.between(1, 5, 9), "placement": "prepulled", "build_s": 30.0, "builders": 1}
    for more, actions in ((asleep | {"fork_s": 0.4}, ["suspend", "fork", "recycle"]), (built, ["prebuild"])):
        [run, *_] = cm.behind([both], replace(RUN, trajectories=160, **more), prices, ())
        answer |= {each.action: [each.usd, each.step_s, each.thresholds] for each in cm.what_if(run, actions)}
    return answer


def _compared() -> dict[str, object]:
    """Cells that fail more, are faster, as before or slower, by limits of 10 % and zero; and a sweep of levels."""
    [ladder] = cm.concurrency_sweep.ladders(pools([_recording("levels", 3, apart="concurrency")]))
    answer: dict[str, object] = {f"level {level.concurrency}": level for level in ladder.levels}
    answer["saturation"] = ladder.knee
    pairs = {"failing": [_recording("measured"), _recording("failing more", fails=0.6)]}
    for slower in (0.7, 1.0, 1.07, 1.3):
        drawn = (("x", 1.0), ("y", slower))
        pairs[f"{slower}"] = [noisy_cells(Random(name), 4, 0.02, by, name, 2, 0.1) for name, by in drawn]
    for name, (before, after) in pairs.items():
        for limit, asked in ((0.1, "mean:trajectory failure_rate"), (0.0, "mean:action p50:action p95:action")):
            for each in cm.compare(before, after, [cm.parse_metric(one, limit) for one in asked.split()]).comparisons:
                key = f"{name} {each.after.identity.substrate} {each.after.identity.tier} {each.metric.name}"
                answer[key] = [each.change, each.verdict, each.beyond, each.needs, each.by_chance, each.reason]
    return answer


# -- the simulator


CAUSES: Final = ("create", "ready", "image_pull", "dispatch", "contention", "throttle", "failures", "cleanup")


def _pool() -> Pool:
    return pools([_recording("failing", 1, trials=60, fails=0.3)])[0]


def _pairs(first: str) -> dict[str, object]:
    """Five steps with every two settings that go together, and without one cause under another random stream."""
    answer: dict[str, object] = {}
    settings, usual = QUESTIONS["settings"], {"trajectories": 60, "workers": 9, "prompts": 3, "group_size": 4}
    for place, (second, changes) in enumerate(settings.items()):
        try:
            asked = _training_run(**{**usual, **settings[first], **changes})
        except cm.TrainingRunError:
            continue
        if second == first or list(settings).index(first) < place:
            trials = Trials(_pool(), asked, 0.8 if place % 3 else None)
            answer[second] = _simulated(asked, trials, (), 0)
            answer[f"{second} without"] = _simulated(asked, trials, (CAUSES[place % 8], "think"), 1, factor=1.2)
    return answer


def _simulated(asked: cm.TrainingRun, trials: Trials, without: Sequence[str], seed: int, factor: float = 1.0) -> object:
    rules = StepRules(asked, without)
    thinking = None if asked.think is None else ThinkQuantiles(asked.think, trials, asked.suspension)
    fork_ns = None if asked.fork_s is None else round(asked.fork_s * S)
    stream = RandomStream(asked, trials, thinking, seed, [1 + place % 3 for place in range(60)] if seed else None)
    source = AttemptStream(
        stream,
        timed(trials.successes, without, factor, fork_ns),
        timed(trials.failures, without, factor, fork_ns, ok=False),
        without,
    )
    sample = sample_steps(asked, rules, stream, 6)

    def bill(clocks_ns: Sequence[int], _suspended_ns: float) -> float:
        return sum(math.sqrt(ns + 1) for ns in clocks_ns)

    steps = [step for part in sample.of(seed) for step in simulate_steps(rules, source, part, bill)]
    return [sum(column) for column in zip(*steps, strict=True)]


def _plans() -> dict[str, object]:
    """The simulated steps of longer runs, and smaller systems."""
    answer: dict[str, object] = {}
    for name, changes in QUESTIONS["plans"].items():
        asked = _training_run(**{"workers": 12, **changes})
        rules = StepRules(asked)
        stream = RandomStream(asked, Trials(_pool(), asked), None, 5)
        settled = settling(rules, 4.0 * S)
        for highest in (2, 7):
            sample = sample_steps(asked, rules, stream, highest, settled)
            later = sample._replace(rounds=3)
            numbers = [sample.steps, sample.whole, sample.simulated, later.simulated, sample.alike, later.rollouts(1)]
            segments = [(part.first, part.sizes, part.lead, part.built) for part in (*later.of(0), *later.of(2))]
            disks = [[list(disk) for disk in part.disks] for part in sample.segments]
            answer[f"{name} {highest}"] = [*numbers, later.stands_for, segments, _digest(disks)]
            answer[f"{name} {highest} following"] = following(sample, rules)
        answer[f"{name} rules"] = [settled, is_alike(rules), rollouts_of(asked, rules, 0.0), rules.workers_only]
        for scale in (1, 3, 50):
            less, small = smaller(asked, scale)
            settings = {key: value for key, value in asdict(small).items() if key != "images"}
            answer[f"{name} / {scale}"] = [less, settings]
    return answer


# -- makespans


LAWS: Final = {
    "equal": Distribution.of([5 * S]),
    "two": Distribution({S: 9, 8 * S: 1}),
    "steps": Distribution({S: 3, 2 * S: 2, 4 * S: 1}, trials=3),
    "smooth": Distribution.of([S * math.exp(Random(f"law {place}").gauss(0, 0.8)) for place in range(300)]),
    "zero": Distribution({0: 1}),
    "some zero": Distribution({0: 2, 5 * S: 3}),
}


def _makespans(name: str) -> dict[str, object]:
    law, failed = LAWS[name], LAWS["two"]
    answer: dict[str, object] = {
        "law": law,
        "scaled": law.scaled(7, 3),
        "quantiles": [law.quantile(share / 13) for share in range(13)],
    }
    for jobs, workers in QUESTIONS["jobs"]:
        key = f"{jobs} on {workers}"
        precise = cm.Precision(tolerance=1e-3, effort=0.03, seed=2)
        answer[f"{key}: expected"] = [
            makespan.expected_makespan(law, jobs, workers, how) for how in (cm.Precision(effort=0.1), precise)
        ]
        if jobs and law.mean:
            answer[f"{key}: bounds"] = makespan.makespan_bounds(law, jobs, workers)
            answer[f"{key}: longest"] = [makespan.expected_max(law, jobs, at) for at in (0.0, 1.5 * S, 5.5 * S)]
            answer[f"{key}: in step"] = [
                makespan.out_of_step(law, jobs, workers, off) for off in (2e-2, 2e-3, 1e-3, 5e-5)
            ]
            asked = [{}, {"timeout_s": 11.0}, {"timeout_s": 9.0, "max_attempts": 2, "backoff_s": 1.0}]
            answer[f"{key}: tail"] = [
                tail_limits(
                    law, jobs, share * law.mean * jobs / workers, _asked(workers=workers, **more), excess=excess
                )
                for share, more, excess in itertools.product((1.001, 1.5), asked, (0, 3, 40))
            ]
        if jobs > workers > 1 and len(law.values) > 1 and law.mean:
            answer[f"{key}: renewal"] = makespan.renewal_makespan(law, jobs, workers)
    waves = (3, 5, 8, 12, 17, 25)
    answer["in step"] = [
        law.mean > 0 and makespan.out_of_step(law, 9 * wave, 9, off) for wave in waves for off in (2e-2, 3e-3)
    ]
    answer["random"] = [makespan.random_makespan(law, 40, 7, Random(seed)) for seed in range(3)]
    for cap, share in ((None, Fraction(1, 5)), (2, Fraction(1, 3)), (70, Fraction(9, 10))):
        retries = Retries(share, cap)
        numbers = [float(retries.attempts), float(retries.delivered)]
        answer[f"retried {cap}"] = [*numbers, with_retries(law, failed, retries, S // 2, Random(4))]
    return answer


# -- statistics


def _sample(seed: str, size: int, spread: float = 0.5) -> list[float]:
    rng = Random(seed)
    return [rng.lognormvariate(1, spread) for _ in range(size)]


def _intervals() -> dict[str, object]:
    answer: dict[str, object] = {}
    for size in (1, 2, 3, 4, 12, 60, 250):
        values, weights = _sample(f"values {size}", size), _sample(f"weights {size}", size)
        answer[f"mean of {size}"] = [intervals.mean_interval(values), intervals.mean_interval([4.0] * size)]
        blocks = [place // 4 for place in range(size)]
        answer[f"ratio of {size}"] = [intervals.ratio_interval(values, weights, at) for at in (None, blocks)]
        drifting = [value - 3 + math.sin(place / 5) for place, value in enumerate(values)]
        for series in ([drifting], [drifting[: size // 3], drifting[size // 3 :]], [[0.0] * size]):
            answer[f"correlation of {size} in {len(series)} {series[0][:1]}"] = [
                intervals.correlation_time(series, only_if_seen=seen) for seen in (False, True)
            ]
        ascending = sorted(round(1e6 * value) for value in values)
        answer[f"percentiles of {size}"] = [
            quantiles.percentile(ascending, p, effective)
            for p in (0.01, 0.3, 0.5, 0.9, 0.95, 0.99)
            for effective in (None, max(1, size // 2))
        ]
    sides = [cm.Interval(*limits) for limits in QUESTIONS["intervals"]]
    for first, second in itertools.permutations(sides, 2):
        answer[f"{first.value} and {second.value}"] = [
            intervals.difference(first, second),
            intervals.ratio(first, second) if second.value > 0 else None,
            first.widened(second),
            first.times(1.5).shifted(-2.0).not_negative(),
            first.limits,
            first.at_least,
        ]
    answer["rates"] = [intervals.wilson_interval(k, n) for n in (1, 7, 90) for k in {0, 1, n // 2, n}]
    answer["t"] = [intervals.student_t(n, at) for n in (1, 2, 3, 8, 33, 200, 201, 5_000) for at in (0.6, 0.95, 0.997)]
    answer["needs"] = [quantiles.least_count(p) for p in (0.5, 0.9, 0.95, 0.99)]
    answer["ranks"] = [quantiles.rank_limits(n, p) for n in (1, 5, 6, 30, 400, 20_000) for p in (0.05, 0.5, 0.95)]
    return answer


def _repetitions() -> dict[str, object]:
    """Means over one, two, three and six repetitions, of equal and of different samples."""
    answer: dict[str, object] = {}
    sides = {}
    for runs, trials, sd in ((1, 20, 0.0), (2, 12, 0.1), (3, 9, 0.1), (3, 30, 0.0), (6, 7, 0.05)):
        rng = Random(f"runs {runs} {sd}")
        lists = [
            [math.exp(effect + rng.gauss(0, 0.2)) for _ in range(trials + number)]
            for number, effect in enumerate([rng.gauss(0, sd) for _ in range(runs)])
        ]
        slower = [[1.2 * value + rng.gauss(0, 0.1) for value in values[1:]] for values in lists]
        sides[f"{runs}x{trials}"] = estimated(lists, f"{runs}"), estimated(slower, f"{runs}")
    assumptions = [repetitions.assumed("docker"), repetitions.assumed("nowhere"), repetitions.assumed("docker", 0.07)]
    for name, (first, second) in sides.items():
        answer[name] = [first.scaled(3.0), second]
        for place, assume in enumerate(assumptions):
            answer[f"{name} assumed {place}"] = [
                repetitions.basis(first, assume),
                repetitions.interval(first, assume),
                verdict.judge(first, second, assume),
                verdict.ratio(first, second, assume),
            ]
    for (one, (first, _)), (other, (second, _)) in itertools.permutations(sides.items(), 2):
        assume = assumptions[(len(one) + len(other)) % 3]
        found = verdict.judge(first, second.scaled(0.8), assume)
        needed = [
            verdict.repetitions_needed(found.value, found.verdict.runs, by, measured=measured, level=level)
            for by in (0.05, 0.3, 2.0)
            for measured in (False, True)
            for level in (0.95, 0.9)
            if min(found.verdict.runs) > 0 and (sum(found.verdict.runs) > 2 or not measured)
        ]
        answer[f"{one} against {other}"] = [
            found, found.verdict.tie, verdict.ratio(first, second, assume), needed,
            repetitions.between([first, second]), repetitions.margins(first, second, assume),
            repetitions.spread_under_no_change(first, second, assume)
        ]  # fmt: skip
    origins = [(RunKey("r", place % 3), place // 6) for place in range(40)]
    values = _sample("idle", 40)
    answer["idle"] = estimate(values, [place % 4 != 0 for place in range(40)], origins, 2.0)
    answer["a run without a success"] = estimate(values, [place % 3 != 0 for place in range(40)], origins)
    return answer


def _clustered() -> dict[str, object]:
    """Percentiles of actions within trials within repetitions."""
    answer: dict[str, object] = {}
    for runs, sizes in ((1, (6, 5)), (2, (9, 3)), (3, (20, 4)), (4, (12, 1)), (1, (2, 3))):
        rng = Random(f"clustered {runs} {sizes}")
        trials, actions = sizes
        nested = [
            [[round(1e6 * math.exp(rng.gauss(effect, 0.5))) for _ in range(actions)] for effect in effects]
            for effects in [[rng.gauss(number / 9, 0.4) for _ in range(trials)] for number in range(runs)]
        ]
        other = [[[2 * value for value in values] for values in run] for run in nested]
        ascending = sorted(value for run in nested for values in run for value in values)
        for p in (0.1, 0.5, 0.9, 0.99):
            at = intervals.quantile(ascending, p)
            count = quantiles.worth_by_value(nested)(at)
            within, usual = quantiles.percentile(ascending, p, count), repetitions.assumed("docker")
            compared = ((nested, usual), (nested, repetitions.assumed("docker", 0.2)), (nested[:2], usual, other))
            answer[f"{runs} {sizes} {p}"] = [
                at, count, quantiles.effective_count([values for run in nested for values in run], at),
                *[quantiles.percentile_with_runs(within, p, *runs) for runs in compared],
                quantiles.spread_of(p, nested, other), quantiles.spread_of(p, [[[0, 0]]] * 3)
            ]  # fmt: skip
    return answer


def _curves() -> dict[str, object]:
    answer: dict[str, object] = {}
    for name, levels in QUESTIONS["levels"].items():
        curve = LevelCurve.of([Level(*level) for level in levels])
        at = (1, 2, 3, 4, 6, 16, 20, 32, 33, 128, 400)
        answer[name] = [curve, [curve.at(count) for count in at], [curve.beyond(count) for count in at]]
    for pauses, sigma, fine in ((0, 0.5, 4), (1, 0.5, 4), (5, 1.2, 1), (40, 0.3, 2), (3, 0.0, 4)):
        answer[f"{pauses} pauses of {sigma}"] = strata_of_sum(pauses, sigma, fine)
    answer["0 to 20 pauses"] = strata_of_sums((0, 3, 9, 11, 20), 0.7, 2)
    answer["many numbers of pauses"] = _digest([strata_of_sums(range(100), 0.7, 2)])
    return answer


# -- recordings


def _ends(each: RecordedTrial) -> list[object]:
    facts = [each.block, each.failed_in, each.cause, each.image_cached, each.borrowed, each.group, each.complete]
    parts = [str(each.setup), str(each.actions), str(each.measures)]
    return [*facts, *parts, each.start_ns, each.freed_ns, each.cpu_ns, each.sandbox_ns]


def _read() -> dict[str, object]:
    """Every duration of every trial, tables, and the runner's health."""
    answer: dict[str, object] = {}
    for name, known in (("measured", True), ("unknown", False)):
        recording = _recording(name, known=known)
        answer[f"{name} file"] = [recording.whole, recording.trials, recording.lag_p99_ns, recording.cpu_permille]
        for table, columns in recording.table.items():  # type: ignore[attr-defined]
            for column, values in columns.items():
                answer[f"{name} {table} {column}"] = _digest(values)
        trials = [each for found in recording.cells for each in found.trials]
        for kind in (*PER_ACTION, *PER_TRIAL):
            answer[f"{name} {kind}"] = _digest([list(values_of(each, kind)) for each in trials])
        answer[f"{name} exposed"] = _digest([each.exposed for each in trials])
        answer[f"{name} ends"] = _digest([_ends(each) for each in trials])
        fitness = next(iter(recording.workers.values()))
        answer[f"{name} seconds"] = [fitness.problems, len(fitness.within(900 * S, 2001 * S)), fitness.share(0, 9 * S)]
    answer["nothing measured"] = [str(Measures())]
    for cause in (*CAUSE_POLICIES, "unheard of"):
        policies = [policy_of(cause, error) for error in ("", *ERRORS)]
        answer[cause] = [[*policy, policy.treatment] for policy in policies]
    for phase in ("create", "action"):
        answer[f"causes in {phase}"] = [cause_of(error, phase) for error in ERRORS]
        answer[f"recorded in {phase}"] = [recorded_cause(end, "x", phase, "") for end in ("ok", "failed", "cancelled")]
    answer["recorded"] = [recorded_cause("ok", "", "", given) for given in ("", "cancelled", "unheard of")]
    for lag_ns, cpu_permille in ((5_000_000, 800), (5_000_001, 800), (5_000_000, 801)):
        worker = WorkerFitness()
        worker.add(Health(10, 0, lag_ns, lag_ns, cpu_permille, 0, 0, 0))
        answer[f"{lag_ns} and {cpu_permille}"] = [worker.share(0, 10), worker.problems]
    return answer


CASES: Final[dict[str, Callable[[], Mapping[str, object]]]] = {
    "intervals": _intervals,
    "repetitions": _repetitions,
    "percentiles of clusters": _clustered,
    "curves and pauses": _curves,
    **{f"makespans: {name}": partial(_makespans, name) for name in LAWS},
    "recordings": _read,
    "simulated steps": _plans,
    **{f"steps: {name}": partial(_pairs, name) for name in QUESTIONS["settings"]},
    **{f"projected: {name}": partial(_projected, "projected", name) for name in QUESTIONS["projected"]},
    "other recordings": _of_other_recordings,
    **{f"attributed: {name}": partial(_projected, "attributed", name) for name in QUESTIONS["attributed"]},
    "decided": _decided,
    "compared": _compared,
}


# -- the table


MOST: Final = 24
"""Numbers of an answer that are in the table one by one; more are digested."""


def _digest(values: Sequence[Any]) -> list[object]:
    """Numbers that change with any of many values, large or small."""
    leaves = list(_leaves(values))
    numbers = [leaf for leaf in leaves if isinstance(leaf, float) and math.isfinite(leaf)]
    scaled = [math.copysign(math.log1p(abs(number)), number) for number in numbers]
    placed = math.fsum(number * (1 + place % 7 / 7) for place, number in enumerate(scaled))
    exact = ",".join(str(leaf) for leaf in leaves if not isinstance(leaf, float))
    return [len(leaves), math.fsum(scaled), placed, zlib.crc32(exact.encode())]


def _leaves(value: object) -> Iterator[object]:
    """Numbers and words of an answer, in order."""
    match value:
        case Distribution():
            yield from (value.trials, value.size, value.total, value.sd, value.values[0], value.quantile(0.9))
        case Fraction():
            yield float(value)
        case array():
            yield from (len(value), math.fsum(number * number for number in value))
        case Mapping():
            for key, inner in value.items():
                yield from (str(key), *_leaves(inner))
        case list() | tuple() | range():
            for inner in value:
                yield from _leaves(inner)
        case set() | frozenset():
            yield from sorted(map(str, value))
        case _ if is_dataclass(value) and not isinstance(value, type):
            for field in fields(value):
                yield from _leaves(getattr(value, field.name))
        case None | bool() | int() | float() | str():
            yield value
        case _:
            yield str(value)


def _written(leaf: object) -> object:
    """As in the table: eleven digits, and no number that JSON lacks."""
    if isinstance(leaf, float):
        return float(f"{leaf:.11g}") if math.isfinite(leaf) else str(leaf)
    return leaf


def answers(name: str) -> dict[str, list[object]]:
    """Return the answer to a question, as in the table."""
    found = {key: list(_leaves(value)) for key, value in CASES[name]().items()}
    short = {key: leaves if len(leaves) <= MOST else _digest(leaves) for key, leaves in found.items()}
    return {key: list(map(_written, leaves)) for key, leaves in short.items() if leaves not in ([], [None])}


def _equal(first: object, second: object) -> bool:
    """Whether floats agree to nine digits; whatever else is equal."""
    both = isinstance(first, float) and isinstance(second, float)
    return first == second or (both and math.isclose(first, second, rel_tol=1e-9, abs_tol=1e-9))  # type: ignore[arg-type]


def differences(name: str, pinned: Mapping[str, Sequence[object]]) -> list[str]:
    """Return the names of the numbers that are not as in the table."""
    found = answers(name)
    return [
        key
        for key in {**pinned, **found}
        if len(found.get(key, ())) != len(pinned.get(key, ()))
        or not all(map(_equal, found.get(key, ()), pinned.get(key, ())))
    ]


def _table() -> dict[str, dict[str, list[object]]]:
    return json.loads(TABLE.read_text(encoding="utf-8"))


def test_the_table_has_every_question() -> None:
    assert list(_table()) == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_the_answer_is_as_before(name: str) -> None:
    """Where it differs, the note of the change says why."""
    assert differences(name, _table()[name]) == []


def _write() -> None:
    """Write the table, one line a number or group of numbers."""
    cases = []
    for name in CASES:
        lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(leaves)}" for key, leaves in answers(name).items())
        cases.append(f" {json.dumps(name)}: {{\n{lines}\n }}")
    TABLE.write_text("{\n" + ",\n".join(cases) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    _write()
