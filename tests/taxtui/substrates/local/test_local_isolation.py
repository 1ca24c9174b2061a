"""What a sandbox under bubblewrap can see of its host, which may be run by root."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from taxtui.errors import ExecFailed
from taxtui.plan.spec import Command
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.local import LocalOptions
from taxtui.substrates.local import bubblewrap as local_bwrap
from taxtui.substrates.local.substrate import LocalSubstrate
from tests.support.sandboxes import output, sandbox_of

pytestmark = [pytest.mark.bwrap, pytest.mark.processes]
CANARY = "canary-7f3a"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has what others may not read")


@pytest.fixture(params=["as who runs it", "as an ordinary user"])
def substrate(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> LocalSubstrate:
    """Root's sandboxes are made in another way; both have to work wherever there is root."""
    if request.param == "as an ordinary user":
        if os.geteuid() != 0:
            pytest.skip("that is who runs it")
        monkeypatch.setattr(local_bwrap, "_root", lambda: False)
    return LocalSubstrate(LocalOptions(isolation="bwrap"))


def test_the_trial_of_bubblewrap_mounts_only_a_sandbox_s_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not with all of the host: what is mounted elsewhere may go away meanwhile, as with a container that ends."""
    tried: list[list[str]] = []
    really = subprocess.run

    def run(argv: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        tried.append(argv)
        return really(argv, **options)

    def bound(argv: list[str]) -> set[str]:
        return {argv[at + 1] for at, word in enumerate(argv) if word == "--ro-bind"}

    monkeypatch.setattr(subprocess, "run", run)
    assert local_bwrap.complaint.__wrapped__() == ""
    assert bound(tried[0])
    assert bound(tried[0]) <= bound(local_bwrap.wrap(tmp_path, None, network=False))


async def test_nothing_of_the_host_s_etc_but_a_short_list(substrate: LocalSubstrate) -> None:
    async with sandbox_of(substrate) as sandbox:
        shown = set((await output(sandbox, "cd /etc && find . -maxdepth 1 -mindepth 1 -printf '%P\\n'")).split())
        listed = {*local_bwrap._ETC_COPIED, *local_bwrap._ETC_SHOWN, *local_bwrap._ETC_MADE}
        assert shown <= {name.partition("/")[0] for name in listed}
        assert shown.isdisjoint({"shadow", "gshadow", "ssh", "docker", "pip.conf", "gitconfig", "sudoers"})
        users = await output(sandbox, "cut -d: -f1 /etc/passwd /etc/group")
        assert users.split() == ["root", "nobody", "root", "nogroup"]
        assert (await output(sandbox, "id -un; id -gn; id -G")).split() == ["nobody", "nogroup", "65534"]


async def test_nothing_of_the_host_s_folders_but_its_programs(substrate: LocalSubstrate) -> None:
    async with sandbox_of(substrate) as sandbox:
        shown = set((await output(sandbox, "ls -A /")).split())
        programs = {"bin", "lib", "lib32", "lib64", "nix", "opt", "sbin", "usr"}
        assert shown - programs <= {"dev", "etc", "fixtures", "proc", "sandbox", "tmp"}
        assert (await output(sandbox, "ls -A /sandbox")).split() == ["home", "work"]
        assert await output(sandbox, "ls -A /tmp /sandbox/home /sandbox/work") == (
            "/sandbox/home:\n\n/sandbox/work:\n\n/tmp:\n"
        )


@as_root
async def test_root_s_own_files_cannot_be_read(tmp_path: Path) -> None:
    """Seen wherever they are, such as under /usr or /opt: here in the one shown folder that a test may write to."""
    (tmp_path / "secret").write_text(CANARY)
    (tmp_path / "secret").chmod(0o600)
    (tmp_path / "public").write_text("for all")
    (tmp_path / "public").chmod(0o644)
    tmp_path.chmod(0o755)
    substrate = LocalSubstrate(LocalOptions(isolation="bwrap", fixtures=str(tmp_path)))
    async with sandbox_of(substrate) as sandbox:
        for path in (sandbox, await sandbox.open_session()):
            read = await path.exec(Command(script="cat /fixtures/public /fixtures/secret"))
            assert (read.exit_code, read.stdout) == (1, b"for all")
        status = dict(line.split(":\t", 1) for line in (await output(sandbox, "cat /proc/self/status")).splitlines())
        assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
        assert status["NoNewPrivs"] == "1"


async def test_a_folder_that_was_replaced_by_a_link_leads_nowhere(substrate: LocalSubstrate, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(CANARY)
    async with sandbox_of(substrate) as sandbox:
        for folder in ("/sandbox/tmp", "/tmp", "/sandbox/home", "/sandbox/work"):
            await sandbox.exec(Command(script=f"cd / && rm -rf {folder}; ln -sT {tmp_path} {folder}"))
        seen = await sandbox.exec(Command(script="cat /tmp/secret /sandbox/*/secret; ls -Al /tmp /sandbox"))
        assert CANARY.encode() not in seen.stdout


async def test_a_sandbox_may_write_where_it_works(substrate: LocalSubstrate) -> None:
    async with sandbox_of(substrate) as sandbox:
        locks = "python3 -c 'import multiprocessing; multiprocessing.Lock()'"
        writes = f"touch $HOME/a $TMPDIR/a a /dev/shm/a && {locks} && echo ok"
        assert await output(sandbox, writes) == "ok\n"
        await sandbox.reset(Marks())
        assert await output(sandbox, f"ls -A $HOME $TMPDIR . && {writes}") == (".:\n\n/sandbox/home:\n\n/tmp:\nok\n")


async def test_needed_files_are_readable_with_any_umask(substrate: LocalSubstrate) -> None:
    before = os.umask(0o077)
    try:
        async with sandbox_of(substrate) as sandbox:
            assert "nobody" in await output(sandbox, "touch note && cat /etc/passwd && ls /etc/alternatives >&2 || :")
    finally:
        os.umask(before)


async def test_the_shell_before_bubblewrap_names_no_folder_of_the_runner(substrate: LocalSubstrate) -> None:
    async with sandbox_of(substrate) as sandbox:
        before = sandbox._prefix[: sandbox._prefix.index(local_bwrap._bwrap())]
        done = subprocess.run([*before, "/usr/bin/env"], capture_output=True, env={}, check=True)  # noqa: ASYNC221
    assert done.stdout == b""


async def test_the_environment_is_a_short_list(substrate: LocalSubstrate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:{CANARY}@proxy")
    async with sandbox_of(substrate) as sandbox:
        for path in (sandbox, await sandbox.open_session()):
            environment = (await path.exec(Command(script="env; tr '\\0' '\\n' < /proc/1/environ"))).stdout.decode()
            assert CANARY not in environment
            names = {line.partition("=")[0] for line in environment.splitlines()}
            ours = {"PATH", "LANG", "HOME", "TMPDIR", "TAXTUI_SANDBOX", "TAXTUI_LAUNCH", "TAXTUI_FIXTURES"}
            assert names <= ours | {"PWD", "OLDPWD", "SHLVL", "_"}


@pytest.mark.parametrize("isolation", ["bwrap", "plain"])
async def test_a_command_that_removes_its_working_folder(
    isolation: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Under bubblewrap it is a mount, which only loses its content."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    async with sandbox_of(LocalSubstrate(LocalOptions(isolation=isolation))) as sandbox:
        session = await sandbox.open_session()
        removing = Command(script='touch note; cd / && rm -rf "$OLDPWD" 2>/dev/null')
        await sandbox.exec(removing)
        await session.exec(removing)
        if isolation == "bwrap":
            assert await output(sandbox, "ls -A") == ""
        else:
            with pytest.raises(ExecFailed, match="removed its working folder"):
                await sandbox.exec(Command(script="true"))
        assert (await session.exec(Command(script="true"))).exit_code == 0
        await session.close()
    assert not list(tmp_path.glob("*/*"))
