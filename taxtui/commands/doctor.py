"""``taxtui doctor``: what this machine is, what works on it, and what earlier runs left; ready to be pasted."""

from __future__ import annotations

import asyncio
import os
import platform
import resource
import shutil
import sys
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import click

from taxtui import shipped
from taxtui.errors import TaxtuiError
from taxtui.report.formats import BY_NAME, NAMES, Report, Section
from taxtui.terminal_text import clean

Fact = tuple[str, str, str]
"""Part, name, value."""

_SDKS: Final = (package for row in shipped.SUBSTRATES.values() for package in row.packages)
PACKAGES: Final = tuple(dict.fromkeys(("taxtui", "textual", "msgspec", *_SDKS)))
ENOUGH_FILES: Final = 1024
ENOUGH_DISK_GIB: Final = 1.0
WIDTH: Final = 24


@click.command("doctor")
@click.option("--format", "form", type=click.Choice(NAMES), default=NAMES[0], show_default=True)
def command(form: str) -> None:
    """Say what a person has to know who is to help you: versions, limits, clocks, isolation, substrates, leftovers.

    Nothing is made and nothing is sent. Names of machines, accounts and folders are left out, so it can be pasted
    as it is. Exit code: 0, also where something is wrong.
    """
    from taxtui.runner.redaction import scrub

    found = [(part, name, value) for part, name, value in _facts()]
    found += [("substrates", name, scrub(value)) for name, value in asyncio.run(_substrates())]
    rows = [{"part": part, "name": name, "value": value} for part, name, value in found]
    told = Report(
        lambda: [Section("", ["part", "name", "value"], [list(fact) for fact in found], [])],
        lambda: rows,
        lambda: "\n".join(_lines(found)),
    )
    click.echo(BY_NAME[form].render(told))


def _facts() -> Iterator[Fact]:
    yield from (("versions", name, value) for name, value in _versions())
    yield from (("limits", name, value) for name, value in _limits())
    yield from (("clocks", name, value) for name, value in _clocks())
    yield from (("isolation", name, value) for name, value in _isolation())
    yield from (("leftovers", name, value) for name, value in _leftovers())


def _versions() -> Iterator[tuple[str, str]]:
    yield "python", f"{platform.python_version()} ({platform.python_implementation()})"
    yield "system", f"{platform.system()} {platform.release()} {platform.machine()}"
    for package in PACKAGES:
        try:
            yield package, metadata.version(package)
        except metadata.PackageNotFoundError:
            yield package, "not installed"


def _limits() -> Iterator[tuple[str, str]]:
    from taxtui import folders

    yield "cores", str(os.cpu_count() or "unknown")
    yield "load", " ".join(f"{value:.1f}" for value in os.getloadavg())
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    few = "" if files == resource.RLIM_INFINITY or files >= ENOUGH_FILES else "; few for many sandboxes, see ulimit -n"
    yield "open files", f"{_limit(files)}{few}"
    yield "processes", _limit(resource.getrlimit(resource.RLIMIT_NPROC)[0])
    try:
        free_gib = shutil.disk_usage(folders.recordings()).free / 2**30
    except (OSError, TaxtuiError) as error:
        yield "disk for recordings", f"cannot be looked at: {type(error).__name__}"
        return
    yield "disk for recordings", f"{free_gib:.1f} GiB free{'; little' if free_gib < ENOUGH_DISK_GIB else ''}"


def _limit(value: int) -> str:
    return "unlimited" if value == resource.RLIM_INFINITY else str(value)


def _clocks() -> Iterator[tuple[str, str]]:
    source = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    yield "source", source.read_text().strip() if source.is_file() else "unknown"
    clock = time.get_clock_info("monotonic")
    yield "monotonic", f"{clock.implementation}, {clock.resolution * 1e9:.0f} ns"
    from taxtui.runner.health import spawn_baseline_ns

    floor = spawn_baseline_ns()
    yield "spawning a process", f"{floor / 1e6:.2f} ms at p50" if floor >= 0 else "unknown: there is no true to run"


def _isolation() -> Iterator[tuple[str, str]]:
    yield "cgroups", "v2" if Path("/sys/fs/cgroup/cgroup.controllers").exists() else _cgroup_v1()
    yield "as root", "yes" if os.geteuid() == 0 else "no"
    bubblewrap = shutil.which("bwrap")
    yield "bubblewrap", "installed" if bubblewrap else "not installed: local sandboxes are plain processes"
    yield "terminal", f"{os.environ.get('TERM', 'none')}, {'a terminal' if sys.stdout.isatty() else 'no terminal'}"


def _cgroup_v1() -> str:
    return "v1" if Path("/sys/fs/cgroup/memory").is_dir() else "none"


def _leftovers() -> Iterator[tuple[str, str]]:
    from taxtui.runner.cleanup import ledger

    try:
        left, alive = ledger.unswept_runs(""), ledger.live_runs()
    except TaxtuiError as error:
        yield "runs", f"cannot be looked at: {type(error).__name__}"
        return
    yield "runs going on", str(len(alive))
    for run_id in left:
        yield f"run {run_id}", f"not swept clean; taxtui sweep --run {run_id} --force --dry-run"
    if not left:
        yield "runs not swept clean", "none"


async def _substrates() -> list[tuple[str, str]]:
    """Each installed one by its own answer, as ``taxtui substrates --check`` asks."""
    from taxtui.commands.substrates import checked
    from taxtui.plan.spec import SubstrateRef
    from taxtui.sandboxes import registry

    rows: list[dict[str, Any]] = await checked([SubstrateRef(name=name) for name in registry.names()])
    states = {True: "ready", False: "unavailable"}
    return [(row["name"], f"{states[bool(row['ok'])]}: {row['detail'].removeprefix('ready, ')}") for row in rows]


def _lines(found: list[Fact]) -> Iterator[str]:
    before = ""
    for part, name, value in found:
        if part != before:
            yield f"{part}"
            before = part
        yield clean(f"  {name:{WIDTH}} {value}").rstrip()
