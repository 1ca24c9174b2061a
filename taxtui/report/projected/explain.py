"""Derivation of one row: inputs, formulas and intermediate values of worker-hours, wall-clock and dollars."""

from __future__ import annotations

from collections.abc import Iterator

from costmodel import (
    Evidence,
    Interval,
    Row,
    TrainingRun,
    expected_max,
    makespan_bounds,
    wilson_interval,
)
from taxtui.report.numbers import exact, seconds
from taxtui.report.words import DO, WORDS
from taxtui.terminal_text import clean, wrap

S = 1e9
WIDTH, INDENT = 80, 26
METHODS = {
    "order-statistic": "E[max of N] = x_K − Σ (k/K)^N (x_(k+1) − x_k)",
    "bounds": "the middle of the bounds",
    "renewal": "(Nμ − μ − (W−1)·m2/2μ)/W + E[max(L, R_1 … R_(W−1))], R from the equilibrium residual law",
    "simulation": "mean of seeded replicates (no closed form, because workers move in waves)",
    "events": "mean of seeded runs of the discrete-event simulation (docs/simulation.md)",
    "waves": "⌈N/W⌉·L",
}


def to_text(row: Row, training_run: TrainingRun, width: int = WIDTH) -> str:
    """Return the derivation of one row in lines of at most ``width`` columns."""
    head = f"{clean(row.label)}, {clean(row.identity.tier)}, {row.length} actions, cell {row.identity.cell_id}"
    lines = [*wrap(head, width), *wrap(f"from {', '.join(map(clean, row.sources))} ({row.provenance})", width), ""]
    if row.worker_hours is None or row.wall_clock_hours is None or row.held_per_success_s is None:
        return "\n".join([*lines, *wrap(f"Nothing to compute: {', '.join(row.flags)}.", width)])
    n, w = training_run.trajectories, training_run.usable_workers
    quota = "" if training_run.quota is None else f" (the smaller of {training_run.workers:,} and the quota)"
    lines += _table([("N, trajectories", f"{n:,}"), ("W, workers", f"{w:,}{quota}")], width)
    if row.evidence is None:
        latency, total = row.held_per_success_s.value, row.worker_hours.value
        lines += _table(
            [
                ("L, published latency", f"{seconds(latency)} s"),
                ("worker-hours", f"N·L/3600 = {n:,} · {seconds(latency)} / 3600 = {exact(total)}"),
                ("wall-clock", f"⌈N/W⌉·L/3600 = {exact(row.wall_clock_hours.value)} h, ⌈N/W⌉ = {-(-n // w):,} waves"),
            ],
            width,
        )
    else:
        warnings_of_row = [(flag, f"{WORDS[flag]}; {DO[flag]}") for flag in row.flags]
        for title, items in (
            ("From the trials", _trials(row, row.evidence)),
            ("Worker-hours", _worker_hours(row, row.evidence, training_run)),
            ("Wall-clock", _wall_clock(row, row.evidence, training_run)),
            ("Warnings, the most important first", warnings_of_row),
        ):
            if pairs := list(items):
                lines += ["", title, *_table(pairs, width)]
    lines += _table(_cost(row), width)
    return "\n".join(lines)


def _table(items: list[tuple[str, str]], width: int) -> list[str]:
    lines = []
    for name, value in items:
        lines += wrap(clean(f"  {name:{INDENT - 3}} {value}"), width, " " * INDENT)
    return lines


def _trials(row: Row, evidence: Evidence) -> Iterator[tuple[str, str]]:
    k = float(evidence.successes)
    rate = wilson_interval(round(evidence.attempts - k), evidence.attempts)
    yield "attempts", f"{evidence.attempts:,} in {evidence.basis.runs:,} run(s)"
    yield "K, successes", f"{k:,.10g}"
    yield "H_ok, held by successes", f"{seconds(float(evidence.held_ok_ns) / S)} s"
    yield "H_f, held by failures", f"{seconds(float(evidence.held_failed_ns) / S)} s"
    yield "f, failure rate", f"1 − K/attempts = {float(evidence.failure):.6g}{_limits(rate)} (Wilson)"
    if row.trajectory_s:
        latency = row.trajectory_s.mean
        yield "L, trajectory latency", f"{seconds(latency.value)} s{_limits(latency)}, without throttles and think time"
    yield "think", f"{seconds(row.think_s)} s of a trajectory"
    for at_a_time, held_s in row.levels.levels if row.levels else ():
        yield (
            f"held at {at_a_time:,}",
            f"{seconds(held_s)} s of a success without think time and throttles; never falls",
        )
    if row.levels:
        yield f"at {row.levels.at_a_time:,}", str(row.levels.law)


def _worker_hours(row: Row, evidence: Evidence, training_run: TrainingRun) -> Iterator[tuple[str, str]]:
    assert row.held_per_success_s is not None
    assert row.worker_hours is not None
    held = row.held_per_success_s
    yield "held per success", f"(H_ok + H_f) / K = {seconds(held.value)} s{_limits(held)}"
    simulated = training_run.step_model
    if (row.attempts, row.delivered) != (1, 1):
        cap = "unlimited" if training_run.max_attempts is None else f"at most {training_run.max_attempts}"
        retried = float(evidence.failure - evidence.dropped)
        formula = f"(1 − r^A)/(1 − r), A {cap}, r = {retried:.6g} of attempts are retried"
        yield "attempts per trajectory", f"{row.attempts:.6g}: {'simulated' if simulated else formula}"
        yield "delivered", f"{row.delivered:.6g}: {'simulated' if simulated else '(1 − f) · attempts'}"
    waits = ""
    if training_run.backoff_s:
        waits = f" + N · ({row.attempts:.6g} − 1) · {seconds(training_run.backoff_s)} / 3600"
    share = f" · {row.delivered:.6g}" if row.delivered != 1 else ""
    product = f"{training_run.trajectories:,}{share} · {seconds(held.value)} / 3600{waits}"
    yield "worker-hours", METHODS["events"] if simulated else f"N{share} · held / 3600{waits} = {product}"
    if row.steps is not None and row.steps.wasted_worker_hours is not None:
        steps, wasted = row.steps, row.steps.wasted_worker_hours
        yield (
            "launched per step",
            f"⌈B·(1 + {training_run.over_provision:g})⌉ = {steps.launched:,}, B = {steps.batch:,} are kept",
        )
        yield "held", "each launch from its start to its end or the end of the step: simulated"
        yield "worker-hours", f"{exact(row.worker_hours.value - wasted)} kept + {exact(wasted)} thrown away"
    if training_run.create_rate is not None and training_run.step_rollouts is None:
        yield "throttled", f"+ {exact(evidence.waited_ns / S / 3600)} with a worker held: simulated"
    yield "", f"= {exact(row.worker_hours.value)}{_limits(row.worker_hours)}"
    yield from _interval(held, evidence)


def _interval(held: Interval, evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Yield the levels of variation in the interval of the occupied time per success."""
    within, basis = _limits(evidence.held.scaled(1 / S).within).strip() or "too few trials", evidence.basis
    yield "within the run", f"{within} s: Hall's transformed interval over trials, or over blocks if wider"
    if held.low is not None:
        source = "measured (Paule and Mandel)" if basis.measured else f"not measured ({basis.source})"
        yield "between runs", f"sd {100 * basis.sd:.3g} %, {source}; both together:{_limits(held)} s"


def _wall_clock(row: Row, evidence: Evidence, training_run: TrainingRun) -> Iterator[tuple[str, str]]:
    assert row.wall_clock_hours is not None
    wall, law, w = row.wall_clock_hours, evidence.busy_ns, evidence.usable_workers
    jobs = training_run.step_rollouts or training_run.trajectories
    if jobs and not training_run.step_model:
        yield "μ, busy per trajectory", f"{seconds(law.mean / S)} s (with retries), σ = {seconds(law.sd / S)} s"
        yield "m2, second moment", f"{law.second_moment / S**2:.9g} s²"
        yield "J, jobs per barrier", f"{jobs:,}" + (f" in {row.steps.steps:,} steps" if row.steps else "")
        low, high = makespan_bounds(law, jobs, w)
        longest = expected_max(law, jobs)
        yield "E[max of J]", f"{seconds(longest / S)} s"
        yield "lower bound", f"max(Jμ/W, E[max], ⌈J/W⌉·x_min) = {seconds(low / S)} s"
        yield "upper bound", f"min(Jμ/W + (1 − 1/W)·E[max], ⌈J/W⌉·x_max) = {seconds(high / S)} s"
    yield "method", f"{wall.method}: {METHODS[wall.method]}"
    if row.steps is not None:
        step = row.steps.step
        yield "rollouts of a step", f"{seconds(step.value_ns / S)} ± {seconds(step.error_ns / S)} s"
        yield "training of a step", f"{seconds(training_run.train_s)} s, {training_run.effective_policy.name}"
    error = "" if wall.error is None else f" ± {exact(wall.error)}"
    later = evidence.tail.later_ns
    yield (
        "jobs rarer than any trial",
        f"may end the run {seconds(evidence.tail.sooner_ns / S)} s sooner, and "
        + (
            f"later by an unknown time: an upper limit takes {evidence.tail.needs_trials:,} successes, or a timeout"
            if later is None
            else f"{seconds(later / S)} s later: order statistics, or the timeout"
        ),
    )
    yield "wall-clock", f"{exact(wall.value)}{error} h{_limits(Interval(wall.value, wall.low, wall.high))}"
    yield "fluid, N·L/W", f"worker-hours / W = {exact(wall.fluid)} h: without the tail of the last trajectories"


def _cost(row: Row) -> list[tuple[str, str]]:
    if row.cost is None:
        return []
    cost, workers = row.cost, row.cost.worker_usd or 0
    return [
        ("sandbox rate", f"{cost.usd_per_sandbox_hour:.9g} $/h, {cost.sheet}"),
        ("billed / used", f"{cost.billed_ratio:.6g}: max(minimum, ⌈t/increment⌉·increment) of each sandbox"),
        ("sandboxes", f"{cost.sandbox_usd.value:,.6g} ${_limits(cost.sandbox_usd)}"),
        ("total", f"{cost.total_usd:,.6g} $ with idle pool {cost.idle_pool_usd:,.6g} $ and workers {workers:,.6g} $"),
    ]


def _limits(interval: Interval) -> str:
    if interval.low is None:
        return ""
    if interval.high is None:
        return f", at least {exact(interval.low)}"
    return f" ({exact(interval.low)} to {exact(interval.high)})"
