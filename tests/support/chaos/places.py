"""The real places on this machine: every registered substrate that costs nothing and says that it can be used here."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import os
from pathlib import Path
from typing import Final, get_args, get_type_hints

from taxtui.errors import TaxtuiError
from taxtui.plan.notation import parse_substrate
from taxtui.sandboxes import registry
from taxtui.sandboxes.protocol import Availability, Substrate
from tests.support.command_line import marked
from tests.support.standins.private_sshd import SSHD, SshBox, ssh_box

ISOLATION: Final = "isolation"
"""The option whose values are places of their own."""
SSH: Final = "ssh"
CGROUPS: Final = Path("/sys/fs/cgroup")


def registered() -> list[str]:
    """As ``-s`` takes them, each way of isolation by itself."""
    places = []
    for name in registry.names():
        try:
            kind = registry.load(name)
        except TaxtuiError:
            continue
        ways = get_args(get_type_hints(kind.Options).get(ISOLATION))
        places += [f"{name}:{ISOLATION}={way}" for way in ways if way != "auto"] or [name]
    return places


@functools.cache
def complaint(place: str) -> str:
    """Why nothing can be struck there; "" where it can."""
    if place == SSH and (missing := no_sshd()):
        return missing
    try:
        substrate = registry.build(parse_substrate(named(place)))
        if substrate.capabilities.paid:
            return "it costs money"
        found = asyncio.run(_checked(substrate))
    except TaxtuiError as error:
        return str(error)
    return "" if found.ok else f"{found.detail}; {found.fix}"


def no_sshd() -> str:
    """Why no sshd of our own can be started; "" where it can."""
    return "" if Path(SSHD).exists() else "there is no sshd"


@functools.cache
def modes(place: str) -> tuple[str, ...]:
    return registry.build(parse_substrate(named(place))).capabilities.modes


def named(place: str) -> str:
    """As ``-s`` takes it: a bare host is this machine, by an sshd of our own."""
    return _host().named() if place == SSH else place


@functools.cache
def _host() -> SshBox:
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(ssh_box())


def on_the_host(run_id: str) -> list[str]:
    """Folders and processes of a run behind our own sshd."""
    marker = f"taxtui-{run_id}-"
    there = [name for name in _host().left() if name.startswith(marker)]
    return there + [name for _, name in marked(marker.encode())]


async def _checked(substrate: Substrate) -> Availability:
    async with substrate:
        return await substrate.check()


def of_the_kernel(run_id: str) -> list[str]:
    """Control groups and mounts that carry the name of a run's sandboxes."""
    marker = f"taxtui-{run_id}-"
    groups = [str(Path(at, name)) for at, names, _ in os.walk(CGROUPS) for name in names if name.startswith(marker)]
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines() if marker in line]
    return [*groups, *mounts]
