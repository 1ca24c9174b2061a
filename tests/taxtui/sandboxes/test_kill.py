"""The one kill: by GNU's tools and BusyBox's, in any shell, whatever the command has done to get away."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from taxtui.errors import ExecFailed, ExecTimeout, SubstrateError
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit import kill, text_sandbox
from taxtui.sandboxes.kit.kill import LEFT, MARK, kill_marked, kill_script, new_mark, require_killed
from taxtui.sandboxes.kit.process import Process
from taxtui.sandboxes.kit.shell.frames import STDOUT
from taxtui.sandboxes.kit.text_sandbox import TextAnswer, TextCommand, TextSandbox
from tests.support.waiting import until

BUSYBOX: Final = shutil.which("busybox", path="/usr/bin:/bin")
RUNAWAYS: Final = """
setsid sleep 600 &
env -i sleep 600 &
(trap '' HUP TERM; while :; do :; done) &
setsid sh -c 'while :; do sleep 0.01; done' &
echo started
sleep 600
"""
"""One that left its session, one that emptied its environment, one that never called exec, one that always forks."""


@pytest.fixture(params=["sh", "bash", "zsh", "busybox"])
def killer(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[list[str], dict[str, str]]]:
    """A shell, and an environment in which it finds no tools but grep."""
    if request.param == "busybox":
        if BUSYBOX is None:
            pytest.skip("busybox is not installed")
        (tmp_path / "grep").symlink_to(BUSYBOX)
        yield [BUSYBOX, "sh"], {"PATH": str(tmp_path)}
        return
    program, grep = shutil.which(request.param), shutil.which("grep")
    if program is None or grep is None:
        pytest.skip(f"{request.param} is not installed")
    (tmp_path / "grep").symlink_to(grep)
    yield [program], {"PATH": str(tmp_path)}


def run(killer: tuple[list[str], dict[str, str]], script: str, **env: str) -> subprocess.CompletedProcess[str]:
    argv, environment = killer
    return subprocess.run(
        [*argv, "-c", script], env={**environment, **env}, capture_output=True, text=True, check=False, timeout=25
    )


async def started(script: str, mark: str, *, among_arguments: bool) -> Process:
    """A command that carries its mark as the substrates' do: in its environment, or as the program around it does."""
    env = {"PATH": os.environ["PATH"]}
    if among_arguments:
        argv = ["/bin/sh", "-c", f'export {MARK}="$1"; ( eval "$2" )', "sh", mark, script]
    else:
        argv, env = ["/bin/sh", "-c", script], {**env, MARK: mark}
    process = Process(argv, env, stdin=False)
    assert await process.read() == (STDOUT, b"started\n")
    return process


def alive(group: int, mark: str) -> set[str]:
    """What is left of a command: the members of its group, and all that carry its mark."""
    left = set()
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError, IndexError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            marked = mark.encode() in (folder / "environ").read_bytes() + (folder / "cmdline").read_bytes()
            if fields[0] != "Z" and (int(fields[2]) == group or marked):
                left.add(f"{folder.name} {(folder / 'cmdline').read_bytes()!r}")
    return left


def begun(pid: int) -> bool:
    """Whether its program is in place: between two it has no arguments and no environment."""
    return all(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ"))


@pytest.mark.parametrize("among_arguments", [False, True], ids=["environment", "arguments"])
async def test_all_processes_of_a_command_are_killed(
    killer: tuple[list[str], dict[str, str]], among_arguments: bool
) -> None:
    mark, other_mark = new_mark(), new_mark()
    mine = await started(RUNAWAYS, mark, among_arguments=among_arguments)
    other = await started("echo started; sleep 600", other_mark, among_arguments=among_arguments)
    try:
        done = await asyncio.to_thread(run, killer, kill_script(mark))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        await mine.output()
        assert alive(mine.pid, mark) == set()
        assert mine.returncode == 128 + signal.SIGKILL
        assert other.returncode is None
    finally:
        await mine.close()
        await other.close()


def test_a_process_during_exec_is_killed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    process = subprocess.Popen(["sleep", "600"])
    looks = iter([set[int](), {process.pid}])
    monkeypatch.setattr(kill, "marked", lambda wanted: next(looks, set()))
    asyncio.run(kill_marked(f"{MARK}=0"))
    assert process.wait() == -signal.SIGKILL


def test_it_does_not_kill_itself(killer: tuple[list[str], dict[str, str]]) -> None:
    """As in a session's own shell, which has the mark as well."""
    mark = new_mark()
    done = run(killer, f"{kill_script(mark)} && echo alive", **{MARK: mark})
    assert (done.returncode, done.stdout, done.stderr) == (0, "alive\n", "")


def test_a_missing_grep_is_an_error() -> None:
    done = run((["/bin/sh"], {"PATH": "/nowhere"}), kill_script(new_mark()))
    assert done.returncode == 1
    assert "grep: not found" in done.stderr


async def test_a_process_without_the_sandbox_s_variable_is_killed_too(killer: tuple[list[str], dict[str, str]]) -> None:
    """Which on this machine, not being a sandbox, is nearly everything: so it is only listed here, in one round."""
    script = kill_script(f"{MARK}=", carried_by_all="HERE").replace("-lt 100", "-lt 1").replace("kill -9", "echo kills")
    marked = await started("echo started; sleep 600", new_mark(), among_arguments=False)
    env = {"PATH": os.environ["PATH"]}
    kept, stray = (Process(["/bin/sleep", "600"], {**env, **more}, stdin=False) for more in ({"HERE": "yes"}, {}))
    try:
        for process in (marked, kept, stray):
            await until(partial(begun, process.pid), "its program")
        done = await asyncio.to_thread(run, killer, script, HERE="yes")
        killed = {line.rpartition(" ")[2] for line in done.stdout.splitlines()}
        assert {str(marked.pid), str(stray.pid)} <= killed
        assert str(kept.pid) not in killed
    finally:
        for process in (marked, kept, stray):
            await process.close()


@pytest.mark.parametrize(
    ("words", "why"), [(b" no\n grep ", "no grep"), ("no grep", "no grep"), (b"", "they survive SIGKILL")]
)
def test_surviving_processes_are_an_error(words: bytes | str, why: str) -> None:
    for code in (0, 137, -9):  # all killed, or the killer itself was killed
        require_killed(code, words)
    with pytest.raises(ExecFailed, match=f"^{LEFT}: {why}$"):
        require_killed(1, words)


class Sandbox(TextSandbox):
    """A provider that starts an accepted command after the second kill, or answers no request at all."""

    def __init__(self, deaf: bool) -> None:
        super().__init__("one", "bash", {})
        self.kills, self.deaf = 0, deaf
        self.end: asyncio.Future[TextAnswer] = asyncio.get_running_loop().create_future()

    async def send(self, wrapped: TextCommand, timeout_s: float) -> TextAnswer:
        return await self.end

    async def kill(self, mark: str) -> None:
        self.kills += 1
        if self.kills == 3 and not self.deaf:
            self.end.set_exception(OSError("cut"))  # and nobody else asks for it

    async def lost(self) -> str:
        return ""


@pytest.mark.parametrize(
    ("deaf", "kind", "words"),
    [(False, ExecTimeout, "killed after 0.01 s"), (True, ExecFailed, f"no end after 0.01 s; {LEFT}: no answer")],
)
async def test_a_command_is_killed_until_its_request_ends(
    deaf: bool, kind: type[SubstrateError], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_sandbox, "_KILL_AGAIN_S", 0.001)
    monkeypatch.setattr(text_sandbox, "KILL_S", 0.05 if deaf else 30)
    sandbox = Sandbox(deaf)
    with pytest.raises(kind, match=words):
        await sandbox.exec(Command(script="true", timeout_s=0.01))
    assert sandbox.kills == 3 or deaf
