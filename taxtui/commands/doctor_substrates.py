"""Checks of ``taxtui doctor``: usable substrates, and the access of their sandboxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from taxtui import installed, shipped
from taxtui.errors import TaxtuiError, UsageError
from taxtui.plan.notation import parse_substrate
from taxtui.plan.spec import SubstrateRef
from taxtui.report.formats import Report, Section
from taxtui.sandboxes import registry
from taxtui.terminal_text import clean

DEADLINES: Final = {
    "provider": "deadline: by the provider",
    "guest": "deadline: inside the sandbox, whose commands can stop it",
    "none": "deadline: none",
}


def parsed(names: Sequence[str]) -> list[SubstrateRef]:
    """Return the named substrates, or all installed substrates. Raises ``UsageError``: a name is unknown."""
    installed_names = registry.names()
    references = [parse_substrate(text) for text in names] or [SubstrateRef(name=name) for name in installed_names]
    if unknown := [reference.name for reference in references if reference.name not in installed_names]:
        raise UsageError(f"unknown substrate {unknown[0]!r}", fix=f"known: {', '.join(installed_names)}")
    return references


def report(rows: list[dict[str, Any]]) -> Report:
    """Return rows of ``checked`` for every output format."""
    return Report(lambda: _sections(rows), lambda: rows, lambda: "\n".join(lines(rows)))


def _texts(row: dict[str, Any]) -> list[str]:
    """Return name, state, detail and fix; the detail of a usable substrate ends with its deadline."""
    state = "ready" if row["ok"] else "unavailable"
    detail = row["detail"].removeprefix("ready, ")
    if row["ok"]:
        detail += f"; {DEADLINES[row['capabilities']['deadline']]}"
    return [row["name"], state, detail, row["fix"]]


def _sections(rows: Sequence[dict[str, Any]]) -> list[Section]:
    substrates = Section("", ["substrate", "state", "detail", "fix"], [_texts(row) for row in rows], [])
    findings = [[row["name"], *_finding(finding)] for row in rows for finding in row.get("isolation", ())]
    inside = Section("Tried from inside", ["substrate", "aspect", "state", "detail"], findings, [])
    return [substrates, *([inside] if findings else [])]


def _finding(finding: dict[str, Any]) -> list[str]:
    """Return aspect, state and detail of one test from inside a sandbox."""
    return [finding["aspect"], {True: "holds", False: "OPEN", None: "unknown"}[finding["holds"]], finding["detail"]]


def lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return a line per substrate, not cut to the terminal's width."""
    width = max((len(row["name"]) for row in rows), default=0)
    result = []
    for row in rows:
        name, state, detail, fix = _texts(row)
        arrow = f"  →  {fix}" if fix else ""
        result.append(clean(f"{name:{width}}  {state:11}  {detail}{arrow}").rstrip())
        for aspect, holds, reason in map(_finding, row.get("isolation", ())):
            result.append(clean(f"    {aspect:17}  {holds:7}  {reason}"))
    return result


async def checked(
    references: Sequence[SubstrateRef], *, probing: bool = False, named: bool = False
) -> list[dict[str, Any]]:
    """Return a row per substrate; with ``probing`` also the findings inside a sandbox.

    A paid substrate is probed only if the user ``named`` the substrate.
    """
    rows = []
    for reference in references:
        row = await _check(reference)
        if probing and row["ok"] and (named or not row["capabilities"]["paid"]):
            row |= await _probed(reference)
        rows.append(row)
    return rows


async def _check(reference: SubstrateRef) -> dict[str, Any]:
    """Return a row with the substrate's answer, or with the reason why the substrate cannot answer."""
    name = str(reference)
    if missing := _missing(reference):
        detail, fix = missing
        return {"name": name, "ok": False, "detail": detail, "fix": fix}
    try:
        with registry.blamed(reference.name):
            substrate = registry.build(reference)
            answer = await substrate.check()
    except TaxtuiError as error:
        return {"name": name, "ok": False, "detail": _without_name(reference, error.problem), "fix": error.fix}
    row: dict[str, Any] = msgspec.to_builtins(answer)
    del row["tools"]  # every program on the path
    row["detail"] = _without_name(reference, answer.detail)
    capabilities = msgspec.to_builtins(substrate.capabilities)
    return {"name": name, **row, "variant": substrate.variant, "capabilities": capabilities}


def _missing(reference: SubstrateRef) -> tuple[str, str] | None:
    """Return detail and fix if this installation lacks packages of the substrate; nothing is imported."""
    extra = shipped.row_of(reference.name).extra
    packages = installed.missing_packages(extra or None)
    if not packages:
        return None
    if error := registry.needs_newer_python(reference.name):
        return _without_name(reference, error.problem), error.fix
    *first, last = packages
    names = f"{', '.join(first)} and {last} are" if first else f"{last} is"
    return f"{names} not installed", installed.extra_command(extra)


def _without_name(reference: SubstrateRef, text: str) -> str:
    return text.removeprefix(f"{reference.name}: ")


async def _probed(reference: SubstrateRef) -> dict[str, Any]:
    """Return the findings inside a sandbox, or a finding with the error."""
    from taxtui import folders
    from taxtui.sandboxes import isolation

    try:
        with registry.blamed(reference.name):
            async with registry.build(reference) as substrate:
                findings = await isolation.probe(substrate, folders.new_run_id())
    except (TaxtuiError, TimeoutError) as error:
        findings = [isolation.Tried("sandboxes", None, str(error) or "none in time")]
    return {"isolation": [finding._asdict() for finding in findings]}
