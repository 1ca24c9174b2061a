"""``taxtui substrates``: what can be measured on, and with ``--check`` whether it can be measured on now."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import click
import msgspec

from taxtui.errors import SubstrateUnavailable, TaxtuiError, UsageError
from taxtui.plan.notation import parse_substrate
from taxtui.plan.spec import SubstrateRef
from taxtui.report.formats import BY_NAME, NAMES, Report, Section
from taxtui.sandboxes import registry
from taxtui.terminal_text import clean

_REQUIREMENT = re.compile(r"""([\w.-]+).*;.*extra\s*==\s*['"]([\w-]+)['"]""")


@click.command("substrates")
@click.option("--check", "checking", is_flag=True, help="Ask each whether it can be used; imports its SDK.")
@click.option(
    "-s", "--substrate", "chosen", multiple=True, metavar="NAME[:key=value,…]", help="Only this; repeat for several."
)
@click.option("--format", "form", type=click.Choice(NAMES), default=NAMES[0], show_default=True)
def command(checking: bool, chosen: tuple[str, ...], form: str) -> None:
    """List the installed substrates, what each still needs, and how to get it.

    Exit code: 3 when a substrate that was named with -s was checked and cannot be used.
    """
    known = registry.names()
    refs = [parse_substrate(text) for text in chosen] or [SubstrateRef(name=name) for name in known]
    if unknown := [ref.name for ref in refs if ref.name not in known]:
        raise UsageError(f"unknown substrate {unknown[0]!r}", fix=f"known: {', '.join(known)}")
    rows = asyncio.run(_checked(refs)) if checking else [_listed(ref) for ref in refs]
    told = Report(lambda: [_section(rows)], lambda: rows, lambda: "\n".join(_lines(rows)))
    click.echo(BY_NAME[form].render(told))
    if checking and chosen and not all(row["ok"] for row in rows):
        sys.exit(SubstrateUnavailable.exit_code)


def _words(row: dict[str, Any]) -> list[str]:
    """Name, state, what was found, what to do."""
    state = {True: "ready", False: "unavailable", None: "installed"}[row["ok"]]
    return [row["name"], state, row["detail"].removeprefix("ready, "), row["fix"]]


def _section(rows: Sequence[dict[str, Any]]) -> Section:
    return Section("", ["substrate", "state", "detail", "fix"], [_words(row) for row in rows], [])


def _lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    """As wide as they are: a reason is not cut to the terminal's width."""
    width = max((len(row["name"]) for row in rows), default=0)
    found = []
    for name, state, detail, fix in map(_words, rows):
        arrow = f"  →  {fix}" if fix else ""
        found.append(clean(f"{name:{width}}  {state:11}  {detail}{arrow}").rstrip())
    return found


def _listed(ref: SubstrateRef) -> dict[str, Any]:
    """A row from what is installed alone: nothing is imported. ``ok`` is null where only a check can say."""
    name, extra = str(ref), registry.EXTRAS.get(ref.name)
    missing = [package for package in _requires(extra) if not _installed(package)]
    if not missing:
        return {"name": name, "ok": None, "detail": "", "fix": ""}
    fix = f'pip install "taxtui[{extra}]"'
    *others, last = missing
    lacks = f"{', '.join(others)} and {last} are" if others else f"{last} is"
    return {"name": name, "ok": False, "detail": f"{lacks} not installed", "fix": fix}


def _requires(extra: str | None) -> list[str]:
    found = (_REQUIREMENT.match(line) for line in metadata.requires("taxtui") or ())
    return [match[1] for match in found if match and match[2] == extra]


def _installed(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True


async def _checked(refs: Sequence[SubstrateRef]) -> list[dict[str, Any]]:
    return [await _check(ref) for ref in refs]


async def _check(ref: SubstrateRef) -> dict[str, Any]:
    """A row with the substrate's own answer; one that cannot be loaded or does not take its options says why."""
    listed, name = _listed(ref), str(ref)
    if listed["ok"] is False:
        return listed
    try:
        with registry.blamed(ref.name):
            substrate = registry.build(ref)
            answer = await substrate.check()
    except TaxtuiError as error:
        return {"name": name, "ok": False, "detail": error.problem.removeprefix(f"{ref.name}: "), "fix": error.fix}
    found: dict[str, Any] = msgspec.to_builtins(answer)
    found.pop("tools")  # every program on the path
    capabilities = msgspec.to_builtins(substrate.capabilities)
    found["detail"] = answer.detail.removeprefix(f"{ref.name}: ")
    return {"name": name, **found, "variant": substrate.variant, "capabilities": capabilities}
