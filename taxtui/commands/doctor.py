"""``taxtui doctor``: facts about this machine, substrates and remains of earlier runs."""

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
from taxtui.errors import SubstrateUnavailable, TaxtuiError, UsageError
from taxtui.report.formats import BY_NAME, NAMES, Report, Section
from taxtui.terminal_text import clean

Fact = tuple[str, str, str]
"""Part, name and value."""

_SDKS: Final = (package for row in shipped.SUBSTRATES.values() for package in row.packages)
PACKAGES: Final = tuple(dict.fromkeys(("taxtui", "textual", "msgspec", *_SDKS)))
ENOUGH_FILES: Final = 1024
ENOUGH_DISK_GIB: Final = 1.0
WIDTH: Final = 24


@click.command("doctor")
@click.option(
    "-s",
    "--substrate",
    "named",
    multiple=True,
    metavar="NAME[:key=value,…]",
    help="Check this substrate only, repeatable; exit 3 if unusable.",
)
@click.option(
    "--probe",
    "probing",
    is_flag=True,
    help="Create two sandboxes of each usable substrate and test their isolation; of paid substrates only with -s.",
)
@click.option(
    "--canary",
    is_flag=True,
    help="Create a sandbox of each substrate of -s, run 20 commands, remove it; exit 5 above a limit, 1 on a failure.",
)
@click.option("--max-start", metavar="TIME", help="Limit of --canary: create request to the first command's end.")
@click.option("--max-exec", metavar="TIME", help="Limit of --canary: median round trip of a command.")
@click.option("--max-release", metavar="TIME", help="Limit of --canary: removal of the sandbox.")
@click.option("--acquire", metavar="HOW", help="Origin of the sandbox of --canary: create or pool:NAME.  [create]")
@click.option("--format", "form", type=click.Choice(NAMES), default=NAMES[0], show_default=True, help="Output format.")
def command(named: tuple[str, ...], probing: bool, canary: bool, form: str, **limits: str | None) -> None:
    """Check this machine and the substrates: versions, limits, clocks, isolation, readiness, leftovers of runs.

    The list names no machine, account or folder, and can be pasted into a bug report.
    Without --probe and --canary nothing is created; nothing is sent. With -s only these substrates are checked, with
    their options. Exit codes: 0, even with problems; 3 a named substrate cannot be used.
    """
    if canary:
        _canary(named, probing, form, limits)
        return
    if unused := [name for name, value in limits.items() if value is not None]:
        raise UsageError(f"--{unused[0].replace('_', '-')} is for a canary", fix="add --canary")
    from taxtui.commands import doctor_substrates

    references = doctor_substrates.parsed(named)
    rows = asyncio.run(doctor_substrates.checked(references, probing=probing, named=bool(named)))
    if named:
        click.echo(BY_NAME[form].render(doctor_substrates.report(rows)))
        if not all(row["ok"] for row in rows):
            sys.exit(SubstrateUnavailable.exit_code)
        return
    facts = [*_facts(), *(("substrates", name, value) for name, value in _substrates(rows))]
    report = Report(
        lambda: [Section("", ["part", "name", "value"], [list(fact) for fact in facts], [])],
        lambda: [{"part": part, "name": name, "value": value} for part, name, value in facts],
        lambda: "\n".join(_lines(facts)),
    )
    click.echo(BY_NAME[form].render(report))


def _canary(names: tuple[str, ...], probing: bool, form: str, limits: dict[str, str | None]) -> None:
    """Print a canary for each substrate, and exit with 0 if all are within their limits."""
    from taxtui.commands import doctor_canary
    from taxtui.plan.durations import parse_duration_ns

    if not names:
        raise UsageError("--canary creates a sandbox", fix="name its substrate: -s kubernetes --canary")
    if probing:
        raise UsageError("--canary and --probe are two checks", fix="give one of them")
    acquire = limits.pop("acquire") or "create"
    limits_ns = {
        name.removeprefix("max_"): parse_duration_ns(text) for name, text in limits.items() if text is not None
    }
    results = doctor_canary.canaries(names, acquire, limits_ns)
    click.echo(BY_NAME[form].render(doctor_canary.report(results)))
    sys.exit(doctor_canary.exit_code(results))


def _facts() -> Iterator[Fact]:
    parts = {
        "versions": _versions,
        "limits": _limits,
        "clocks": _clocks,
        "isolation": _isolation,
        "leftovers": _leftovers,
    }
    for part, read in parts.items():
        yield from ((part, name, value) for name, value in read())


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
        yield "disk for recordings", f"unknown: {type(error).__name__}"
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
        unclean, alive = ledger.unswept_runs(""), ledger.live_runs()
    except TaxtuiError as error:
        yield "runs", f"unknown: {type(error).__name__}"
        return
    yield "runs in progress", str(len(alive))
    for run_id in unclean:
        yield f"run {run_id}", f"not cleaned; taxtui clean --run {run_id} --force --dry-run"
    if not unclean:
        yield "runs not cleaned", "none"


def _substrates(rows: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield each substrate with its state, detail and fix, and the findings of a probe."""
    from taxtui.runner.redaction import scrub

    states = {True: "ready", False: "unavailable"}
    for row in rows:
        fix = f"; fix it with: taxtui doctor -s {row['name']}" if row["fix"] else ""
        yield row["name"], f"{states[bool(row['ok'])]}: {scrub(row['detail'].removeprefix('ready, '))}{fix}"
        for finding in row.get("isolation", ()):
            holds = {True: "holds", False: "OPEN", None: "unknown"}[finding["holds"]]
            yield f"{row['name']} {finding['aspect']}", f"{holds}: {scrub(finding['detail'])}"


def _lines(facts: list[Fact]) -> Iterator[str]:
    heading = ""
    for part, name, value in facts:
        if part != heading:
            yield part
            heading = part
        yield clean(f"  {name:{WIDTH}} {value}").rstrip()
