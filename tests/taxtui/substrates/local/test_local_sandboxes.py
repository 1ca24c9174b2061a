"""Local sandboxes while they come and go, how a command gets into one, and what the command inherits."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from taxtui.errors import ExecFailed
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit import private_folder
from taxtui.sandboxes.kit.limits import Limiter
from taxtui.sandboxes.kit.process import Process
from taxtui.sandboxes.protocol import Found
from taxtui.substrates.local import LocalOptions
from taxtui.substrates.local.bubblewrap import not_started
from taxtui.substrates.local.substrate import LocalSubstrate
from tests.support.sandboxes import ready, sandbox_of


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> LocalSubstrate:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return LocalSubstrate(LocalOptions(isolation="plain"))


async def test_a_folder_that_vanishes_while_it_is_looked_at_is_not_found(
    monkeypatch: pytest.MonkeyPatch, plain: LocalSubstrate
) -> None:
    async with plain:
        vanishing, staying = plain.root / "taxtui-r-1", plain.root / "taxtui-r-2"
        vanishing.mkdir()
        staying.mkdir()
        look = private_folder._sandbox_in

        def after_a_moment(folder: Path) -> Found | None:
            if folder == vanishing:
                folder.rmdir()
            return look(folder)

        monkeypatch.setattr(private_folder, "_sandbox_in", after_a_moment)
        assert [found.run_id for found in await plain.find()] == ["r"]


def test_the_age_of_a_folder_without_a_record_is_that_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "taxtui-r-1"
    folder.mkdir()
    os.utime(folder, (time.time() - 100, time.time() - 100))
    [found] = private_folder.found_in(tmp_path, "r")
    assert 99 < found.age_s < 200


OTHER_RUN = b'{"labels": {"taxtui.run": "other"}, "created_unix_s": 9e99}'
FORGERIES: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a link without an end": lambda meta: meta.symlink_to("/dev/zero"),
    "another run": lambda meta: meta.write_bytes(OTHER_RUN),
    "no labels": lambda meta: meta.write_bytes(b'{"labels": [], "created_unix_s": "x"}'),
    "no text": lambda meta: meta.write_bytes(b'{"labels": {"\xff": ""}}'),
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
async def test_a_forged_record_neither_hangs_nor_hides_a_sandbox(
    forge: Callable[[Path], object], plain: LocalSubstrate
) -> None:
    async with plain:
        folder = plain.root / "taxtui-20260101t000000z-00000000-7"
        folder.mkdir()
        forge(folder / "meta.json")
        [found] = await plain.find("20260101t000000z-00000000")
        assert found.age_s >= 0
        await plain.reap(found)
        assert await plain.find() == []


def nest(top: Path, levels: int) -> None:
    """Folders in folders, by descriptor: no path is as long."""
    folder = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=folder)
        inner = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)


async def test_no_nesting_and_no_lock_keeps_a_sandbox_from_being_removed(plain: LocalSubstrate, tmp_path: Path) -> None:
    kept = tmp_path / "somebody else's"
    kept.mkdir()
    (kept / "file").touch()
    async with plain:
        top = plain.root / "taxtui-r-1"
        (top / "work" / "locked" / "inner").mkdir(parents=True)
        (top / "work" / "link").symlink_to(kept)
        (top / "work" / "locked").chmod(0)
        await asyncio.to_thread(nest, top / "work", 3 * sys.getrecursionlimit())
        [found] = await plain.find()
        await plain.reap(found)
        assert not top.exists()
    assert (kept / "file").exists()


async def test_concurrent_clean_ups_of_a_sandbox_all_succeed(plain: LocalSubstrate) -> None:
    async with plain:
        top = plain.root / "taxtui-r-1"
        for number in range(200):
            (top / "work" / str(number) / "deep").mkdir(parents=True)
            (top / "work" / str(number) / "file").touch()
        [found] = await plain.find()
        await asyncio.gather(*(plain.reap(found) for _ in range(4)))
        assert not top.exists()


async def test_a_command_begins_with_the_signals_of_a_fresh_login() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = Process(["/bin/sh", "-c", "trap"], {}, stdin=False)
    finally:
        signal.signal(signal.SIGINT, before)
    assert [each.length for each in await process.output()] == [0, 0]


HEIR = """
import asyncio, os, sys
from taxtui.sandboxes.kit.process import Process

async def main():
    descriptor = int(sys.argv[1])
    assert os.get_inheritable(descriptor) and os.pread(descriptor, 6, 0) == b"secret"
    process = Process(["/bin/cat", f"/dev/fd/{descriptor}"], dict(os.environ), stdin=False)
    out, err = await process.output()
    print(out.length, process.returncode)

asyncio.run(main())
"""


def test_a_command_inherits_no_descriptor_of_taxtui_s_caller(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    with (tmp_path / "secret").open() as file:
        argv = [sys.executable, "-c", HEIR, str(file.fileno())]
        done = subprocess.run(argv, pass_fds=[file.fileno()], capture_output=True, text=True, check=True)
    length, code = map(int, done.stdout.split())
    assert length == 0
    assert code != 0


SCRIPTS = {
    "nothing": "",
    "line numbers": "echo $LINENO $0 $#\nnosuch\necho $LINENO",
    "a comment first": "#!/bin/bash\necho $LINENO",
    "an empty line first": "\necho $LINENO",
    "the background first": "sleep 0 & echo $LINENO; wait",
    "a negation": "! true",
    "a subshell": "( exit 3 )",
    "a here document": "cat <<END\n$LINENO\nEND",
    "a function": "f() { nosuch; }\nf",
    "a syntax error further on": "echo before\necho )",
    "the end by a signal": "echo before; kill -9 $$",
    "a program alone": "/bin/sh -c 'echo $PPID' >/dev/null",
}


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
async def test_a_script_does_what_it_does_anywhere(plain: LocalSubstrate, script: str) -> None:
    async with sandbox_of(plain) as sandbox:
        found = await sandbox.exec(Command(script=script))
    bare = subprocess.run(["bash", "-c", script], capture_output=True, env={"LANG": "C.UTF-8"}, check=False)  # noqa: ASYNC221
    code = bare.returncode if bare.returncode >= 0 else 128 - bare.returncode
    assert (found.exit_code, found.stdout, found.stderr) == (code, bare.stdout, bare.stderr)


async def test_a_command_without_its_limits_does_not_run(
    plain: LocalSubstrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Limiter, "prepare", lambda *_: "echo no limits >&2 && false && ")
    async with plain:
        plain.limiter = Limiter()
        sandbox = await ready(plain)
        found = await sandbox.exec(Command(script="echo ran; exit 0"))
        await sandbox.destroy()
    assert (found.exit_code, found.stdout, found.stderr) == (1, b"", b"no limits\n")


USERNS = b"bwrap: setting up uid map: Permission denied\n"
SETPRIV = b"setpriv: setgroups failed: Operation not permitted\n"


@pytest.mark.parametrize(
    ("exit_code", "stderr", "text"),
    [
        # The launcher gave up before it became the command.
        (1, USERNS, "bwrap: setting up uid map: Permission denied"),
        (1, SETPRIV, "setpriv: setgroups failed: Operation not permitted"),
        # A command that fails, with the words of others or after words of its own.
        (1, b"", None),
        (1, b"grep: bwrap: No such file or directory\n", None),
        (2, USERNS, None),
        (0, USERNS, None),
    ],
)
def test_a_failed_launcher_is_no_failed_command(exit_code: int, stderr: bytes, text: str | None) -> None:
    error = not_started(exit_code, stderr)
    assert (str(error) if error else None) == text


async def test_a_failed_launcher_is_an_error_of_the_sandbox(plain: LocalSubstrate) -> None:
    async with sandbox_of(plain) as sandbox:
        sandbox._substrate.isolated = True
        with pytest.raises(ExecFailed, match="uid map"):
            await sandbox.exec(Command(script="echo 'bwrap: setting up uid map: denied' >&2; exit 1"))
