"""The Harbor plug-in without Harbor: its timer in real shells, its measurement around an environment, its recording."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from costmodel.recording.events import UNKNOWN, Actions, Cell, Notice, PhaseEnded, TrialEnded
from taxtui.harbor_plugin import plugin as plugin_module
from taxtui.harbor_plugin import timer
from taxtui.harbor_plugin.plugin import HarborPlugin
from taxtui.harbor_plugin.watch import Watch
from taxtui.importers.formats.harbor import Execution, Executions, trial_of
from taxtui.importers.trial import Quantity
from taxtui.importers.values import instant_ns
from tests.support.importing import SAMPLES, events_of, of, starts

RESULT = json.loads((SAMPLES / "harbor" / "job" / "chat__1" / "result.json").read_text())


def run(script: str, shell: str = "bash") -> tuple[int, str, str]:
    done = subprocess.run([shell, "-c", script], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


SCRIPTS = (
    "echo out; echo err >&2",
    "printf 'no newline' >&2",
    "exit 7",
    "false",
    "echo one\nno_such_command\necho two",
    "if then\necho never",
    "set -x; echo traced",
    "cat <<'END'\n$literal\nEND",
    "set | grep -c taxtui",
    "# a comment",
)


@pytest.mark.parametrize("shell", ["bash", "sh"])
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_timed_command_prints_and_returns_what_it_would_have(script: str, shell: str) -> None:
    timed = timer.wrap(script)
    code, out, err = run(timed.script, shell)
    text, run_ns = timer.unwrap(err, timed)
    assert (code, out, text) == run(script, shell)
    assert timer.unwrap(out, timed)[0] == out
    if shell == "sh" and "bash" not in str(Path("/bin/sh").resolve()):
        assert run_ns == UNKNOWN


@pytest.mark.parametrize("script", ["exec true", "trap 'echo mine' EXIT", "if then"])
def test_a_command_that_replaces_its_shell_or_trap_has_no_in_sandbox_time(script: str) -> None:
    timed = timer.wrap(script)
    code, out, err = run(timed.script)
    assert (code, out, *timer.unwrap(err, timed)) == (*run(script), UNKNOWN)


@pytest.mark.parametrize(
    ("line", "run_ns"),
    [
        ("\r\n{} 1.000000 1.500000\r\n", 500_000_000),  # of a terminal
        ("\n{} 2.000000 1.000000\n", UNKNOWN),  # a backward clock
        ("\n{}  \n", UNKNOWN),
        ("\n{} 1 2\n", UNKNOWN),
    ],
)
def test_the_timers_line_is_removed_from_output(line: str, run_ns: int) -> None:
    timed = timer.wrap("true")
    assert timer.unwrap(f"kept{line.format(timed.nonce)}", timed) == ("kept", run_ns)


class FakeEnvironment:
    """Harbor's ``BaseEnvironment``, as far as the plug-in uses it."""

    def __init__(self, folder: Path, name: str = "t__1", streams: bool = False, system: str = "linux") -> None:
        self.trial_paths = SimpleNamespace(trial_dir=folder / name)
        self.session_id = f"{name}__env"
        self.task_env_config = SimpleNamespace(docker_image="registry/secret:1", cpus=2, memory_mb=2048)
        self.os = system
        self.calls: list[str] = []
        self._streams = streams

    def _output_callback(self) -> object:
        return object() if self._streams else None

    async def exec(self, command: str, timeout_sec: int | None = None) -> Any:
        self.calls.append(command)
        if command.startswith("nested"):
            return await self.exec(command.removeprefix("nested "))
        if command == "raise":
            raise RuntimeError("the sandbox is gone")
        code, out, err = await asyncio.to_thread(run, command)
        return SimpleNamespace(return_code=code, stdout=out + err, stderr=None)

    async def stop(self, delete: bool) -> None:
        self.calls.append("stop")


@contextlib.contextmanager
def no_guard() -> Iterator[None]:
    yield


async def test_every_exec_is_measured_once_with_its_exit_code(tmp_path: Path) -> None:
    environment = FakeEnvironment(tmp_path)
    watch = Watch(environment, no_guard, timed=False)
    assert (await environment.exec("echo a; exit 3")).stdout == "a\n"
    await environment.exec(command="nested true")
    with pytest.raises(RuntimeError, match="is gone"):
        await environment.exec("raise")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(environment.exec("sleep 0.3"), 0.01)
    await environment.stop(delete=True)
    assert [each.exit_code for each in watch.commands] == [3, 0, UNKNOWN, UNKNOWN]
    assert all(each.run_ns == UNKNOWN for each in watch.commands)
    assert watch.stop is not None
    assert environment.calls[0] == "echo a; exit 3"


async def test_the_timer_divides_a_command_and_is_taken_out(tmp_path: Path) -> None:
    environment = FakeEnvironment(tmp_path)
    watch = Watch(environment, no_guard, timed=True)
    assert (await environment.exec("sleep 0.1; echo a")).stdout == "a\n"
    [command] = watch.commands
    assert 0.1e9 <= command.run_ns <= command.duration_ns
    options: dict[str, Any]
    for options in ({"streams": True}, {"system": "windows"}):  # a streamed or foreign command is left as it is
        environment = FakeEnvironment(tmp_path, **options)
        watch = Watch(environment, no_guard, timed=True)
        await environment.exec("true")
        assert (environment.calls, watch.commands[0].run_ns) == (["true"], UNKNOWN)


def test_a_result_takes_its_commands_from_the_measurement() -> None:
    setup_ns, agent_ns = (instant_ns(RESULT[key]["started_at"]) or 0 for key in ("agent_setup", "agent_execution"))
    commands = [
        Execution(setup_ns + 1000, 2000, 1000, 0),
        Execution(agent_ns + 10_000, 4000, 3000, 0),
        Execution(agent_ns + 20_000, 5000, 1000, 1),
    ]
    trial = trial_of(RESULT, Path("nowhere"), Executions(commands, inside=False))
    assert [(each.duration_ns, each.run_ns) for each in trial.preload] == [(2000, 1000)]
    actions = [(each.think_ns, each.duration_ns, each.exit_code) for each in trial.actions]
    assert actions == [(10_000, 4000, 0), (6000, 5000, 1)]
    assert not any(each.quantity == Quantity.RUN for each in trial.unknown)
    untimed = trial_of(RESULT, Path("nowhere"), Executions([Execution(agent_ns, 4000)], inside=False))
    [why] = [each.why for each in untimed.unknown if each.quantity == Quantity.RUN]
    assert "timer=true" in why
    # An agent inside the sandbox has no commands of its own.
    inside = trial_of(RESULT, Path("nowhere"), Executions([Execution(agent_ns, 4000)], inside=True))
    assert {each.quantity for each in inside.unknown} >= {Quantity.ACTIONS, Quantity.THINK}
    assert [each.think_ns for each in inside.actions] == [0]


class FakeJob:
    """Harbor's ``Job``: a folder, and hooks that get an event."""

    def __init__(self, folder: Path) -> None:
        self.job_dir = folder
        self.hooks: list[Any] = []

    def on_trial_ended(self, hook: Any) -> None:
        self.hooks.append(hook)

    async def end(self, name: str) -> None:
        result = SimpleNamespace(model_dump=lambda **_: {**RESULT, "trial_name": name})
        environment = SimpleNamespace(type=SimpleNamespace(value="docker"), import_path=None)
        config = SimpleNamespace(trial_name=name, environment=environment, agent=None)
        for hook in self.hooks:
            await hook(SimpleNamespace(config=config, result=result))


@pytest.fixture
def factory(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Harbor's ``EnvironmentFactory``, which makes what it is given."""

    class EnvironmentFactory:
        @classmethod
        def create_environment_from_config(cls, made: Any) -> Any:
            return made

    for name in ("harbor", "harbor.environments", "harbor.environments.factory"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(sys.modules["harbor.environments.factory"], "EnvironmentFactory", EnvironmentFactory, False)
    monkeypatch.setattr(plugin_module, "version", lambda _: "0.24.0")
    monkeypatch.setattr(plugin_module, "_runs_inside", lambda _: False)
    return EnvironmentFactory


async def started(folder: Path, **options: Any) -> tuple[FakeJob, HarborPlugin]:
    job, measuring = FakeJob(folder), HarborPlugin(**options)
    await measuring.on_job_start(job)
    return job, measuring


async def test_one_recording_for_a_job_and_retried_attempts_are_counted(tmp_path: Path, factory: Any) -> None:
    original = factory.create_environment_from_config
    job, measuring = await started(tmp_path)
    elsewhere = FakeEnvironment(tmp_path / "other job")
    factory.create_environment_from_config(elsewhere)
    assert "exec" not in vars(elsewhere)
    for _ in range(2):
        assert "exec" in vars(factory.create_environment_from_config(FakeEnvironment(tmp_path)))
        await job.end("t__1")
    await measuring.on_job_end(None)
    assert factory.create_environment_from_config == original
    events = events_of(tmp_path / "taxtui.msgpack")
    assert [start.attempt for start in starts(events)] == [0, 1]
    [cell] = of(events, Cell)
    assert (cell.substrate, cell.variant, cell.cpu_milli, cell.memory_mib) == ("harbor", "docker", 2000, 2048)
    assert {phase.phase for phase in of(events, PhaseEnded)} >= {"create", "preload", "verify"}
    assert [end.outcome for end in of(events, TrialEnded)] == ["ok", "ok"]
    assert RESULT["task_name"] not in repr(events)


async def test_a_second_recording_replaces_none(tmp_path: Path, factory: Any) -> None:
    (tmp_path / "taxtui.msgpack").write_text("mine")
    job, measuring = await started(tmp_path, timer=True)
    factory.create_environment_from_config(FakeEnvironment(tmp_path))
    await job.end("t__1")
    await job.end("unwatched__1")  # as an import has it
    await measuring.on_job_end(None)
    assert (tmp_path / "taxtui.msgpack").read_text() == "mine"
    events = events_of(tmp_path / "taxtui-2.msgpack")
    assert of(events, Cell)[0].bracket == "bash"
    assert of(events, Actions)
    assert any("dispatch and command time are undivided" in notice.text for notice in of(events, Notice))


async def test_an_interrupted_job_is_recorded_when_its_loop_ends(
    tmp_path: Path, factory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin_module, "_LAST_TRIALS_S", 0.01)  # this test is a task of the same loop
    job, measuring = await started(tmp_path)
    factory.create_environment_from_config(FakeEnvironment(tmp_path))
    await job.end("t__1")
    await asyncio.sleep(0)
    ending = measuring._ending
    assert ending is not None
    ending.cancel()
    await asyncio.wait({ending}, timeout=60)
    assert len(starts(events_of(tmp_path / "taxtui.msgpack"))) == 1


async def test_an_error_of_the_plug_in_is_one_line_and_reaches_no_trial(
    tmp_path: Path, factory: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("with a secret")

    monkeypatch.setattr(plugin_module, "trial_of", broken)
    job, measuring = await started(tmp_path)
    for _ in range(3):
        await job.end("t__1")
    await measuring.on_job_end(None)
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(
        "taxtui: the job continues, but the recording is incomplete: unexpected ZeroDivisionError ("
    )
    assert second == "taxtui: no trial has ended, so there is no recording"


def test_harbor_finds_it_by_its_entry_point() -> None:
    [point] = [each for each in importlib.metadata.entry_points(group="harbor.plugins") if each.name == "taxtui"]
    assert point.load() is HarborPlugin
