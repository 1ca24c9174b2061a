"""One random run: rollouts and trainer in turn, as the policy says, for as many steps as are simulated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from costmodel.simulation.engine.events import Carried, Counts, System, plus
from costmodel.simulation.engine.rules import Rules
from costmodel.simulation.engine.tries import Try


class TimelineRun(NamedTuple):
    """What a run takes; amounts are expectations where not all of it was simulated."""

    wall_ns: float
    step_ns: float  # rollouts of a full step, on average; of all, where there are no steps
    steps_ns: float  # ... summed over all steps
    counts: Counts
    clocks: dict[int, float]  # with over-provisioning: how many sandboxes ran for how long


def in_steps(
    rules: Rules, draws: Iterator[Try], sizes: Sequence[int], missing: float, steady: int, longest: int
) -> TimelineRun:
    """Steps of these sizes; ``missing`` more like those from number ``steady`` on that are as large as the first.

    Of a step that keeps more than ``longest``, so many are simulated, and its second half stands for the rest.
    """
    system = System(rules, draws)
    start = trained = 0
    carried: list[Carried] = []
    starts, lasted, counts, clocks = [0], [], [system.counts], [0]
    beside: list[dict[int, float]] = []  # of each step, the clocks of what is not simulated
    for size in sizes:
        kept = min(size, longest)
        fresh = max(0, rules.launched(size) - (size - kept) - len(carried))
        marks = (kept // 2, kept - rules.workers) if kept < size else ()
        end, found, carried = system.phase(start, fresh, kept, carried, marks)
        beside.append({})
        if marks:
            first, last = found
            share = (size - kept) / (marks[1] - marks[0])
            longer_ns = round(share * (last.at_ns - first.at_ns))
            system.skip(longer_ns, plus(Counts(), last.counts, first.counts, share))
            end += longer_ns
            told = Counter(system.clocks_ns[first.clocks : last.clocks])
            beside[-1] = {ns: share * times for ns, times in told.items()}
        before, trained = trained, max(end, trained) + rules.train_ns
        lasted.append(end - start)
        start = rules.policy.next_start(end, before, trained)
        starts.append(start)
        counts.append(system.counts._replace(idle_ns=system.idle_ns(start)))
        clocks.append(len(system.clocks_ns))
    system.let_go(carried)
    full = sum(size == sizes[0] for size in sizes)
    alike = full - steady
    total = system.counts._replace(idle_ns=system.idle_ns(trained))
    used: dict[int, float] = dict(Counter(system.clocks_ns))
    _add(used, beside, 1.0)
    wall_ns, steps_ns = float(trained), float(sum(lasted))
    if missing:
        share = missing / alike
        total = plus(total, counts[full], counts[steady], share)
        wall_ns += share * (starts[full] - starts[steady])
        steps_ns += share * sum(lasted[steady:full])
        _add(used, [Counter(system.clocks_ns[clocks[steady] : clocks[full]]), *beside[steady:full]], share)
    step_ns = (sum(lasted[:steady]) + (alike + missing) / alike * sum(lasted[steady:full])) / (full + missing)
    return TimelineRun(wall_ns, step_ns, steps_ns, total, used)


def _add(used: dict[int, float], more: Sequence[Mapping[int, float]], share: float) -> None:
    for clocks in more:
        for ns, times in clocks.items():
            used[ns] = used.get(ns, 0.0) + share * times


class Window(NamedTuple):
    """Between which numbers of done rollouts a stream runs as it will for the ``missing`` more."""

    begin: int
    end: int
    missing: float


def stream(rules: Rules, draws: Iterator[Try], jobs: int, window: Window | None, batch: int | None) -> TimelineRun:
    """``jobs`` rollouts that never wait for the trainer, who needs ``batch`` of them for each step.

    With a ``window``, ``missing`` more like those in it.
    """
    system = System(rules, draws)
    marks = set() if window is None else {window.begin, window.end}
    if batch is not None:
        marks |= {*range(batch, jobs, batch), jobs}
    end, found, _ = system.phase(0, jobs, jobs, marks=sorted(marks))
    at = dict(zip(sorted(marks), found, strict=True))
    wall_ns = float(end)
    trained: dict[int, int] = {}
    if batch is not None:
        before = 0
        for mark, snapshot in at.items():
            if mark % batch == 0 or mark == jobs:
                before = trained[mark] = max(snapshot.at_ns, before) + rules.train_ns
        wall_ns = float(before)
    total = system.counts._replace(idle_ns=system.idle_ns(round(wall_ns)))
    whole_ns = float(end)
    if window is not None:
        first, last = at[window.begin], at[window.end]
        share = window.missing / (window.end - window.begin)
        total = plus(total, last.counts, first.counts, share)
        longer = share * (last.at_ns - first.at_ns)
        whole_ns += longer
        wall_ns += longer if batch is None else _trained_longer(trained, window, longer, whole_ns, rules, batch)
    return TimelineRun(wall_ns, whole_ns, whole_ns, total, {})


def _trained_longer(
    trained: dict[int, int], window: Window, longer: float, whole_ns: float, rules: Rules, batch: int
) -> float:
    """How much later training ends for the ``missing`` rollouts: as in the window, never faster than it can."""
    inside = [mark for mark in trained if window.begin <= mark <= window.end]
    steps = window.missing / batch
    if len(inside) > 1:
        return steps * (trained[inside[-1]] - trained[inside[0]]) / (len(inside) - 1)
    return max(longer, steps * rules.train_ns)
