"""Removes the sandbox of a trial and copies of it, or plants traces to check the next reset."""

from __future__ import annotations

import asyncio
from typing import Final

from taxtui.errors import ExecFailed
from taxtui.plan.spec import Command, SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.kit.removal import find_together
from taxtui.sandboxes.protocol import Sandbox, Substrate

# A file and a folder in the working directory, a temporary file, and a background process.
PLANT: Final = """
mkdir -p .taxtui-canary/deep && echo planted > .taxtui-canary/deep/file &&
  echo planted > "${TMPDIR:-/tmp}/.taxtui-canary"
if command -v setsid >/dev/null 2>&1; then
  setsid sh -c "taxtui_canary=$PWD; sleep 600" </dev/null >/dev/null 2>&1 &
fi
true
"""

# The canary carries the working directory: without isolation, processes of other sandboxes are visible too. The quotes
# in the middle keep the command line of the check itself from matching.
CHECK: Final = """
test ! -e .taxtui-canary || exit 91
test ! -e "${TMPDIR:-/tmp}/.taxtui-canary" || exit 92
for process in /proc/[0-9]*/cmdline; do
  case "$(tr '\\0' ' ' 2>/dev/null < "$process")" in *"taxtui_""canary=$PWD;"*) exit 93 ;; esac
done 2>/dev/null
true
"""


async def plant(sandbox: Sandbox, timeout_s: float) -> None:
    """Leave traces for ``CHECK`` to find after an incomplete reset. Raises ``SubstrateError``."""
    if exit_code := (await sandbox.exec(Command(script=PLANT, timeout_s=timeout_s))).exit_code:
        raise ExecFailed(f"exit {exit_code}")


async def remove_copies(substrate: Substrate, spec: SandboxSpec) -> None:
    """Remove the forks, snapshots and images of a trial: matches with the trial's name and a suffix."""
    for match in await find_together(substrate, spec.labels[LABEL_RUN]):
        if match.name.startswith(f"{spec.name}."):
            await substrate.reap(match)


async def remove(
    substrate: Substrate,
    spec: SandboxSpec,
    sandbox: Sandbox | None,
    creating: asyncio.Future[Sandbox] | None,
    answer_within_s: float,
) -> None:
    """Destroy a sandbox by the handle, or else find the sandbox by the labels.

    Args:
        creating: a create under way, which may return the handle.
        answer_within_s: time for the create to return.
    """
    if sandbox is None and creating is not None:
        answered, _ = await asyncio.wait({creating}, timeout=answer_within_s)
        if not answered:
            creating.cancel()
            await asyncio.wait({creating})
        if not creating.cancelled() and creating.exception() is None:
            sandbox = creating.result()
    if sandbox is not None:
        await sandbox.destroy()
        return
    for match in await find_together(substrate, spec.labels[LABEL_RUN]):
        if match.name == spec.name:
            await substrate.reap(match)
