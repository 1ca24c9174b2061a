"""What the step model is asked: the rules of docs/simulation.md as numbers."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from typing import Self

from costmodel.simulation.cluster import NodeSet
from costmodel.simulation.engine.rules import Rules
from costmodel.training.run import RETRY, Demand


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRules:
    """One system in steps of prompts. Durations are ns."""

    rules: Rules
    size: int  # rollouts that a step keeps
    group: int
    cluster: NodeSet | None
    timeout_ns: int  # 0: none
    include_cleanup: bool
    instant: bool
    staleness: int  # 0: no limit
    on_failure: str

    @classmethod
    def of(cls, demand: Demand, without: Container[str] = ()) -> Self:
        """The demand's, which has steps, without these causes."""
        rules = Rules.of(demand)
        if "throttle" in without:
            limits = (demand.workers, demand.pods)
            workers = min(limit for limit in limits if limit is not None)
            rules = replace(rules, workers=workers, gap_ns=0.0, burst=1)
        return cls(
            rules=rules,
            size=demand.step_rollouts or demand.trajectories,
            group=demand.group_size or 1,
            cluster=NodeSet.of(demand, pulls="image_pull" not in without),
            timeout_ns=round((demand.timeout_s or 0.0) * 1e9),
            include_cleanup=demand.include_cleanup,
            instant=demand.instant_claim,
            staleness=demand.staleness or 0,
            on_failure=demand.effective_on_failure,
        )

    @property
    def workers_only(self) -> bool:
        """Whether rollouts wait for nothing but workers, and are never cut."""
        rules = self.rules
        shared = self.cluster is not None or rules.gap_ns or rules.pool is not None or self.timeout_ns
        return not shared and not rules.over_provision and rules.policy.barrier and self.on_failure == RETRY
