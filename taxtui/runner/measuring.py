"""What measures a plan: this process, or the workers that it asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from taxtui.plan.spec import Plan
from taxtui.runner.engine import Run
from taxtui.runner.placing import LocalWorkers, Placement
from taxtui.runner.shared_run import SharedRun


def run_of(plan: Plan, path: Path, run_id: str, *, placement: Placement | None = None, **more: Any) -> Run:
    """As ``Run``. With one worker, and nowhere to place it, that measures in this process."""
    if plan.workers == 1 and placement is None:
        return Run(plan, path, run_id, **more)
    return SharedRun(plan, path, run_id, placement=placement or LocalWorkers(), **more)
