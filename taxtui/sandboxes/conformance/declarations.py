"""Checks without a sandbox."""

from __future__ import annotations

import asyncio
import time
from typing import Final

import msgspec

from taxtui.plan.spec import SubstrateRef
from taxtui.sandboxes.conformance.bench import Bench, Violation, check, equal, expect
from taxtui.sandboxes.protocol import Capabilities

OTHERS_S: Final = 5.0
"""A sandbox of another run counts as made by ``check`` after this time."""


@check("declarations")
async def declarations(bench: Bench) -> None:
    """A name, options with defaults and without unknown keys, capabilities, a variant and a provenance."""
    substrate = bench.substrate
    kind = type(substrate)
    expect(isinstance(kind.name, str) and kind.name.isidentifier(), f"name: {kind.name!r} is not a word")
    expect(isinstance(substrate.capabilities, Capabilities), "capabilities is not a Capabilities")
    expect(isinstance(substrate.variant, str), "variant is not text")
    expect(substrate.provenance in ("measured", "stand_in"), f"provenance: {substrate.provenance!r}")
    expect("create" in substrate.capabilities.acquire, "capabilities.acquire lacks create")
    text = str(SubstrateRef(name=kind.name, options={"key": "value"}))
    equal(text, f"{kind.name}:key=value", "the notation of the command line")
    try:
        kind.Options()
    except TypeError as error:
        raise Violation(f"Options has a field without a default: {error}") from error
    try:
        msgspec.convert({"no_such_option": "x"}, kind.Options)
    except msgspec.ValidationError:
        return
    raise Violation("Options takes unknown keys; declare the class with forbid_unknown_fields=True")


@check("check answers")
async def check_answers(bench: Bench) -> None:
    """``check`` reports readiness in a single line and changes nothing, with open clients and without."""
    before = {sandbox.name for sandbox in await bench.substrate.find()}
    for substrate in (bench.substrate, bench.factory()):
        answer = await substrate.check()
        expect(answer.ok, f"not available: {answer.detail}; {answer.fix}")
        expect(answer.detail and "\n" not in answer.detail, f"detail is not one line: {answer.detail!r}")
    new_names = {sandbox.name for sandbox in await bench.substrate.find()} - before
    by = time.monotonic() + OTHERS_S  # concurrent runs may use the substrate too
    while new_names and time.monotonic() < by:
        await asyncio.sleep(0.1)
        new_names &= {sandbox.name for sandbox in await bench.substrate.find()}
    expect(not new_names, f"check made {', '.join(new_names)}")
