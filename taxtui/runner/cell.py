"""A cell of the plan: the facts that all its trials share, and how far its measurement is."""

from __future__ import annotations

import math
import time
from typing import Final

from costmodel.recording.breakdown import has_schedule
from costmodel.recording.events import Cell, Notice
from costmodel.recording.runner_health import LAG_LIMIT_NS
from costmodel.statistics.intervals import quantile
from taxtui.plan.spec import CellPlan, Plan, SandboxSpec
from taxtui.runner.cleanup import ledger
from taxtui.runner.identity import cell_event
from taxtui.runner.journal import EventSink
from taxtui.runner.trial.bracket import Method, method_for
from taxtui.sandboxes.kit.labels import LABEL_DEADLINE, LABEL_RUN, LABEL_TRIAL
from taxtui.sandboxes.protocol import Availability, Sandbox, Substrate

BASE_TTL_S: Final = 3600.0
RESET_TTL_S: Final = 24 * 3600.0


def describe_cell(
    number: int, plan: CellPlan, run: Plan, substrate: Substrate, found: Availability, environment: str
) -> Cell:
    """Return the event that describes a cell of ``run``."""
    return cell_event(
        number,
        plan,
        run,
        substrate,
        found,
        environment,
        method_for(bash=substrate.capabilities.bash, wanted=run.bracket),
        preload="none" if not plan.tier.preload else "image" if found.holds_fixtures else "trial",
    )


class CellRun:
    """A cell of the plan in the process that measures it: the facts that its trials share."""

    def __init__(
        self,
        number: int,
        plan: CellPlan,
        run: Plan,
        substrate: Substrate,
        found: Availability,
        journal: EventSink,
        repetition: int = 0,
    ) -> None:
        """``run`` is the whole plan that ``plan`` is a part of."""
        self.cell = number
        self.plan = plan
        self.substrate = substrate
        self.method: Method = method_for(bash=substrate.capabilities.bash, wanted=run.bracket)
        self.preload = bool(plan.tier.preload) and not found.holds_fixtures
        self.timeout_s = run.timeout_s
        self.create_timeout_s = run.create_timeout_s
        self.seed = run.seed
        self.repetition = repetition
        self.image_bytes = found.image_bytes
        self.anchor_ns = journal.anchor_ns
        self.now = journal.now
        self.emit = journal.emit
        self.idle: list[tuple[SandboxSpec, Sandbox]] = []  # acquire=reset: sandboxes for the next trials
        self._run = run

    def spec(self, run_id: str, part: str, trial: int) -> SandboxSpec:
        """Return the request for a trial's sandbox, with the name and labels that taxtui chooses."""
        ttl_s = self._ttl_s()
        return SandboxSpec(
            name=ledger.sandbox_name(run_id, part, trial),
            labels={
                LABEL_RUN: run_id,
                LABEL_TRIAL: str(trial),
                LABEL_DEADLINE: str(math.ceil(time.time() + ttl_s)),
            },
            limits=self._run.limits,
            ttl_s=ttl_s,
            network=self.plan.tier.network,
            acquire=self.plan.acquire,
        )

    def _ttl_s(self) -> float:
        """Generous: the provider's own deadline is there for the day on which all else has failed."""
        if self.plan.acquire == "reset":
            return RESET_TTL_S
        think = self.plan.think
        think_s = self.plan.actions * think.mean_ns / 1e9
        return BASE_TTL_S + self.create_timeout_s + 2 * think_s


class CellProgress:
    """How many trials of a cell have ended, how long they took and how late they started."""

    def __init__(self, number: int, plan: CellPlan, ok: int = 0) -> None:
        """``ok``: successes of earlier parts and repetitions of the run."""
        self.cell = number
        self.plan = plan
        self.ok = ok
        self.ended = 0  # counted trials
        self.start_delays_ns: list[int] = []  # of counted trials
        self._took_s, self._took = 0.0, 0  # all trials that have ended, warm-ups included, and their number

    def __str__(self) -> str:
        """As in every message: substrate, tier x actions, mode."""
        return f"{self.plan.substrate} {self.plan.tier.name} x {self.plan.actions} {self.plan.mode}"

    @property
    def mean_s(self) -> float | None:
        """Mean time that a trial occupied a slot, clean-up included; None before the first has ended."""
        return self._took_s / self._took if self._took else None

    def took(self, seconds: float) -> None:
        """Add a trial that has ended."""
        self._took_s, self._took = self._took_s + seconds, self._took + 1

    def start_delays(self, at_ns: int) -> Notice | None:
        """Return how late the trials started; None where no start had a scheduled instant."""
        delays_ns = sorted(self.start_delays_ns)
        if not delays_ns or not has_schedule(str(self.plan.arrival)):
            return None
        p50, p99, most = (quantile(delays_ns, q) / 1e6 for q in (0.5, 0.99, 1.0))
        late = sum(delay_ns > LAG_LIMIT_NS for delay_ns in delays_ns)
        text = f"{self}: {self.plan.arrival}: started late by p50 {p50:,.1f}, p99 {p99:,.1f}, at most {most:,.1f} ms"
        text += f"; {late:,} of {len(delays_ns):,} by more than {LAG_LIMIT_NS / 1e6:g} ms, which is in response"
        return Notice(at_ns, "warning" if late else "info", text)
