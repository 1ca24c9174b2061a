"""The suite itself: each kind of broken promise is found, and the command line says so."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

import pytest
from click.testing import CliRunner

from taxtui.plan.spec import Command
from taxtui.sandboxes.conformance import Bench, NotApplicable, Violation, checks
from taxtui.sandboxes.conformance.__main__ import _judge, main
from taxtui.sandboxes.conformance.walker import cancellations
from taxtui.sandboxes.kit.process import Process
from taxtui.sandboxes.protocol import Availability, Capabilities, ExecResult, Found
from taxtui.substrates.local import LocalOptions
from taxtui.substrates.local.sandbox import LocalSandbox
from taxtui.substrates.local.substrate import LocalSubstrate

pytestmark = pytest.mark.processes

BY_NAME = {str(check): check for check in checks()}


class Broken(LocalSubstrate):
    """Sound by itself; each test breaks one thing."""

    def __init__(self) -> None:
        super().__init__(LocalOptions(isolation="plain"))


def broken_exec(monkeypatch: pytest.MonkeyPatch, spoil: object) -> None:
    sound = LocalSandbox.exec

    async def exec_(self: LocalSandbox, command: Command) -> ExecResult:
        return spoil(await sound(self, command))  # type: ignore[operator]

    monkeypatch.setattr(LocalSandbox, "exec", exec_)


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("exec: exit codes", lambda r: ExecResult(0, r.stdout, r.stderr)),
        ("exec: streams", lambda r: ExecResult(r.exit_code, r.stdout + r.stderr, b"")),
        ("exec: exact bytes", lambda r: ExecResult(r.exit_code, r.stdout.replace(b"\n", b"\r\n"), r.stderr)),
        ("exec: 5 MB output", lambda r: ExecResult(r.exit_code, r.stdout[:4_000_000], r.stderr)),
        ("exec: standard input", lambda r: ExecResult(r.exit_code, r.stdout.strip(), r.stderr)),
    ],
)
async def test_spoilt_results(name: str, spoil: object, monkeypatch: pytest.MonkeyPatch) -> None:
    broken_exec(monkeypatch, spoil)
    with pytest.raises(Violation):
        await BY_NAME[name](Broken)


async def test_looking_for_survivors_that_fails_is_no_proof_of_any(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_exec(monkeypatch, lambda r: ExecResult(137, b"0\n", b"") if r.stdout.strip() == b"0" else r)
    with pytest.raises(Violation, match="exit code of 'rm -f beat"):
        await BY_NAME["session: closing"](Broken)


@pytest.mark.parametrize("name", ["exec: timeout", "exec: cancel a command", "session: timeout", "session: closing"])
async def test_a_kill_that_stops_at_the_process_group(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def group_alone(process: Process, mark: str) -> None:
        await process.close()

    monkeypatch.setattr("taxtui.substrates.local.sandbox._end", group_alone)
    with pytest.raises(Violation, match="should be dead"):
        await BY_NAME[name](Broken)


async def test_a_find_that_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for: set[str] = set()

    async def nothing(self: LocalSubstrate, run_id: str | None = None) -> Sequence[Found]:
        asked_for.add(str(run_id))
        return []

    with monkeypatch.context() as broken:
        broken.setattr(LocalSubstrate, "find", nothing)
        with pytest.raises(Violation, match="entries of find"):
            await BY_NAME["from create to destroy"](Broken)
    # What is left of its own run, and no more: other workers have theirs in the same folder.
    (run_id,) = asked_for
    async with Broken() as substrate:
        for found in await substrate.find(run_id):
            await substrate.reap(found)


async def test_a_destroy_that_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(self: LocalSandbox) -> None:
        pass

    monkeypatch.setattr(LocalSandbox, "destroy", nothing)
    with pytest.raises(Violation, match="after destroy"):
        await BY_NAME["from create to destroy"](Broken)


async def test_a_clean_up_that_fails_as_well_is_said_beside_the_complaint(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = Bench.clear

    async def clear(self: Bench) -> None:
        await sound(self)
        raise Violation("a sandbox is left")

    monkeypatch.setattr(Bench, "clear", clear)
    broken_exec(monkeypatch, lambda r: ExecResult(0, r.stdout, r.stderr))
    outcome = await _judge(BY_NAME["exec: exit codes"], Broken, None, 30, verbose=False)
    assert outcome[0] == "FAIL"
    assert outcome[1].endswith("; and then, cleaning up: a sandbox is left")


async def test_a_suspension_that_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(limiter: object, name: str) -> None:
        pass

    monkeypatch.setattr("taxtui.substrates.local.freezing.stop", nothing)
    with pytest.raises(Violation, match="a sleep of 1 s took"):
        await BY_NAME["suspend and resume"](Broken)
    with pytest.raises(Violation, match="a command ended in a suspended sandbox"):
        await BY_NAME["a command while suspended"](Broken)


async def test_a_resume_that_continues_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(limiter: object, name: str) -> None:
        pass

    monkeypatch.setattr("taxtui.substrates.local.freezing.continue_all", nothing)
    with pytest.raises((Violation, TimeoutError)):
        await BY_NAME["suspend and resume"](Broken, timeout_s=10)


async def test_a_reset_that_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(self: LocalSandbox, marks: object) -> None:
        pass

    monkeypatch.setattr(LocalSandbox, "reset", nothing)
    with pytest.raises(Violation, match="after the reset"):
        await BY_NAME["reset"](Broken)


async def test_what_is_not_promised_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Broken, "capabilities", Capabilities(bash=False))
    for name in ("exec: bash", "deadline", "reset", "cancel reset"):
        with pytest.raises(NotApplicable):
            await BY_NAME[name](Broken)


class TestWalker:
    async def test_every_await_is_cancelled_once(self) -> None:
        reached: list[int] = []

        async def three() -> None:
            for step in range(3):
                try:
                    await asyncio.sleep(0)
                except asyncio.CancelledError:
                    reached.append(step)
                    raise

        assert [number async for number in cancellations(three)] == [1, 2, 3]
        assert reached == [0, 1, 2]

    async def test_a_swallowed_cancellation_is_a_violation(self) -> None:
        async def stubborn() -> str:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(1)
            return "done"

        with pytest.raises(Violation, match="went on and returned"):
            [number async for number in cancellations(stubborn)]

    async def test_another_error_is_a_violation(self) -> None:
        async def confused() -> None:
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                raise KeyError("lost") from None

        with pytest.raises(Violation, match="KeyError"):
            [number async for number in cancellations(confused, delay_s=0.01)]

    async def test_a_coroutine_that_never_ends(self) -> None:
        async def endless() -> None:
            await asyncio.Event().wait()

        assert [number async for number in cancellations(endless)] == [1, 2]

    async def test_what_never_ends_is_cancelled_once_it_runs(self) -> None:
        begun, cancelled = asyncio.Event(), []

        async def endless() -> None:
            await asyncio.sleep(0)
            try:
                await asyncio.sleep(1)
                begun.set()
                await asyncio.sleep(0)
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(begun.is_set())
                raise

        async for _ in cancellations(endless, running=begun.wait):
            begun.clear()
        assert cancelled == [False, True, True, True], "at its 2nd, 3rd and 4th suspension, and where it then stays"

    async def test_nothing_goes_on_where_it_never_runs(self) -> None:
        tasks = asyncio.all_tasks()

        async def refused() -> None:
            raise Violation("no command can be run")

        with pytest.raises(Violation, match="no command can be run"):
            [number async for number in cancellations(asyncio.Event().wait, running=refused)]
        assert asyncio.all_tasks() == tasks


class TestCommandLine:
    def test_it_passes(self) -> None:
        done = CliRunner().invoke(main, ["local:isolation=plain", "--only", "declarations"])
        assert done.exit_code == 0, done.output
        assert "1 ok" in done.output

    def test_it_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        broken_exec(monkeypatch, lambda r: ExecResult(0, r.stdout, r.stderr))
        done = CliRunner().invoke(main, ["local:isolation=plain", "--only", "exec: exit codes"])
        assert done.exit_code == 1
        assert "FAIL  exec: exit codes" in done.output

    def test_a_substrate_that_cannot_be_used(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def unusable(self: LocalSubstrate) -> Availability:
            return Availability(ok=False, detail="broken", fix="mend it")

        monkeypatch.setattr(LocalSubstrate, "check", unusable)
        done = CliRunner().invoke(main, ["local"])
        assert done.exit_code == 3
        assert "broken; mend it" in done.output
