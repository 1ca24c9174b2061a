"""A cell of the plan: the facts shared by all trials."""

from __future__ import annotations

from typing import Final

from taxtui.plan.spec import CellPlan, Plan, SandboxSpec
from taxtui.runner.cleanup import ledger
from taxtui.runner.journal import Journal
from taxtui.runner.trial.bracket import Method, method_for
from taxtui.sandboxes.kit import labels
from taxtui.sandboxes.protocol import Availability, Sandbox, Substrate

BASE_TTL_S: Final = 3600.0
LONGEST_TTL_S: Final = 24 * 3600.0
"""Of a sandbox that is reset, and of the commands of one trajectory."""


class CellRun:
    """A cell of the plan in a measuring process, with the facts shared by all trials."""

    def __init__(
        self,
        number: int,
        plan: CellPlan,
        run: Plan,
        substrate: Substrate,
        availability: Availability,
        journal: Journal,
        repetition: int = 0,
    ) -> None:
        self.cell = number
        self.plan = plan
        self.substrate = substrate
        self.method: Method = method_for(bash=substrate.capabilities.bash, wanted=run.bracket)
        self.preload = bool(plan.tier.preload) and not availability.holds_fixtures
        self.timeout_s = run.timeout_s
        self.create_timeout_s = run.create_timeout_s
        self.seed = run.seed
        self.lifecycle = run.lifecycle
        self.repetition = repetition
        self.image_bytes = availability.image_bytes
        self.anchor_ns = journal.anchor_ns
        self.now = journal.now
        self.emit = journal.emit
        self.idle: list[tuple[SandboxSpec, Sandbox]] = []  # acquire=reset: sandboxes for the next trials
        self._run = run

    def spec(self, run_id: str, part: str, trial: int) -> SandboxSpec:
        """Return the request for a trial's sandbox, with taxtui's name and labels."""
        ttl_s = self._ttl_s()
        return SandboxSpec(
            name=ledger.sandbox_name(run_id, part, trial),
            labels=labels.of_trial(run_id, trial, ttl_s),
            limits=self._run.limits,
            ttl_s=ttl_s,
            network=self.plan.tier.network,
            acquire=self.plan.acquire,
        )

    def _ttl_s(self) -> float:
        """Longer than any trajectory within its time limits: the deadline matters after every clean-up has failed."""
        plan = self.plan
        if plan.acquire == "reset":
            return LONGEST_TTL_S
        commands_s = sum(step.timeout_s or self.timeout_s for step in (*plan.tier.setup, *plan.action_steps))
        think_s = plan.actions * plan.think.mean_ns / 1e9
        return BASE_TTL_S + self.create_timeout_s + min(commands_s, LONGEST_TTL_S) + 2 * think_s
