"""Speed of the makespan engines as ratios to a naive heapq loop, all in one run; SimPy and NumPy beside them.

    python -m tests.benchmarks.bench_costmodel [FILE]

Prints a table, and writes it to FILE where one is given.
"""

from __future__ import annotations

import platform
import sys
import time
import tracemalloc
from collections.abc import Callable, Generator
from heapq import heappop, heappush
from pathlib import Path
from random import Random

import numpy as np
import simpy

from costmodel.recording.breakdown import Measures
from costmodel.recording.trial import RecordedTrial
from costmodel.simulation.makespan import expected_makespan, random_makespan, renewal_makespan
from costmodel.statistics.distribution import Distribution
from costmodel.workload.estimator import Tally
from costmodel.workload.pool import at_length
from tests.benchmarks.figures import tell

S = 10**9
ROUNDS = 5
JOBS, WORKERS, SIZE = 1_000_000, 500, 100
SIMPY_JOBS = 20_000
"""SimPy would take a minute for a million; its time is linear in the jobs."""


def sample() -> list[int]:
    rng = Random(1)
    return [round(S * rng.lognormvariate(3, 0.4)) for _ in range(SIZE)]


def naive(values: list[int], jobs: int, workers: int, rng: Random) -> int:
    free = [0] * workers
    for _ in range(jobs):
        heappush(free, heappop(free) + rng.choice(values))
    return max(free)


def with_simpy(values: list[int], jobs: int, workers: int, rng: Random) -> int:
    environment = simpy.Environment()
    queue = iter(range(jobs))

    def worker() -> Generator[simpy.Event, None, None]:
        for _ in queue:
            yield environment.timeout(rng.choice(values))

    for _ in range(workers):
        environment.process(worker())
    environment.run()
    return int(environment.now)


def with_numpy(values: list[int], jobs: int, workers: int, rng: np.random.Generator) -> int:
    """Renewal streams: the last start is the N-th smallest epoch, the end the latest epoch that follows it."""
    mean, longest = np.mean(values), max(values)
    length = int(jobs / workers + 6 * (jobs / workers) ** 0.5 + longest / mean + 3)
    ends = np.cumsum(rng.choice(np.array(values), size=(workers, length)), axis=1)
    starts = np.concatenate([np.zeros((workers, 1), dtype=ends.dtype), ends[:, :-1]], axis=1)
    last_start = np.partition(starts, jobs - 1, axis=None)[jobs - 1]
    return int(ends[starts <= last_start].max())


def seconds(calls: list[Callable[[], object]]) -> list[float]:
    """CPU time of each call, the best of several rounds in which they take turns: a busy machine hits all alike."""
    best = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for index, call in enumerate(calls):
            repeats = 1
            while True:
                begin = time.process_time()
                for _ in range(repeats):
                    call()
                took = time.process_time() - begin
                if took > 0.005:
                    break
                repeats *= 10
            best[index] = min(best[index], took / repeats)
    return best


def worker_hours(trials: list[RecordedTrial]) -> float:
    tally = Tally([at_length(trial, index, 0, 1) for index, trial in enumerate(trials)], trials)
    return float(JOBS * tally.total(lambda attempt: attempt.held_ns) / tally.successes)


def peak_mib(jobs: int, law: Distribution) -> float:
    tracemalloc.start()
    expected_makespan(law, jobs, WORKERS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def main() -> str:
    values, rng = sample(), Random(2)
    law = Distribution.of(values)
    trials = []
    for value in values:
        trial = RecordedTrial("run", 0)
        trial.ok, trial.measures = True, Measures(create_ns=value, held_ns=value)
        trials.append(trial)
    held = sum(values)
    engines: list[tuple[str, int | None, Callable[[], object]]] = [
        ("naive heapq loop", None, lambda: naive(values, JOBS, WORKERS, rng)),
        ("random_makespan (heapreplace, byte draws)", 2, lambda: random_makespan(law, JOBS, WORKERS, rng)),
        ("closed form (renewal)", 5_000, lambda: renewal_makespan(law, JOBS, WORKERS)),
        ("worker-hours, from the sum", 100_000, lambda: JOBS * held / SIZE),
        ("worker-hours, from the trials", None, lambda: worker_hours(trials)),
        ("expected_makespan, choice and checks", None, lambda: expected_makespan(law, JOBS, WORKERS)),
        ("... of 1e15 jobs on 100,000 workers", None, lambda: expected_makespan(law, 10**15, 100_000)),
        ("NumPy (cumsum, partition)", None, lambda: with_numpy(values, JOBS, WORKERS, np.random.default_rng(2))),
        (f"SimPy ({SIMPY_JOBS:,} jobs, scaled)", None, lambda: with_simpy(values, SIMPY_JOBS, WORKERS, rng)),
    ]
    times = seconds([call for _, _, call in engines])
    times[-1] *= JOBS / SIMPY_JOBS
    baseline, answer, numpy_s, simpy_s = times[0], times[5], times[7], times[8]
    for (name, _, _), took in zip(engines[1:], times[1:], strict=True):
        tell(name, took * 1e3, "ms", baseline * 1e3, "naive heapq loop")
    tell("the answer of project", answer * 1e3, "ms", simpy_s * 1e3, "SimPy", wanted="≤ 1/20")
    tell("the answer of project", answer * 1e3, "ms", numpy_s * 1e3, "NumPy", wanted="≤ 1/3")
    lines = [
        f"N = {JOBS:,} jobs, W = {WORKERS} workers, K = {SIZE} values; Python {platform.python_version()}, "
        f"NumPy {np.__version__}, SimPy {simpy.__version__}",
        "",
        f"{'engine':38} {'ms':>12} {'x naive':>12} {'wanted':>9}",
    ]
    for (name, wanted, _), took in zip(engines, times, strict=True):
        target = "" if wanted is None else f">= {wanted:,}"
        lines.append(f"{name:38} {took * 1e3:12.4f} {baseline / took:12,.2f} {target:>9}".rstrip())
    lines += [
        "",
        f"the answer that `project` gives is {simpy_s / answer:,.0f} x SimPy (wanted >= 20), "
        f"{numpy_s / answer:,.0f} x NumPy (wanted >= 3)",
        f"peak memory: {peak_mib(JOBS, law):.1f} MiB at 1e6 jobs, {peak_mib(10**15, law):.1f} MiB at 1e15",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    report = main()
    print(report)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(f"{report}\n", encoding="utf-8")
