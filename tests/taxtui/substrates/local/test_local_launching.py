"""How a plain local command gets into its sandbox: its own bash goes there, and the command notices nothing of it."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from taxtui.errors import ExecFailed
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.limits import Limiter
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.local import LocalOptions
from taxtui.substrates.local.bubblewrap import not_started
from taxtui.substrates.local.substrate import LocalSubstrate
from tests.support.sandboxes import sandbox_of, spec

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


with_bash = pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")


@with_bash
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
async def test_a_script_does_what_it_does_anywhere(script: str) -> None:
    async with sandbox_of(LocalSubstrate(LocalOptions(isolation="plain"))) as sandbox:
        found = await sandbox.exec(Command(script=script))
    bare = subprocess.run(["bash", "-c", script], capture_output=True, env={"LANG": "C.UTF-8"}, check=False)  # noqa: ASYNC221
    code = bare.returncode if bare.returncode >= 0 else 128 - bare.returncode
    assert (found.exit_code, found.stdout, found.stderr) == (code, bare.stdout, bare.stderr)


async def test_a_command_without_its_limits_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Limiter, "prepare", lambda *_: "echo no limits >&2 && false && ")
    substrate = LocalSubstrate(LocalOptions(isolation="plain"))
    async with substrate:
        substrate.limiter = Limiter()
        sandbox = await substrate.create(spec(), Marks())
        try:
            found = await sandbox.exec(Command(script="echo ran; exit 0"))
        finally:
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


async def test_a_failed_launcher_is_an_error_of_the_sandbox() -> None:
    async with sandbox_of(LocalSubstrate(LocalOptions(isolation="plain"))) as sandbox:
        sandbox._substrate.isolated = True
        with pytest.raises(ExecFailed, match="uid map"):
            await sandbox.exec(Command(script="echo 'bwrap: setting up uid map: denied' >&2; exit 1"))
