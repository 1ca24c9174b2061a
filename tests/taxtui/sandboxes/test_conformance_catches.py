"""The conformance suite finds each kind of broken promise, and the command line reports the outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final
from unittest.mock import AsyncMock

import pytest
from click.testing import CliRunner

from taxtui.plan.spec import Command
from taxtui.sandboxes.conformance import Bench, Violation, checks
from taxtui.sandboxes.conformance.__main__ import _judge, main
from taxtui.sandboxes.conformance.walker import cancellations
from taxtui.sandboxes.protocol import Availability, ExecResult
from taxtui.substrates.local import LocalOptions
from taxtui.substrates.local.substrate import LocalSandbox, LocalSubstrate

pytestmark = pytest.mark.processes

BY_NAME: Final = {str(check): check for check in checks()}
END: Final = "taxtui.substrates.local.substrate._end"


def sound_until_broken() -> LocalSubstrate:
    """Each test breaks one promise."""
    return LocalSubstrate(LocalOptions(isolation="plain"))


def break_exec(monkeypatch: pytest.MonkeyPatch, spoil: Callable[[ExecResult], ExecResult]) -> None:
    sound = LocalSandbox.exec

    async def exec_(self: LocalSandbox, command: Command) -> ExecResult:
        return spoil(await sound(self, command))

    monkeypatch.setattr(LocalSandbox, "exec", exec_)


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("exec: exit codes", lambda r: ExecResult(0, r.stdout, r.stderr)),
        ("exec: streams", lambda r: ExecResult(r.exit_code, r.stdout + r.stderr, b"")),
        ("exec: exact bytes", lambda r: ExecResult(r.exit_code, r.stdout.replace(b"\n", b"\r\n"), r.stderr)),
        ("exec: 5 MB output", lambda r: ExecResult(r.exit_code, r.stdout[:4_000_000], r.stderr)),
        ("exec: standard input", lambda r: ExecResult(r.exit_code, r.stdout.strip(), r.stderr)),
        # A failed search for survivors is no proof.
        ("session: closing", lambda r: ExecResult(137, b"0\n", b"") if r.stdout.strip() == b"0" else r),
    ],
)
async def test_a_spoilt_result(
    name: str, spoil: Callable[[ExecResult], ExecResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    break_exec(monkeypatch, spoil)
    with pytest.raises(Violation):
        await BY_NAME[name](sound_until_broken)


@pytest.mark.parametrize(
    ("name", "target", "complaint"),
    [
        ("exec: timeout", END, "should be dead"),
        ("exec: cancel a command", END, "should be dead"),
        ("session: timeout", END, "should be dead"),
        ("session: closing", END, "should be dead"),
        ("from create to destroy", f"{LocalSandbox.__module__}.LocalSandbox.destroy", "after destroy"),
        ("reset", f"{LocalSandbox.__module__}.LocalSandbox.reset", "after the reset"),
    ],
)
async def test_a_call_that_does_too_little(
    name: str, target: str, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def end_group_alone(*given: Any) -> None:
        if target == END:
            await given[0].close()

    monkeypatch.setattr(target, end_group_alone)
    with pytest.raises(Violation, match=complaint):
        await BY_NAME[name](sound_until_broken)


async def test_a_find_that_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = AsyncMock(return_value=[])
    with monkeypatch.context() as broken:
        broken.setattr(LocalSubstrate, "find", nothing)
        with pytest.raises(Violation, match="entries of find"):
            await BY_NAME["from create to destroy"](sound_until_broken)
    (run_id,) = {call.args[0] for call in nothing.await_args_list}
    async with sound_until_broken() as substrate:
        for entry in await substrate.find(run_id):
            await substrate.reap(entry)


async def test_a_failed_clean_up_is_added_to_the_complaint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bench, "eventually_gone", AsyncMock(side_effect=Violation("a sandbox is left")))
    break_exec(monkeypatch, lambda r: ExecResult(0, r.stdout, r.stderr))
    word, why = await _judge(BY_NAME["exec: exit codes"], sound_until_broken, None, "create")
    assert (word, why.endswith("; and then, cleaning up: a sandbox is left")) == ("FAIL", True)


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

        assert [number async for number in cancellations(three, delays_s=(0.0,))] == [1, 2, 3]
        assert reached == [0, 1, 2]

    @pytest.mark.parametrize(("error", "words"), [(None, "went on and returned"), (KeyError("lost"), "KeyError")])
    async def test_a_swallowed_cancellation_and_another_error_are_violations(
        self, error: Exception | None, words: str
    ) -> None:
        async def stubborn() -> None:
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                if error:
                    raise error from None

        with pytest.raises(Violation, match=words):
            [number async for number in cancellations(stubborn, delays_s=(0.01,))]

    async def test_an_endless_coroutine_is_cancelled_once_it_runs(self) -> None:
        begun, cancelled = asyncio.Event(), []

        async def endless() -> None:
            await asyncio.sleep(0)
            try:
                await asyncio.sleep(0.1)
                begun.set()
                await asyncio.sleep(0)
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(begun.is_set())
                raise

        async for _ in cancellations(endless, delays_s=(0.0,), running=begun.wait):
            begun.clear()
        assert cancelled == [False, True, True, True], "at its 2nd, 3rd and 4th suspension, and at the endless one"


class TestCommandLine:
    @pytest.mark.parametrize(("sound", "code", "line"), [(True, 0, "1 ok"), (False, 1, "FAIL  exec: exit codes")])
    def test_a_failed_check_is_the_exit_code(
        self, sound: bool, code: int, line: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not sound:
            break_exec(monkeypatch, lambda r: ExecResult(0, r.stdout, r.stderr))
        done = CliRunner().invoke(main, ["local:isolation=plain", "--only", "exec: exit codes"])
        assert (done.exit_code, line in done.output) == (code, True)

    def test_an_unusable_substrate(self, monkeypatch: pytest.MonkeyPatch) -> None:
        unusable = Availability(ok=False, detail="broken", fix="mend it")
        monkeypatch.setattr(LocalSubstrate, "check", AsyncMock(return_value=unusable))
        done = CliRunner().invoke(main, ["local"])
        assert done.exit_code == 3
        assert "broken; mend it" in done.output
