"""Harnesses' sandboxes: their exceptions, a cancelled start, a long script, and what a killed process leaves."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

from taxtui.errors import ExecFailed, Throttled
from taxtui.plan.notation import parse_substrate
from taxtui.plan.spec import Command, SandboxSpec
from taxtui.sandboxes import registry
from taxtui.sandboxes.kit.text_sandbox import TextAnswer
from taxtui.sandboxes.protocol import Availability, Marks
from taxtui.substrates.harness import HarborOptions, harbor_environment, harness
from taxtui.substrates.harness.failure import not_run, not_started
from taxtui.substrates.harness.harbor_environment import HarborEnvironments
from taxtui.substrates.harness.harness import HarnessedSandbox, HarnessSubstrate
from tests.support.sandboxes import spec
from tests.support.waiting import cancelled

POOLS = "could not find an available, non-overlapping IPv4 address pool among the defaults to assign to the network"
FEWER = "fewer at once, or more address pools for docker"
NO_IMAGE = "Error response from daemon: No such image: x:1"
COMPOSE = "Docker compose command failed for environment taxtui. Command: docker compose up. Return code: 1. Stdout: "
SETUP = "taxtui setup, or docs/substrates/harnesses.md for SWE-ReX"
INSTALL = "install swe-rex in the image: docs/substrates/harnesses.md"
DASH = "/bin/sh: 1: swerex-remote: not found"
BASH = "/bin/sh: line 1: swerex-remote: command not found"


@pytest.mark.parametrize(
    ("package", "message", "problem", "fix"),
    [
        ("inspect_ai", f"No services started.\nCompose up stderr:  default\n{NO_IMAGE}\n", NO_IMAGE, SETUP),
        ("inspect_ai", f"No services started.\n{POOLS}", POOLS, FEWER),
        ("inspect_ai", "", "RuntimeError", ""),
        ("harbor", f"{COMPOSE} Network x  Creating\nfailed: {POOLS}\n. Stderr: None. ", f"failed: {POOLS}", FEWER),
        ("harbor", "no such file", "no such file", ""),
        ("swe-rex", f"Container process terminated.\nstdout:\n\nstderr:\n{DASH}\n", DASH, INSTALL),
        ("swe-rex", f"stderr:\n{BASH}\n", BASH, INSTALL),
    ],
)
def test_a_failed_start_has_the_reason_and_a_fix(package: str, message: str, problem: str, fix: str) -> None:
    error = not_started(package, RuntimeError(message))
    assert (error.problem, error.fix) == (f"{package} did not start it: {problem}", fix)


def test_the_reason_of_a_failed_command_is_one_line() -> None:
    assert str(not_run("inspect_ai", TimeoutError())) == "inspect_ai: TimeoutError"
    status = RuntimeError("Client error '401' for url 'x'\nFor more information check: https://example.org/401")
    group = ExceptionGroup("unhandled errors", [status])
    assert str(not_run("harbor", group)) == "harbor: Client error '401' for url 'x'"


def test_a_refusal_for_the_rate_is_a_throttle() -> None:
    class RateLimitError(Exception):
        """As SDKs name it."""

    by_status, behind, other = RuntimeError("slow down"), RuntimeError("retries exhausted"), RuntimeError("no")
    by_status.status_code = 429  # type: ignore[attr-defined]
    behind.__cause__ = RateLimitError("429")
    for error in (by_status, behind, RateLimitError("slow down")):
        assert isinstance(not_started("harbor", error), Throttled)
        assert isinstance(not_run("harbor", error), Throttled)
    assert isinstance(not_run("harbor", other), ExecFailed)


class MissingExtraError(ImportError):
    """As Harbor has it."""


@pytest.mark.parametrize(
    ("error", "problem", "fix"),
    [
        (
            SystemExit("E2B requires E2B_API_KEY to be set. Please set this environment variable and try again."),
            "E2B requires E2B_API_KEY to be set",
            "Please set this environment variable and try again",
        ),
        (SystemExit("Runta requires RUNTA_TOKEN or RUNTA_CONFIG."), "Runta requires RUNTA_TOKEN or RUNTA_CONFIG", ""),
        (
            MissingExtraError("The 'x' package is required.\nInstall it with:\n  pip install 'harbor[x]'"),
            "the SDK of x is not installed",
            "install the Python package harbor[x]",
        ),
        (
            ImportError("No module named 'kubernetes'", name="kubernetes"),
            "the SDK of x is not installed",
            "install the Python package 'kubernetes'",
        ),
        (
            TypeError("X.__init__() missing 2 required positional arguments: 'region' and 'zone'"),
            "x requires the settings 'region' and 'zone'",
            "harbor:environment=x,settings=FILE.json, a JSON object of settings",
        ),
        (ValueError(), "ValueError", ""),
    ],
)
def test_an_environment_of_harbors_that_cannot_be_used(error: BaseException, problem: str, fix: str) -> None:
    assert harbor_environment._refused("x", error) == Availability(ok=False, detail=problem, fix=fix)


def test_credentials_that_harbor_does_not_check(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PRIME_API_KEY", raising=False)
    needs = harbor_environment._UNCHECKED["prime"]
    refused = harbor_environment._unmet("prime", needs)
    assert refused is not None
    assert refused.fix == "set PRIME_API_KEY, or write ~/.prime/config.json"
    (tmp_path / ".prime").mkdir()
    (tmp_path / ".prime" / "config.json").touch()
    assert harbor_environment._unmet("prime", needs) is None
    with monkeypatch.context() as homeless:
        homeless.delenv("HOME")
        homeless.setattr("pwd.getpwuid", lambda _: {}[0])
        assert harbor_environment._unmet("prime", needs) is not None
        homeless.setenv("PRIME_API_KEY", "key")
        assert harbor_environment._unmet("prime", needs) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    programs = harbor_environment._unmet("singularity", harbor_environment._UNCHECKED["singularity"])
    assert programs is not None
    assert programs.fix == "install singularity or apptainer"


def test_the_limits_in_force_are_those_that_the_environment_declares() -> None:
    def declared(**true: bool) -> SimpleNamespace:
        names = ("cpu_limit", "memory_limit", "cpu_request", "memory_request")
        return SimpleNamespace(**{name: true.get(name, False) for name in names})

    enforcement = harbor_environment._enforcement
    assert enforcement(declared(cpu_limit=True, memory_limit=True)) == "as asked"
    assert enforcement(declared(cpu_request=True, memory_request=True)) == "requested"
    assert enforcement(declared(cpu_limit=True)) == "none"
    assert enforcement(None) == "unknown"


SPEC = spec()


class Environment:
    """Harbor's object of a sandbox, whose start never ends."""

    def __init__(self) -> None:
        self.starting = asyncio.Event()
        self.calls: list[str] = []

    async def start(self) -> None:
        self.starting.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.calls.append("start ended")

    async def exec(self, command: str) -> None:
        pass

    async def stop(self, delete: bool) -> None:
        self.calls.append("stopped")


class Sandbox(HarnessedSandbox):
    """Commands run in this machine's bash, but for the one of the number ``refused``."""

    def __init__(self, name: str, substrate: HarnessSubstrate) -> None:
        super().__init__(name, substrate)
        self.scripts: list[str] = []
        self.refused = 0

    async def run(self, script: str) -> TextAnswer:
        self.scripts.append(script)
        if len(self.scripts) == self.refused:
            return TextAnswer("", 1)
        script = script.replace("/tmp/", f"{self._sites.root}/")
        done = await asyncio.to_thread(subprocess.run, ["bash", "-c", script], capture_output=True, text=True)
        return TextAnswer(done.stdout, done.returncode)

    async def stop(self) -> None:
        pass


class Substrate(HarnessSubstrate):
    name = "harbor"
    package = "harbor"
    Options: ClassVar[type[HarborOptions]] = HarborOptions

    def __init__(self, root: Path) -> None:
        self.options = HarborOptions()
        super().__init__(HarborEnvironments(HarborOptions()), "fake", idempotent=False)
        self.sites.root = root
        self.environment = Environment()

    def alive(self) -> None:
        assert isinstance(self.sites, HarborEnvironments)
        self.sites.live[SPEC.name] = self.environment

    async def begin(self, spec: SandboxSpec, env: dict[str, str]) -> Sandbox:
        self.alive()
        await self.environment.start()
        return Sandbox(spec.name, self)


@pytest.mark.parametrize("ends_starts", [True, False])
async def test_a_cancelled_start_is_ended_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_starts: bool
) -> None:
    """At once where a start costs money, elsewhere after a wait for its end."""
    monkeypatch.setattr(HarborEnvironments, "ends_starts", ends_starts)
    monkeypatch.setattr(harness, "_UNDO_S", 60 if ends_starts else 0.1)
    substrate = Substrate(tmp_path)
    creating = asyncio.ensure_future(substrate.create(SPEC, Marks()))
    await substrate.environment.starting.wait()
    assert (tmp_path / SPEC.name).exists()
    async with asyncio.timeout(1):
        await cancelled(creating)
        while (tmp_path / SPEC.name).exists():
            await asyncio.sleep(0.01)
    assert substrate.environment.calls == ["start ended", "stopped"]


async def test_a_long_script_runs_from_its_file_and_not_with_a_missing_piece(tmp_path: Path) -> None:
    substrate = Substrate(tmp_path)
    substrate.alive()
    sandbox = Sandbox(SPEC.name, substrate)
    command = Command(script=f": {'x' * 200_000}\necho ran; exit 3")
    done = await sandbox.exec(command)
    assert (done.exit_code, done.stdout) == (3, b"ran\n")
    assert (done.started_ns, done.ended_ns) == (0, 0), "not known"
    asked = len(sandbox.scripts)
    sandbox.refused = asked + 2
    with pytest.raises(ExecFailed, match=r"cannot write a long script to /tmp/\.taxtui-\w+\.64: exit code 1"):
        await sandbox.exec(command)
    assert len(sandbox.scripts) == asked + 2


LEAVE = """
import asyncio, os, signal, sys
from taxtui.plan.notation import parse_substrate
from taxtui.plan.spec import Command, Limits, SandboxSpec
from taxtui.sandboxes import registry
from taxtui.sandboxes.protocol import Marks

async def main(text, run):
    async with registry.build(parse_substrate(text)) as substrate:
        labels = {"taxtui.run": run, "taxtui.deadline": "1"}
        spec = SandboxSpec(name=f"taxtui-{run}-1", labels=labels, limits=Limits(), ttl_s=60, network=True)
        sandbox = await substrate.create(spec, Marks())
        await sandbox.exec(Command(script="true"))
        asyncio.ensure_future(sandbox.exec(Command(script="sleep 600")))
        await sandbox.exec(Command(script="true"))
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(*sys.argv[1:]))
"""


def said(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


@pytest.mark.processes
@pytest.mark.compose
@pytest.mark.parametrize(("name", "module"), [("inspect", "inspect_ai"), ("harbor", "harbor")])
async def test_a_killed_run_is_swept(name: str, module: str) -> None:
    """It is found without the process that has made it, and removed down to folder and network."""
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    run = f"k{os.getpid()}"
    left = subprocess.run(  # noqa: ASYNC221
        [sys.executable, "-c", LEAVE, name, run], capture_output=True, text=True, check=False
    )
    assert left.returncode == -signal.SIGKILL, left.stderr
    label = f"label={name}.taxtui.run={run}"
    assert said("docker", "ps", "--quiet", "--filter", label)
    assert said("docker", "network", "ls", "--quiet", "--filter", label)
    swept = said(sys.executable, "-m", "taxtui", "clean", "-s", name, "--run", run)
    assert f"removed {name} taxtui-{run}-1" in swept
    assert said("docker", "ps", "--all", "--quiet", "--filter", label) == ""
    assert said("docker", "network", "ls", "--quiet", "--filter", label) == ""
    async with registry.build(parse_substrate(name)) as substrate:
        assert await substrate.find(run) == []
