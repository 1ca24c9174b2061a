"""The output of a tier's failed step; a recording never has output."""

from __future__ import annotations

import math
import secrets
import time
from typing import TYPE_CHECKING, Final

from taxtui import folders
from taxtui.errors import SubstrateError
from taxtui.plan.spec import Command, Limits, SandboxSpec, Step
from taxtui.runner.trial import bracket
from taxtui.sandboxes import registry
from taxtui.sandboxes.kit.labels import LABEL_DEADLINE, LABEL_RUN, LABEL_TRIAL
from taxtui.sandboxes.protocol import ExecResult, Marks
from taxtui.workloads import credentials

if TYPE_CHECKING:
    from taxtui.plan.spec import SubstrateRef, Tier

LAST_LINES: Final = 20
TTL_S: Final = 3600.0


async def printed(tier: Tier, place: SubstrateRef, timeout_s: float) -> list[str]:
    """The last lines of the first step that fails when a new sandbox runs them all once more; [] where none fails."""
    run_id, nonce = folders.new_run_id(), secrets.token_hex(8)
    labels = {LABEL_RUN: run_id, LABEL_TRIAL: "0", LABEL_DEADLINE: str(math.ceil(time.time() + TTL_S))}
    name = f"taxtui-{run_id}-0"
    spec = SandboxSpec(name=name, labels=labels, limits=Limits(), ttl_s=TTL_S, network=tier.network)
    preload = [Step(name="preload", run=tier.preload)] if tier.preload else []
    async with registry.build(place) as substrate:
        try:
            sandbox = await substrate.create(spec, Marks())
            await sandbox.wait_ready(Marks())
            for step in (*preload, *tier.setup, *tier.cycle):
                script = bracket.wrap(step.run, nonce, "none")
                result = await sandbox.exec(Command(script=script, timeout_s=step.timeout_s or timeout_s))
                if not _proves(step, nonce, result):
                    return _lines(result)
        except SubstrateError:
            return []
        finally:
            for results in await substrate.find(run_id):
                await substrate.reap(results)
    return []


def _proves(step: Step, nonce: str, result: ExecResult) -> bool:
    wanted = step.expect_stdout.replace("{nonce}", nonce).encode()
    return result.exit_code == step.expect_exit and wanted in result.stdout


def _lines(result: ExecResult) -> list[str]:
    text = (result.stdout + result.stderr).decode(errors="replace")
    return [credentials.redacted(line) for line in text.splitlines() if line.strip()][-LAST_LINES:]
