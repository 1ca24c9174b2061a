"""A trial of a new tier on ``local``, and the output of the failed step."""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from costmodel import Event, TrialEnded, events, read_events
from taxtui import folders
from taxtui.errors import SubstrateError, TaxtuiError
from taxtui.plan.spec import CellPlan, Command, Limits, Plan, SandboxSpec, Step, SubstrateRef
from taxtui.runner.run import Run
from taxtui.runner.trial import bracket
from taxtui.sandboxes import registry
from taxtui.sandboxes.kit.labels import LABEL_DEADLINE, LABEL_RUN, LABEL_TRIAL
from taxtui.sandboxes.protocol import ExecResult, Marks
from taxtui.terminal_text import clean

if TYPE_CHECKING:
    from taxtui.plan.spec import Tier

LAST_LINES: Final = 20
TIMEOUT_S: Final = 120.0
TTL_S: Final = 3600.0


def check_tier(tier: Tier, fixtures: Path, scratch: Path) -> None:
    """Run a trial of a whole cycle. Raises ``TaxtuiError``: the trial failed; the last output is printed."""
    click.echo(f"trying {tier.name} in a sandbox on this machine", err=True)
    local = SubstrateRef(name="local", options={"fixtures": str(fixtures)})
    cell = CellPlan(substrate=local, tier=tier, actions=len(tier.cycle), trials=1, warmup=0)
    run = Run(Plan(cells=(cell,), timeout_s=TIMEOUT_S), scratch / f"{tier.name}.msgpack", folders.new_run_id())
    asyncio.run(run.execute())
    if run.control.write_error is not None:
        raise run.control.write_error
    recorded: list[Event] = []
    read_events(run.path, recorded.append)
    ends = [event for event in recorded if isinstance(event, TrialEnded)]
    if ends and ends[-1].outcome == events.OK:
        return
    if lines := asyncio.run(_failed_output(tier, local)):
        click.echo("the step that failed, run once more, printed last:", err=True)
        for line in lines:
            click.echo(f"    {clean(line)}", err=True)
    reason = ends[-1].message or ends[-1].error if ends else "the run ended before its trial"
    advice = "give --test or --setup, and --network where it fetches something"
    raise TaxtuiError(f"{tier.name} failed its trial on local: {reason}; it was not written", fix=advice)


async def _failed_output(tier: Tier, reference: SubstrateRef) -> list[str]:
    """Run all steps once more in a new sandbox, because a recording has no output.

    Returns:
        The last lines of the first failed step; [] if no step fails.
    """
    run_id, nonce = folders.new_run_id(), secrets.token_hex(8)
    labels = {LABEL_RUN: run_id, LABEL_TRIAL: "0", LABEL_DEADLINE: str(math.ceil(time.time() + TTL_S))}
    spec = SandboxSpec(name=f"taxtui-{run_id}-0", labels=labels, limits=Limits(), ttl_s=TTL_S, network=tier.network)
    preload = [Step(name="preload", run=tier.preload)] if tier.preload else []
    async with registry.build(reference) as substrate:
        try:
            sandbox = await substrate.create(spec, Marks())
            await sandbox.wait_ready(Marks())
            for step in (*preload, *tier.setup, *tier.cycle):
                script = bracket.wrap(step.run, nonce, "none")
                result = await sandbox.exec(Command(script=script, timeout_s=step.timeout_s or TIMEOUT_S))
                if not _succeeded(step, nonce, result):
                    return _last_lines(result)
        except SubstrateError:
            return []
        finally:
            for remaining in await substrate.find(run_id):
                await substrate.reap(remaining)
    return []


def _succeeded(step: Step, nonce: str, result: ExecResult) -> bool:
    expected = step.expect_stdout.replace("{nonce}", nonce).encode()
    return result.exit_code == step.expect_exit and expected in result.stdout


def _last_lines(result: ExecResult) -> list[str]:
    text = (result.stdout + result.stderr).decode(errors="replace")
    return [line for line in text.splitlines() if line.strip()][-LAST_LINES:]
