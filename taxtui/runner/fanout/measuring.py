"""What measures a plan: this process, or the workers that it asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from taxtui.plan.spec import Plan
from taxtui.runner.engine import Run
from taxtui.runner.fanout.placing import LocalWorkers
from taxtui.runner.fanout.ray_engine import RayChoice, RayWorkers
from taxtui.runner.fanout.shared_run import SharedRun


def run_of(plan: Plan, path: Path, run_id: str, *, ray: RayChoice | None = None, **more: Any) -> Run:
    """As ``Run``. Without a cluster, one worker is this process. Raises ``TaxtuiError``: there is no such cluster."""
    if ray is not None:
        return SharedRun(plan, path, run_id, placement=RayWorkers(ray, plan), **more)
    if plan.workers == 1:
        return Run(plan, path, run_id, **more)
    return SharedRun(plan, path, run_id, placement=LocalWorkers(), **more)
