"""The checks of ``taxtui doctor``: which substrates can be used, and what a sandbox can reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from taxtui import installed, shipped
from taxtui.errors import TaxtuiError, UsageError
from taxtui.plan.notation import parse_substrate
from taxtui.plan.spec import SubstrateRef
from taxtui.report.formats import Report, Section
from taxtui.sandboxes import registry
from taxtui.terminal_text import clean

_DEADLINES = {
    "provider": "deadline: by the provider",
    "guest": "deadline: inside the sandbox, whose commands can stop it",
    "none": "deadline: none",
}


def parsed(chosen: Sequence[str]) -> list[SubstrateRef]:
    """Return the substrates that are named, or all that are installed. Raises ``UsageError``: one is unknown."""
    known = registry.names()
    refs = [parse_substrate(text) for text in chosen] or [SubstrateRef(name=name) for name in known]
    if unknown := [ref.name for ref in refs if ref.name not in known]:
        raise UsageError(f"unknown substrate {unknown[0]!r}", fix=f"known: {', '.join(known)}")
    return refs


def report(rows: list[dict[str, Any]]) -> Report:
    """Return rows of ``checked`` for every output format."""
    return Report(lambda: _sections(rows), lambda: rows, lambda: "\n".join(lines(rows)))


def _words(row: dict[str, Any]) -> list[str]:
    """Name, state, detail and fix; the detail of a usable substrate ends with its deadline."""
    state = {True: "ready", False: "unavailable", None: "installed"}[row["ok"]]
    detail = row["detail"].removeprefix("ready, ")
    if row["ok"]:
        detail += f"; {_DEADLINES[row['capabilities']['deadline']]}"
    return [row["name"], state, detail, row["fix"]]


def _sections(rows: Sequence[dict[str, Any]]) -> list[Section]:
    results = [[row["name"], *_tried(tried)] for row in rows for tried in row.get("isolation", ())]
    inside = Section("Tried from inside", ["substrate", "aspect", "state", "detail"], results, [])
    words = [_words(row) for row in rows]
    return [Section("", ["substrate", "state", "detail", "fix"], words, []), *([inside] if results else [])]


def _tried(finding: dict[str, Any]) -> list[str]:
    """Aspect, state and detail of something that a probe has tried."""
    return [finding["aspect"], {True: "holds", False: "OPEN", None: "unknown"}[finding["holds"]], finding["detail"]]


def lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return a line per substrate, not cut to the terminal's width."""
    width = max((len(row["name"]) for row in rows), default=0)
    results = []
    for row in rows:
        name, state, detail, fix = _words(row)
        arrow = f"  →  {fix}" if fix else ""
        results.append(clean(f"{name:{width}}  {state:11}  {detail}{arrow}").rstrip())
        for aspect, kept, what in map(_tried, row.get("isolation", ())):
            results.append(clean(f"    {aspect:17}  {kept:7}  {what}"))
    return results


def _listed(ref: SubstrateRef) -> dict[str, Any]:
    """A row from what is installed alone: nothing is imported. ``ok`` is null where only a check can say."""
    name, extra = str(ref), shipped.row_of(ref.name).extra or None
    missing = installed.missing_packages(extra)
    if not missing:
        return {"name": name, "ok": None, "detail": "", "fix": ""}
    if too_old := registry.needs_newer_python(ref.name):
        return {"name": name, "ok": False, "detail": too_old.problem.removeprefix(f"{ref.name}: "), "fix": too_old.fix}
    fix = installed.extra_command(extra or "")
    *others, last = missing
    lacks = f"{', '.join(others)} and {last} are" if others else f"{last} is"
    return {"name": name, "ok": False, "detail": f"{lacks} not installed", "fix": fix}


async def checked(refs: Sequence[SubstrateRef], *, probing: bool = False, named: bool = False) -> list[dict[str, Any]]:
    """A row for each: its own answer, and with ``probing`` what a sandbox can reach.

    What costs money is only probed where it was ``named``.
    """
    rows = []
    for ref in refs:
        row = await _check(ref)
        if probing and row["ok"] and (named or not row["capabilities"]["paid"]):
            row |= await _probed(ref)
        rows.append(row)
    return rows


async def _probed(ref: SubstrateRef) -> dict[str, Any]:
    """Return what a sandbox can reach; an error takes the detail's place."""
    from taxtui import folders
    from taxtui.sandboxes import isolation

    try:
        with registry.blamed(ref.name):
            async with registry.build(ref) as substrate:
                result = await isolation.probe(substrate, folders.new_run_id())
    except (TaxtuiError, TimeoutError) as error:
        return {"isolation": [isolation.Tried("sandboxes", None, str(error) or "none in time")._asdict()]}
    return {"isolation": [finding._asdict() for finding in result]}


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
    result: dict[str, Any] = msgspec.to_builtins(answer)
    result.pop("tools")  # every program on the path
    capabilities = msgspec.to_builtins(substrate.capabilities)
    result["detail"] = answer.detail.removeprefix(f"{ref.name}: ")
    return {"name": name, **result, "variant": substrate.variant, "capabilities": capabilities}
