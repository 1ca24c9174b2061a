"""``SimpleSubstrate`` with three hooks passes the conformance suite, and the shipped fake what needs no shell."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from unittest.mock import AsyncMock

import pytest

from taxtui.errors import CleanupFailed, CreateFailed, ExecFailed, SandboxLost, SubstrateUnavailable, Throttled
from taxtui.plan.spec import Command, Limits, SandboxSpec
from taxtui.sandboxes import simple
from taxtui.sandboxes.conformance import Check, NotApplicable, checks
from taxtui.sandboxes.example import Example, ExampleOptions
from taxtui.sandboxes.fake import FakeSubstrate
from taxtui.sandboxes.fake_sdk import ApiError
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.kit.process import Process
from taxtui.sandboxes.kit.shell.framed_shell import ByteStream
from taxtui.sandboxes.protocol import Availability, Capabilities, Marks


class WithSessions(Example):
    """Also starts programs with their streams attached."""

    capabilities = Capabilities(idempotent_create=False, modes=("exec", "session"))

    async def start(self, handle: str, argv: Sequence[str]) -> ByteStream:
        if handle not in await self.list():
            raise ApiError(404, "gone")
        root = Path(self.options.account) / handle
        env = {"PATH": "/usr/bin:/bin", "HOME": str(root), "LANG": "C.UTF-8", "FAKE_SDK_SANDBOX": handle}
        return Process(["/bin/sh", "-c", 'cd "$0" && exec "$@"', str(root / "work"), *argv], env, stdin=True)


class Unlike(Example):
    """Deviates from the example by what a test sets: errors by hook, and what happens before a command or a list."""

    trouble: Exception | None = None
    before_run: Callable[[Sequence[str], bytes], object] = staticmethod(lambda argv, stdin: None)
    leaving: Mapping[str, Mapping[str, str]] = {}
    leaving_s = 0.0
    looks = 0

    async def create_sandbox(self, spec: SandboxSpec) -> str:
        return self._or_trouble() or await super().create_sandbox(spec)

    async def ping(self) -> str:
        return self._or_trouble() or await super().ping()

    async def run(self, handle: str, argv: Sequence[str], stdin: bytes, timeout_s: float) -> tuple[int, bytes, bytes]:
        self.before_run(argv, stdin)
        return await super().run(handle, argv, stdin, timeout_s)

    async def delete(self, handle: str) -> None:
        self._or_trouble()
        if self.leaving_s:
            self.leaving = await super().list()
            asyncio.get_running_loop().call_later(self.leaving_s, setattr, self, "leaving", {})
        await super().delete(handle)

    async def list(self) -> Mapping[str, Mapping[str, str]]:
        self.looks += 1
        return self.leaving or await super().list()

    def _or_trouble(self) -> str:
        if self.trouble:
            raise self.trouble
        return ""


class WithoutStdin(Unlike):
    """Of a provider whose exec takes no standard input."""

    takes_stdin = False

    def before_run(self, argv: Sequence[str], stdin: bytes) -> None:
        assert stdin == b""


WITHOUT_A_SHELL = {
    *("options", "check answers", "from create to destroy", "destroy twice", "find and reap", "the same name twice"),
    *("cancel create", "cancel ready", "cancel opening a session", "cancel destroy", "cancel reset"),
}


@pytest.fixture
def account(tmp_path: Path) -> ExampleOptions:
    return ExampleOptions(str(tmp_path))


@pytest.mark.parametrize("check", checks(), ids=str)
async def test_with_sessions_it_passes_the_conformance_suite(check: Check, account: ExampleOptions) -> None:
    try:
        await check(lambda: WithSessions(account))
    except NotApplicable as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("check", [check for check in checks() if check.name in WITHOUT_A_SHELL], ids=str)
async def test_the_shipped_fake_passes_where_no_shell_is_needed(check: Check) -> None:
    fake = FakeSubstrate()
    await check(lambda: fake)
    assert fake.alive == {}


@pytest.mark.parametrize("name", ["exec: scripts", "exec: standard input"])
async def test_without_standard_input_long_scripts_arrive_all_the_same(name: str, account: ExampleOptions) -> None:
    [check] = [each for each in checks() if str(each) == name]
    await check(lambda: WithoutStdin(account))


def spec(name: str = "one") -> SandboxSpec:
    return SandboxSpec(name=name, labels={LABEL_RUN: "mine"}, limits=Limits(), ttl_s=60)


async def test_failures_of_the_fake_come_in_turn_and_a_half_made_sandbox_can_be_found() -> None:
    fake = FakeSubstrate()
    fake.fail("create", Throttled("slow down", retry_after_s=1.0), times=2)
    fake.fail("created", SandboxLost("no answer"))
    for number in range(3):
        with pytest.raises(Throttled if number < 2 else SandboxLost):
            await fake.create(spec(), Marks())
        assert [found.name for found in await fake.find("mine")] == ["one"] * (number == 2)


async def test_an_sdks_exceptions_become_the_errors_of_the_protocol(account: ExampleOptions) -> None:
    async with Unlike(account) as substrate:
        sandbox = await substrate.create(spec(), Marks())
        substrate.trouble = ValueError("no\nsuch image")
        with pytest.raises(CreateFailed, match=r"^example: cannot create two: no such image$"):
            await substrate.create(spec("two"), Marks())
        with pytest.raises(CleanupFailed, match="sandbox one may still exist: example: cannot delete: no such image"):
            await sandbox.destroy()
        assert await substrate.check() == Availability(ok=False, detail="example: cannot check: no such image")
        substrate.trouble = ApiError(429, "slow down", 7.0)
        with pytest.raises(Throttled, match=r"^slow down$") as raised:
            await substrate.create(spec("two"), Marks())
        assert raised.value.retry_after_s == 7.0
        substrate.trouble = None
        await sandbox.destroy()
        assert await substrate.find() == []


async def test_a_sandbox_that_ended_is_lost_and_a_deleted_one_is_deleted_once(account: ExampleOptions) -> None:
    async with Example(account) as substrate:
        sandbox = await substrate.create(spec(), Marks())
        [(handle, _)] = (await substrate.list()).items()
        await substrate.client.delete(handle)
        with pytest.raises(SandboxLost, match=f"no sandbox {handle}"):
            await sandbox.exec(Command(script="true"))
        await sandbox.destroy()


async def test_without_a_list_a_process_finds_its_sandboxes_and_no_other(
    account: ExampleOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(Example, "list")
    async with Example(account) as substrate, Example(account) as other:
        await substrate.create(spec(), Marks())
        [found] = await substrate.find("mine")
        assert (found.name, found.run_id, await other.find()) == ("one", "mine", [])
        await substrate.reap(found)
        assert await substrate.find() == []


async def test_a_client_that_cannot_be_opened_is_an_unavailable_substrate(
    account: ExampleOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Example, "connect", AsyncMock(side_effect=OSError("no route")))
    with pytest.raises(SubstrateUnavailable, match="example: cannot connect: no route"):
        await Example(account).__aenter__()
    assert not (await Example(account).check()).ok


async def test_a_slow_deletion_is_awaited_with_pauses(account: ExampleOptions) -> None:
    """The provider accepts it at once, and lists the sandbox a while longer."""
    async with Unlike(account) as substrate:
        substrate.leaving_s = 0.3
        sandbox = await substrate.create(spec(), Marks())
        await sandbox.destroy()
        assert await substrate.find() == []
        assert 2 <= substrate.looks < 10


async def test_a_request_that_the_sdk_cancels_is_a_failure_and_no_cancellation(account: ExampleOptions) -> None:
    def cancel(argv: Sequence[str], stdin: bytes) -> None:
        if argv[0] == "bash":
            raise asyncio.CancelledError

    async with Unlike(account) as substrate:
        substrate.before_run = cancel
        sandbox = await substrate.create(spec(), Marks())
        with pytest.raises(ExecFailed, match="one: the SDK cancelled a request"):
            await sandbox.exec(Command(script="true"))
        await sandbox.destroy()


async def test_a_failed_command_is_killed_before_the_failure_is_explained(account: ExampleOptions) -> None:
    asked: list[str] = []

    def fail(argv: Sequence[str], stdin: bytes) -> None:
        if any("sleep 77" in word for word in argv):
            asked.clear()
            raise ApiError(500, "no answer")
        asked.append("look" if list(argv) == ["true"] else "kill")

    async with Unlike(account) as substrate:
        substrate.before_run = fail
        sandbox = await substrate.create(spec(), Marks())
        with pytest.raises(ExecFailed, match="no answer"):
            await sandbox.exec(Command(script="sleep 77"))
        assert asked == ["kill", "look"]
        await sandbox.destroy()


def test_an_author_imports_one_module() -> None:
    """Every class in the annotations of a hook is a public name of ``taxtui.sandboxes.simple``."""
    methods = inspect.getmembers(simple.SimpleSubstrate, inspect.isfunction)
    hooks = [method for name, method in methods if not name.startswith("_") and name != "create"]
    names = set(re.findall(r"\b[A-Z]\w+", " ".join(str(inspect.signature(hook)) for hook in hooks)))
    assert names - {"Exception", "Mapping", "None", "Sequence"} <= set(simple.__all__)
    assert all(getattr(simple, name) for name in simple.__all__)
