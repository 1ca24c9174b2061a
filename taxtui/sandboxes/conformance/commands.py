"""Checks of commands, the same in ``exec`` and in ``session`` mode, and of sessions themselves."""

from __future__ import annotations

import asyncio
import hashlib
import time
from typing import Final

from taxtui.errors import ExecTimeout, SandboxLost
from taxtui.plan.spec import Command, Mode
from taxtui.sandboxes.conformance.bench import (
    ALL_BEAT,
    BEAT,
    BEATEN,
    Bench,
    Shell,
    Violation,
    check,
    equal,
    expect,
    no_beats,
    raises,
)

BOTH: Final[tuple[Mode, ...]] = ("exec", "session")
_ALL_BYTES: Final = bytes(range(256)) * 16
_PROMPT_S: Final = 15.0
_TIMEOUT_S: Final = 1.5
_TIMEOUTS_S: Final = (_TIMEOUT_S, 6.0, 24.0)
"""The longer timeouts are for commands that begin late: an earlier timeout kills no process."""
_KILLED_WITHIN_S: Final = 30.0


@check("exit codes", modes=BOTH)
async def exit_codes(bench: Bench) -> None:
    """Exit codes 0, 1, 7, 127 and 137 arrive as results."""
    shell = await bench.shell()
    for script, code in {
        "true": 0,
        "false": 1,
        "exit 7": 7,
        "no-such-program-anywhere": 127,
        "sh -c 'kill -9 $$'": 137,
        "sh -c 'kill -TERM $$'; exit $?": 143,
        "exit 255": 255,
        "if": 2,
    }.items():
        equal((await shell.run(script)).exit_code, code, f"exit code of {script!r}")


@check("streams", modes=BOTH)
async def streams(bench: Bench) -> None:
    """Standard output and standard error arrive apart, where the capability says so; else merged into the first."""
    shell = await bench.shell()
    result = await shell.run("echo out; echo err >&2; echo out again")
    if bench.capabilities.split_streams:
        equal((result.stdout, result.stderr), (b"out\nout again\n", b"err\n"), "the two streams")
    else:
        equal(sorted(result.stdout.split(b"\n")), [b"", b"err", b"out", b"out again"], "the merged lines")
        equal(result.stderr, b"", "stderr of merged streams")


@check("exact bytes", modes=BOTH)
async def exact_bytes(bench: Bench) -> None:
    """No output, output without a last newline, and every byte value arrive unchanged."""
    shell = await bench.shell()
    equal(await shell.output("true"), b"", "output of true")
    equal(await shell.output("printf 'no newline'"), b"no newline", "output without a newline")
    equal(await shell.output("printf '\\n\\n'"), b"\n\n", "two newlines")
    octal = "".join(f"\\{byte:03o}" for byte in range(256))
    equal(await shell.output(f"printf '{octal}'"), bytes(range(256)), "every byte value")
    if bench.capabilities.split_streams:
        equal((await shell.run(f"printf '{octal}' >&2")).stderr, bytes(range(256)), "every byte value on stderr")


@check("5 MB output", modes=BOTH)
async def large_output(bench: Bench) -> None:
    """Five million bytes arrive complete."""
    shell = await bench.shell()
    line = b"0123456789abcdef" * 4 + b"\n"
    expected = (line * (5_000_000 // len(line) + 1))[:5_000_000]
    output = await shell.output(f"yes {line.decode().strip()} 2>/dev/null | head -c 5000000")
    equal(len(output), len(expected), "bytes")
    equal(hashlib.sha256(output).hexdigest(), hashlib.sha256(expected).hexdigest(), "digest")


@check("standard input", modes=BOTH)
async def standard_input(bench: Bench) -> None:
    """A command reads the whole standard input, bytes unchanged; without input, the end at once."""
    shell = await bench.shell()
    equal(await shell.output("cat", stdin=_ALL_BYTES), _ALL_BYTES, "what cat returned")
    equal(await shell.output("cat; echo end"), b"end\n", "cat without input")
    large = b"line of input\n" * 40_000
    equal(await shell.output("wc -c", stdin=large), f"{len(large)}\n".encode(), "size of a large input")
    equal((await shell.run("exit 3", stdin=large)).exit_code, 3, "exit code of a command with unread input")
    equal(await shell.output("echo next"), b"next\n", "the next command")


@check("scripts", modes=BOTH)
async def scripts(bench: Bench) -> None:
    """Quotes, newlines, long and non-ASCII scripts reach the shell unchanged; bash where the capability says so."""
    shell = await bench.shell()
    for script, expected in {
        """echo "a 'b' $((1 + 1)) \\$x" '"c"' """: b"a 'b' 2 $x \"c\"\n",
        "cat <<'END'\n$verbatim `text`\nEND": b"$verbatim `text`\n",
        "# only a comment": b"",
        "echo one # and a comment": b"one\n",
        "echo tab\there; printf '%s\\n' 'a\tb'": b"tab here\na\tb\n",
        "printf '%s' 'grüße, 世界'": "grüße, 世界".encode(),
        "for i in 1 2 3\ndo\n  echo $i\ndone": b"1\n2\n3\n",
        "false\necho after": b"after\n",
        "printf %s " + "x" * 100_000 + " | wc -c": b"100000\n",
    }.items():
        equal(await shell.output(script), expected, f"output of {script[:60]!r}")
    if bench.capabilities.bash:
        equal(await shell.output("a=(x y z); [[ $BASH_VERSION ]] && echo ${a[2]} ${#a[@]}"), b"z 3\n", "an array")


@check("surroundings", modes=BOTH)
async def surroundings(bench: Bench) -> None:
    """A constant, writable working directory, PATH, an existing HOME, and the spec's environment."""
    shell = await bench.shell()
    where = await shell.output("pwd; cd /")
    equal(await shell.output("pwd; cd /"), where, "the working directory of the second command")
    await shell.output("echo kept > note && mkdir -p deep/er && echo kept > deep/er/note")
    equal(await shell.output("cat note deep/er/note"), b"kept\nkept\n", "an earlier command's file")
    await shell.output('test -d "$HOME" && test -n "$PATH"')
    value = b"a value with 'quotes' and spaces\n"
    equal(await shell.output('echo "$TAXTUI_CONFORMANCE"'), value, "a variable of the spec")


@check("commands are apart", modes=BOTH)
async def streams_apart(bench: Bench) -> None:
    """Directory, variables, options, traps and exits of one command do not reach the next."""
    shell = await bench.shell()
    await shell.output("cd /; leaked=yes; export leaked; set -eu; umask 077; trap 'echo trapped' EXIT")
    equal((await shell.run("exec false")).exit_code, 1, "exit code of exec false")
    equal((await shell.run("set -e; false; true")).exit_code, 1, "exit code of a failed script")
    equal(await shell.output('echo "${leaked-unset}"; echo $nothing; trap'), b"unset\n\n", "what leaked")


@check("output like a protocol", modes=BOTH)
async def look_alikes(bench: Bench) -> None:
    """Output like an end marker, and a print of all shell variables, change nothing."""
    shell = await bench.shell()
    text = "\n0123456789abcdef0123456789abcdef{\n0123456789abcdef0123456789abcdef}0\n}0\n{"
    equal(await shell.output(f"printf %s '{text}'"), text.encode(), "look-alike markers")
    for nosy in ("set", "set -x; true", "set -v; true", "(exec 2>&1; set -x; set; env)", "cat /proc/self/environ"):
        equal((await shell.run(f"{nosy}\nexit 5")).exit_code, 5, f"exit code after {nosy!r}")
    equal(await shell.output("echo next"), b"next\n", "the next command")


@check("background processes", modes=BOTH)
async def background(bench: Bench) -> None:
    """A command ends with the shell, even if a background process has the streams open."""
    shell = await bench.shell()
    for script in ("sleep 60 >/dev/null 2>&1 & echo started", "sleep 60 & echo started", "sleep 60 & exit 4"):
        began = time.monotonic()
        result = await shell.run(script)
        took_s = time.monotonic() - began
        expect(took_s < _PROMPT_S, f"{script!r} took {took_s:.1f} s")
        equal(result.exit_code, 4 if "exit 4" in script else 0, f"exit code of {script!r}")
    equal(await shell.output("echo next"), b"next\n", "the next command")


@check("chatter between commands", modes=BOTH)
async def chatter(bench: Bench) -> None:
    """Late output of a background process is not part of the next command's output."""
    shell = await bench.shell()
    await shell.output("(sleep 0.3; echo late; echo late >&2) & echo first")
    await asyncio.sleep(0.8)
    result = await shell.run("echo second")
    equal((result.stdout, result.stderr), (b"second\n", b""), "the output of the command after the chatter")


@check("timeout", modes=BOTH)
async def timeout(bench: Bench) -> None:
    """A command is killed with all processes at the timeout; the session ends, the sandbox stays."""
    shell = await bench.shell()
    for timeout_s in _TIMEOUTS_S:
        began = time.monotonic()
        with raises(ExecTimeout, subject="an endless command"):
            await shell.run(BEAT, timeout_s=timeout_s)
        took_s = time.monotonic() - began
        beaten = await shell.sandbox.exec(Command(script=BEATEN))
        expect(took_s >= timeout_s, f"timed out after {took_s:.2f} s instead of {timeout_s:g} s")
        expect(took_s < timeout_s + _KILLED_WITHIN_S, f"killing it took {took_s - timeout_s:.1f} s")
        await no_beats(shell.sandbox, "after the timeout")
        if bench.mode == "session":
            with raises(SandboxLost, subject="a command in a timed-out session"):
                await shell.run("true")
            shell = await bench.shell(shell.sandbox)
        equal(await shell.output("echo still here"), b"still here\n", "a command after the timeout")
        if beaten.exit_code == 0:
            return
    raise Violation(f"within {_TIMEOUTS_S[-1]:g} s the command had not begun")


@check("timeout with closed streams", modes=BOTH)
async def silent_timeout(bench: Bench) -> None:
    """A command with closed streams is still waited for, and still killed."""
    shell = await bench.shell()
    equal((await shell.run("exec >&- 2>&-; sleep 0.3; exit 6")).exit_code, 6, "exit code of a silent command")
    with raises(ExecTimeout, subject="an endless silent command"):
        await shell.run(f"exec >&- 2>&-\n{BEAT}", timeout_s=_TIMEOUT_S)
    await no_beats(shell.sandbox, "after the timeout")


# -- sessions

SESSION: tuple[Mode, ...] = ("session",)


@check("a killed shell", modes=SESSION)
async def killed_shell(bench: Bench) -> None:
    """A kill of the shell loses the session, not the sandbox, even if a background process has the streams open."""
    shell = await bench.shell()
    scripts = {"kill -9 $$; sleep 30": (SandboxLost,), "sleep 60 & kill -9 $$; sleep 30": (SandboxLost, ExecTimeout)}
    for script, errors in scripts.items():
        with raises(*errors, subject=script):
            await shell.run(script, timeout_s=10)
        with raises(SandboxLost, subject="the next command"):
            await shell.run("true")
        shell = await bench.shell(shell.sandbox)
        equal(await shell.output("echo again"), b"again\n", "a new session in the same sandbox")


@check("closing", modes=SESSION)
async def closing(bench: Bench) -> None:
    """Closing ends the shell with all processes, also a second time; a later command is refused."""
    shell = await bench.shell()
    session = await shell.sandbox.open_session()
    background = BEAT.replace("beat.foreground", "beat.foreground &")
    await Shell(shell.sandbox, session).run(f"({background}) >/dev/null 2>&1 </dev/null\n{ALL_BEAT}")
    await session.close()
    await no_beats(shell.sandbox, "after closing")
    await session.close()
    with raises(SandboxLost, subject="a command in a closed session"):
        await Shell(shell.sandbox, session).run("true")
    equal(await shell.output("echo other"), b"other\n", "another session in the same sandbox")
