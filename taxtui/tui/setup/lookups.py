"""Checks of substrates for the Setup screen, in a process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from taxtui.errors import SubstrateUnavailable
from taxtui.report.plan_cost import CheckedSubstrate
from taxtui.sandboxes import registry
from taxtui.sandboxes.kit.cancellation import undo_if_cancelled

Checker = Callable[[Sequence[str]], Awaitable[Mapping[str, CheckedSubstrate]]]
"""Checks substrates by their ``-s`` text; without any, all installed substrates. Raises ``TaxtuiError``."""


async def check(refs: Sequence[str] = ()) -> dict[str, CheckedSubstrate]:
    """Check these substrates, or all installed substrates.

    Raises:
        SubstrateUnavailable: the command failed; the message is the last line of stderr.
    """
    starting = asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "taxtui", "doctor", "--format", "json"),
        *(word for ref in refs or registry.names() for word in ("-s", ref)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    child = await undo_if_cancelled(starting, _end)
    try:
        out, err = await child.communicate()
    except asyncio.CancelledError:  # the interface is being left
        await _end(child)
        raise
    from taxtui.terminal_text import clean

    try:
        answers = msgspec.json.decode(out, type=list[CheckedSubstrate])
    except msgspec.DecodeError as error:
        lines = err.decode(errors="replace").strip().splitlines()
        reason = clean(lines[-1]) if lines else str(error)
        raise SubstrateUnavailable(f"taxtui doctor: {reason}") from error
    return {answer.name: _cleaned(answer, clean) for answer in answers}


async def _end(child: asyncio.subprocess.Process) -> None:
    child.kill()
    await child.wait()


def _cleaned(answer: CheckedSubstrate, clean: Callable[[str], str]) -> CheckedSubstrate:
    texts = {name: clean(getattr(answer, name)) for name in ("name", "detail", "fix", "version", "prices")}
    texts |= {"variant": clean(answer.variant)} if answer.variant is not None else {}
    return msgspec.structs.replace(answer, **texts)
