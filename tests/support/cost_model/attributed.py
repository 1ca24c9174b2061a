"""An attribution with round numbers, for what only shows one."""

from __future__ import annotations

from costmodel import CAUSES, Assumption, Attribution, GpuWaiting, Interval, Share

STEPS = 977


def share(step_s: float, usd: float | None = None, off: float = 0.1) -> Share:
    """Each amount within ``off`` of its value, relative; 2,000 workers and 512 GPUs wait as long as the step does."""

    def about(value: float) -> Interval:
        return Interval(value, *sorted((value * (1 - off), value * (1 + off))))

    hours = step_s * STEPS / 3600
    dollars = None if usd is None else about(usd)
    return Share(about(step_s), about(2000 * hours), about(512 * hours), dollars)


def attribution(*, priced: bool = True) -> Attribution:
    """Failures cost most, then image pulls; nothing is known of slowdown; every other cause is nothing."""

    def of(step_s: float, usd: float) -> Share:
        return share(step_s, usd if priced else None)

    costly = {"failures": (674, 234_000), "image_pull": (262, 91_000), "dispatch": (11.5, 4_000), "create": (0.6, 200)}
    causes = {cause: None if cause == "slowdown" else of(*costly.get(cause, (0.0, 0.0))) for cause in CAUSES}
    told = (("failure_rate", "5 %", "lab.toml"), ("pull_gb_s", "0.5", "our nodes, measured in May"))
    return Attribution(
        causes=causes,
        sandbox=of(900, 312_000),
        interaction=of(-48.1, -17_200),
        run=of(3660, 1_270_000),
        waiting=GpuWaiting(993.0, 450_000.0, 300_000.0, 22_000.0, 128_000.0).priced(2.5 if priced else None),
        usd_per_critical_second=347.0 if priced else None,
        assumptions=tuple(Assumption(*each) for each in told),
        steps=STEPS,
        simulated_steps=4,
        replicates=8,
        error_s=3.2,
    )
