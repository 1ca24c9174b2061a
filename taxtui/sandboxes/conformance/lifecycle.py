"""The answer of ``check``, and sandboxes: made, found, reset, removed."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import cast

import msgspec

from taxtui.errors import CreateFailed, ExecFailed, ExecTimeout, SandboxLost, SubstrateError
from taxtui.plan.spec import Command
from taxtui.sandboxes.conformance.bench import Bench, NotApplicable, Violation, check, equal, expect, output_of, raises
from taxtui.sandboxes.kit.labels import LABEL_DEADLINE
from taxtui.sandboxes.lifecycle import Resets
from taxtui.sandboxes.protocol import Marks, Prepares

_DEADLINE_SLACK_S = 60.0
_FAILS_WITHIN_S = 20.0
_OTHERS_S = 5.0
"""A sandbox of another run counts as made by ``check`` after this time."""


@check("options")
async def options(bench: Bench) -> None:
    """Every option has a default, and an unknown option is refused."""
    kind = type(bench.substrate).Options
    try:
        kind()
    except TypeError as error:
        raise Violation(f"Options has a field without a default: {error}") from error
    with raises(msgspec.ValidationError, subject="an unknown option (declare Options with forbid_unknown_fields=True)"):
        msgspec.convert({"no_such_option": "x"}, kind)


@check("check answers")
async def check_answers(bench: Bench) -> None:
    """``check`` reports readiness in a single line and changes nothing, with open clients and without."""
    before = {sandbox.name for sandbox in await bench.substrate.find()}
    for substrate in (bench.substrate, bench.factory()):
        answer = await substrate.check()
        expect(answer.ok, f"not available: {answer.detail}; {answer.fix}")
        expect(answer.detail and "\n" not in answer.detail, f"detail is not one line: {answer.detail!r}")
    new_names = {sandbox.name for sandbox in await bench.substrate.find()} - before
    by = time.monotonic() + _OTHERS_S  # concurrent runs may use the substrate too
    while new_names and time.monotonic() < by:
        await asyncio.sleep(0.1)
        new_names &= {sandbox.name for sandbox in await bench.substrate.find()}
    expect(not new_names, f"check made {', '.join(new_names)}")


@check("two at once")
async def two_at_once(bench: Bench) -> None:
    """Sandboxes made and used at the same time do not see each other's files."""
    first, second = await asyncio.gather(bench.create(), bench.create())
    expected = b"%d\nmine\n" % (int(await output_of(first, "ls | wc -l")) + 1)
    write = "echo mine > mine; sleep 0.5; ls | wc -l; cat mine"
    results = await asyncio.gather(output_of(first, write), output_of(second, write))
    equal(results, [expected, expected], "files of each sandbox")


@check("from create to destroy")
async def whole_life(bench: Bench) -> None:
    """Prepare, create, find, ready, exec, destroy, gone; and then commands are refused."""
    spec = bench.spec()
    marks = Marks()
    if isinstance(bench.substrate, Prepares):
        await bench.substrate.prepare(bench.run_id, spec.limits)
        await bench.substrate.prepare(bench.run_id, spec.limits)
        equal(await bench.names(), set(), "entries of find after prepare")
    began_ns = time.monotonic_ns()
    sandbox = await bench.substrate.create(spec, marks)
    equal(sandbox.name, spec.name, "its name")
    equal(await bench.names(), {spec.name}, "entries of find after create")
    await sandbox.wait_ready(marks)
    equal((await sandbox.exec(Command(script="echo ready"))).stdout, b"ready\n", "the first command")
    for name, at_ns, resolution_ns in marks.seen:
        expect(name, "a mark has no name")
        expect(began_ns <= at_ns <= time.monotonic_ns(), f"mark {name!r} lies outside of create and ready")
        expect(resolution_ns >= 0, f"mark {name!r} has a negative resolution")
    await sandbox.destroy()
    if bench.capabilities.confirms_gone:
        equal(await bench.names(), set(), "entries of find after destroy")
    await bench.eventually_gone(spec.name)
    with raises(SandboxLost, ExecFailed, subject="a command in a removed sandbox"):
        await sandbox.exec(Command(script="true"))
    with raises(SandboxLost, ExecFailed, subject="a session in a removed sandbox"):
        await sandbox.open_session()


@check("destroy twice")
async def destroy_twice(bench: Bench) -> None:
    """Destroy is idempotent: called twice at once, called again, and called after a reap."""
    sandbox = await bench.create()
    await asyncio.gather(sandbox.destroy(), sandbox.destroy())
    await sandbox.destroy()
    second = await bench.create()
    for listed in await bench.substrate.find(bench.run_id):
        await bench.substrate.reap(listed)
    await second.destroy()


@check("destroy while a command runs")
async def destroy_busy(bench: Bench) -> None:
    """Destroy does not wait for a running command; the command fails."""
    sandbox = await bench.create()
    running = asyncio.create_task(sandbox.exec(Command(script="sleep 600", timeout_s=300)))
    await asyncio.sleep(1.0)
    began = time.monotonic()
    await sandbox.destroy()
    expect(time.monotonic() - began < _DEADLINE_SLACK_S, "destroy waited for the command")
    ended, _ = await asyncio.wait({running}, timeout=_FAILS_WITHIN_S)
    expect(ended, f"its command still waits {_FAILS_WITHIN_S:g} s later")
    with contextlib.suppress(SandboxLost, ExecFailed):
        result = await running
        expect(result.exit_code != 0, "a killed command returned 0")


@check("find and reap")
async def find_and_reap(bench: Bench) -> None:
    """Sandboxes of a dead run are found by their labels, with age and deadline, and removed."""
    orphan = bench.spec()
    async with bench.factory() as creator:
        sandbox = await creator.create(orphan, Marks())
        await sandbox.wait_ready(Marks())
        await sandbox.exec(Command(script="sleep 600 >/dev/null 2>&1 &"))
    second = await bench.create()
    listed = {listing.name: listing for listing in await bench.substrate.find(bench.run_id)}
    equal(set(listed), {orphan.name, second.name}, "entries of find for the run")
    everything = {listing.name for listing in await bench.substrate.find()}
    expect(set(listed) <= everything, "find without a run lists fewer sandboxes than find with a run")
    equal(await bench.substrate.find("no-such-run"), [], "entries of find for an unknown run")
    entry = listed[orphan.name]
    equal(entry.run_id, bench.run_id, "its run")
    expect(0 <= entry.age_s < 600, f"its age of {entry.age_s} s")
    equal(entry.deadline_unix_s, int(orphan.labels[LABEL_DEADLINE]), "its deadline")
    await bench.substrate.reap(entry)
    await bench.eventually_gone(orphan.name)
    await bench.substrate.reap(entry)
    equal((await second.exec(Command(script="echo untouched"))).stdout, b"untouched\n", "the other sandbox")


@check("the same name twice")
async def same_name(bench: Bench) -> None:
    """A second create under the same name makes no second sandbox, if the capability says so."""
    bench.requires(bench.capabilities.idempotent_create, "the substrate does not promise idempotence")
    spec = bench.spec()
    first = await bench.create(spec)
    with contextlib.suppress(CreateFailed):
        await bench.substrate.create(spec, Marks())
    equal(len(await bench.substrate.find(bench.run_id)), 1, "sandboxes under the same name")
    equal((await first.exec(Command(script="echo intact"))).stdout, b"intact\n", "the first one")


@check("deadline")
async def deadline(bench: Bench) -> None:
    """A sandbox ends at the time to live without taxtui, unless the capability ``deadline`` is ``none``."""
    bench.requires(bench.capabilities.deadline != "none", "the substrate has no deadline")
    if bench.short_ttl_s is None:
        raise NotApplicable("not waited for; --ttl SECONDS or short_ttl_s says how long")
    sandbox = await bench.create(bench.spec(ttl_s=bench.short_ttl_s))
    give_up = time.monotonic() + bench.short_ttl_s + _DEADLINE_SLACK_S
    while time.monotonic() < give_up:
        await asyncio.sleep(0.2)
        try:
            await sandbox.exec(Command(script="true", timeout_s=10))
        except ExecTimeout:
            continue
        except SubstrateError:
            await sandbox.destroy()
            return
    expect(False, f"it still takes commands {_DEADLINE_SLACK_S:g} s after its deadline")


@check("reset")
async def reset(bench: Bench) -> None:
    """A reset sandbox has the files of a new sandbox, and no process."""
    bench.requires("reset" in bench.capabilities.acquire, "the substrate cannot reset")
    sandbox = await bench.create()
    listing = "find . | sort; find \"${TMPDIR:-/tmp}\" -mindepth 1 -name 'left*'; true"
    before = await output_of(sandbox, listing)
    clutter = (
        'mkdir -p left/deep .left; for f in left/deep/file .left/file "${TMPDIR:-/tmp}/left"; do echo x > $f; done'
    )
    beat = "(while :; do date > left.beat; sleep 0.1; done) >/dev/null 2>&1 </dev/null &"
    await output_of(sandbox, f"{clutter}; chmod 500 left; {beat}")
    for _ in range(2):
        await cast(Resets, sandbox).reset(Marks())
        await asyncio.sleep(0.4)
        equal(await output_of(sandbox, listing), before, "files after the reset")
    equal(await output_of(sandbox, "echo x > note && cat note"), b"x\n", "a command after the reset")
