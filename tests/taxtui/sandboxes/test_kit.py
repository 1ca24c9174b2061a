"""The parts of adapters at their edges: pauses, limits, refusals, marks, streams and folders."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import ANY, Mock

import pytest
from msgspec.structs import replace

from taxtui.errors import CleanupFailed, CreateFailed, ExecFailed, SandboxLost, SubstrateUnavailable, Throttled
from taxtui.plan.spec import Command, Limits, SandboxSpec
from taxtui.sandboxes.kit import kept_output, kill, private_folder, removal
from taxtui.sandboxes.kit import limits as local_limits
from taxtui.sandboxes.kit.kept_output import KeptOutput
from taxtui.sandboxes.kit.kill import kill_script, new_mark
from taxtui.sandboxes.kit.labels import LABEL_DEADLINE, LABEL_RUN
from taxtui.sandboxes.kit.limits import CgroupLimiter
from taxtui.sandboxes.kit.process import _CHUNK, _READ_AHEAD, Process
from taxtui.sandboxes.kit.refusal import Meaning, Refused, is_named, last_line
from taxtui.sandboxes.kit.retry import Retry, StatePoller
from taxtui.sandboxes.kit.shell import frames
from taxtui.sandboxes.kit.shell.captured_command import captured, wrap_command
from taxtui.sandboxes.kit.shell.frames import STDOUT
from taxtui.sandboxes.kit.shell.over_ssh import BUFFERED_BYTES, Program
from taxtui.sandboxes.lifecycle import Usage
from tests.support.waiting import until

ENV: Final = {"PATH": os.environ["PATH"]}


def test_a_long_output_is_counted_and_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_output, "HEAD_BYTES", 1000)
    monkeypatch.setattr(kept_output, "TAIL_BYTES", 100)
    token = kept_output.KEPT_BYTES.set(600)
    output = KeptOutput()
    kept_output.KEPT_BYTES.reset(token)
    for _ in range(200):
        output.add(b"x" * 90)
        assert len(output._tail) <= 490
    output.add(b"")
    assert (output.length, len(output.kept), output.dropped) == (18_000, 700, 17_300)
    with pytest.raises(ValueError, match="longer than announced"):
        output.lack(17_999)
    output.lack(18_000)
    output.lack(20_000)
    assert output.dropped == 19_300


async def test_killed_processes_are_looked_for_again_at_once_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kill, "GONE_WITHIN_S", 0.5)
    looks = iter([{2**31 - 1}] * 3)
    await kill.kill_all(lambda: next(looks, set()))
    monkeypatch.setattr(kill, "GONE_WITHIN_S", 0.02)
    with pytest.raises(CleanupFailed, match=r"^2 processes of the sandbox survive SIGKILL$"):
        await kill.kill_all(lambda: {2**31 - 1, 2**31 - 2})


def test_processes_in_a_folder_are_killed_and_others_are_not(tmp_path: Path) -> None:
    inside, below = tmp_path / "in", tmp_path / "in" / "deep"
    outside = tmp_path / "in2"
    for folder in (inside, below, outside):
        folder.mkdir(exist_ok=True)
    children = [subprocess.Popen(["sleep", "600"], cwd=folder) for folder in (inside, below, outside)]
    try:
        done = subprocess.run(["/bin/sh", "-c", kill_script(new_mark(), inside=str(inside))], check=False, timeout=25)
        assert (done.returncode, children[0].wait(5), children[1].wait(5)) == (0, -9, -9)
        assert children[2].poll() is None
    finally:
        for child in children:
            child.kill()
            child.wait()


async def test_a_child_waits_for_a_slow_reader() -> None:
    child = Process(["/bin/sh", "-c", "head -c 20000000 /dev/zero; echo end >&2; kill -9 $$"], ENV, stdin=False)
    await until(lambda: child._ahead > _READ_AHEAD, "more than is read ahead")
    await asyncio.sleep(0.05)
    assert child._ahead <= (4 << 20) + 2 * _CHUNK
    out, err = await child.output()
    assert (out.length, err.kept, child.returncode, child._ahead) == (20_000_000, b"end\n", 137, 0)


async def test_a_far_program_waits_for_a_slow_reader_and_says_its_signal() -> None:
    program, channel = Program(0), Mock()
    program.connection_made(channel)
    for chunk in (b"x", bytes(BUFFERED_BYTES + 1)):
        program.data_received(chunk, None)
    await program.read()
    assert [call[0] for call in channel.method_calls] == ["pause_reading"]
    await program.read()
    assert [call[0] for call in channel.method_calls] == ["pause_reading", "resume_reading"]
    program.exit_signal_received("KILL", False, "", "")
    assert program.exit_code == 137


async def test_a_program_that_cannot_be_started_leaves_no_descriptor() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for stdin in (False, True):
        with pytest.raises(ExecFailed, match="cannot start /nowhere"):
            Process(["/nowhere"], ENV, stdin=stdin)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


async def test_input_larger_than_a_pipe_arrives_and_a_closed_input_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = Process(["/bin/sh", "-c", "wc -c"], ENV, stdin=True)
    counts.feed(b"x" * 3_000_000)
    counts.feed(b"y" * 7, end=True)
    out, _ = await counts.output()
    assert (out.kept.strip(), counts.returncode) == (b"3000007", 0)
    with pytest.raises(SandboxLost, match="no longer reads"):
        await counts.write(b"more")
    monkeypatch.setattr(os, "pidfd_open", Mock(side_effect=OSError(24, "too many open files")))
    deaf = Process(["/bin/sh", "-c", "exec <&-; echo deaf; sleep 0.1; exit 3"], ENV, stdin=True)
    assert await deaf.read() == (STDOUT, b"deaf\n")
    deaf.feed(b"z" * 100_000)
    await deaf.output()
    assert deaf.returncode == 3
    await deaf.close()


async def test_looks_are_an_interval_apart_and_no_larger_than_a_batch() -> None:
    asked: list[tuple[int, int, int]] = []

    async def describe(handles: list[str]) -> Mapping[str, str]:
        asked.append((len(handles), time.monotonic_ns(), poller._next_ns))
        return {}

    poller, began_ns = StatePoller(describe, 0.05), time.monotonic_ns()
    await asyncio.gather(*(poller.next(str(number)) for number in range(150)))
    await poller.next("a")
    assert [count for count, *_ in asked] == [100, 50, 1]
    assert began_ns + poller.interval_ns <= asked[1][2] <= asked[2][1]


def test_sandboxes_in_a_folder_are_found_by_their_records_and_else_by_their_names(tmp_path: Path) -> None:
    assert private_folder.found_in(tmp_path / "none") == []
    labels = {LABEL_RUN: "forged", LABEL_DEADLINE: "1700000000"}
    spec = SandboxSpec(name="taxtui-r1-7", labels=labels, limits=Limits(), ttl_s=60.0)
    folder = private_folder.make(tmp_path, spec)
    assert folder.stat().st_mode & 0o777 == 0o700
    with pytest.raises(CreateFailed, match="taxtui-r1-7 exists already; taxtui clean --run forged --force removes it"):
        private_folder.make(tmp_path, spec)
    (tmp_path / "taxtui-r2-1").mkdir()
    for name, record in (("r2-2", b"x" * 16_385), ("r2-3", b'{"labels":{},"created_unix_s":100.0}')):
        (tmp_path / f"taxtui-{name}").mkdir()
        (tmp_path / f"taxtui-{name}" / "meta.json").write_bytes(record)
    (tmp_path / "file").touch()
    os.utime(tmp_path / "taxtui-r2-2", (0, time.time() - 500))
    mine, unwritten, large, old = private_folder.found_in(tmp_path)
    assert (mine.name, mine.handle, mine.run_id) == ("taxtui-r1-7", str(folder), "r1")
    assert (mine.deadline_unix_s, unwritten.deadline_unix_s) == (1_700_000_000, None)
    assert [entry.run_id for entry in (unwritten, large, old)] == ["r2"] * 3
    assert [round(entry.age_s / 100) for entry in (mine, unwritten, large)] == [0, 0, 5]
    assert old.age_s == pytest.approx(time.time() - 100, abs=60)
    assert private_folder.found_in(tmp_path, "r1") == [replace(mine, age_s=ANY)]
    private_folder.delete(*tmp_path.iterdir())
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_pauses_double_within_the_documented_limits_however_often_the_provider_refuses() -> None:
    for uniform, pauses in ((max, [4.0, 8.0, 10.0, 10.0]), (min, [2.0, 4.0, 5.0, 5.0])):
        source: Any = SimpleNamespace(uniform=uniform)
        patient = Retry(first_s=4.0, source=source)
        assert [patient.pause_s() for _ in range(4)] == pauses
        patient.refusals = 5000
        assert (patient.pause_s(), patient.refusals) == (pauses[-1], 5001)
        patient.reset()
        assert patient.pause_s() == pauses[0]
        advised = [Retry(source=source).pause_s(advice_s) for advice_s in (30.0, None)]
        assert advised == pytest.approx([33.0, 0.5] if uniform is max else [30.0, 0.25])


class Answered(Refused):
    """A provider with two answers of a special meaning."""

    table = (
        Meaning(Throttled, lambda refused: refused.status == 429),
        Meaning(SubstrateUnavailable, lambda refused: refused.reason == "quota", fix="ask for more"),
        Meaning(SandboxLost, lambda refused: refused.status == 404, before_a_sandbox=True),
    )


def test_a_refusal_becomes_the_error_of_the_first_matching_row() -> None:
    busy = Answered(429, "slow", "no", 3.0).as_error(ExecFailed, "ask")
    assert isinstance(busy, Throttled)
    assert (str(busy), busy.retry_after_s) == ("ask: no (429)", 3.0)
    full = Answered(0, "quota", "full").as_error(ExecFailed, "ask")
    assert (type(full), str(full)) == (SubstrateUnavailable, "ask: full (quota); ask for more")
    missing = Answered(404, "", "gone")
    assert type(missing.as_error(CreateFailed, "ask")) is SandboxLost
    assert type(missing.as_error(ExecFailed, "ask")) is ExecFailed
    assert str(Answered(0, "", "silence")) == "silence"


@pytest.mark.parametrize(("status", "kind"), [(401, ExecFailed), (403, ExecFailed), (402, Throttled), (404, Throttled)])
def test_only_missing_rights_are_final(status: int, kind: type[Exception]) -> None:
    refused = Refused(status, "", "no", 2.0)
    assert (refused.final, type(refused.unless_final(ExecFailed))) == (kind is ExecFailed, kind)
    assert str(refused.unless_final(ExecFailed, "ask")) == f"ask: no ({status})"
    assert str(refused.unless_final(ExecFailed)) == f"no ({status})"


def test_the_last_line_of_an_output_and_the_name_of_an_error() -> None:
    for text, line in (("a\n b \n\n  \n", "b"), (b"a\xff", "a\N{REPLACEMENT CHARACTER}"), ("", ""), ("\n", "")):
        assert last_line(text) == line
    assert is_named(KeyError(), "KeyError", "x")
    assert is_named(KeyError(), "LookupError")
    assert not is_named(KeyError(), "OSError")


@pytest.mark.parametrize("name", ["bash", "sh"])
@pytest.mark.parametrize(
    ("script", "stdin", "out"),
    [
        ("echo out; echo err >&2; exit 7", b"", b"out\n"),
        ("cat; exit 7", b"a\0b\n" * 5000, b"a\0b\n" * 5000),
        (f"echo {'x' * 5000} >/dev/null; cat; echo ü; exit 7", b"", "ü\n".encode()),
        ("(sleep 5; echo late) & echo early; exit 7", b"", b"early\n"),
    ],
)
async def test_a_captured_command_prints_its_bytes_and_exit_code(
    name: str, script: str, stdin: bytes, out: bytes
) -> None:
    wrapped = wrap_command(Command(script=script, stdin=stdin), name)
    assert len(wrapped.argv[-1]) < 4100
    process = Process(["/bin/" + name, *wrapped.argv[1:]], ENV, stdin=True)
    process.feed(wrapped.stdin, end=True)
    streams = await captured(process, wrapped.marker)
    assert [(stream.exit_code, stream.complete) for stream in streams] == [(7, True)] * 2
    assert streams[0].output().kept == out
    assert streams[1].output().kept == (b"err\n" if "err" in script else b"")
    await process.close()


def test_the_line_after_a_marker_is_an_exit_code_and_a_time() -> None:
    assert frames.last_line(b"255:1700000000.123456") == (255, 1_700_000_000_123_456_000)
    assert frames.last_line(b"0:1700000000,000001") == (0, 1_700_000_000_000_001_000)
    assert frames.last_line(b"255:" + b"9" * 20) == (255, -1)
    assert frames.last_line(b"7:") == frames.last_line(b"7") == (7, -1)
    for forged in (b"", b"1234:", b"1 :", b"-1:", b"255:" + b"9" * 21):
        with pytest.raises(ValueError, match="no exit code"):
            frames.last_line(forged)


async def test_the_files_of_a_cgroup_are_written_and_read_in_their_units(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_limits, "_GONE_WITHIN_S", 0.02)
    first, second = tmp_path / "cpu", tmp_path / "v2"
    limiter = CgroupLimiter("cgroup v1", (first, second), ("cpu.cfs_quota_us", "memory", "pids.max"))
    (first / "box").mkdir(parents=True)
    for name in ("cpu.cfs_quota_us", "tasks"):
        (first / "box" / name).touch()
    enter = limiter.prepare("box", Limits(cpus=0.001))
    assert enter == f"echo 0 >{first}/box/tasks && echo 0 >{second}/box/cgroup.procs && "
    assert local_limits.or_exit(enter) == f"{enter.removesuffix('&& ')}|| exit; "
    assert (first / "box/cpu.cfs_quota_us").read_text() == "1000"
    assert limiter.usage("box") == Usage()
    (second / "box/memory.current").write_text("4096\n")
    (second / "box/cpu.stat").write_text("usage_usec 7\nuser_usec 3\n")
    assert limiter.usage("box") == Usage(memory_bytes=4096, cpu_ns=7000)
    (second / "box/cgroup.events").write_text("populated 1\nfrozen 1\n")
    await limiter.freeze("box", frozen=True)
    assert (second / "box/cgroup.freeze").read_text() == "1"
    with pytest.raises(ExecFailed, match=r"not stopped within 0\.02 s"):
        await limiter.freeze("box", frozen=False)
    with pytest.raises(CleanupFailed, match="box: cannot remove the cgroup: Directory not empty"):
        await limiter.remove("box")
    await limiter.remove("another")


async def test_looks_for_a_removed_sandbox_become_rarer(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    timeout = asyncio.timeout

    def counted(within_s: float) -> asyncio.Timeout:
        waits.append(within_s)
        return timeout(within_s if len(waits) == 1 else 0)

    looks = iter([False] * 5)

    async def ended() -> bool:
        await asyncio.sleep(0)
        return next(looks, True)

    async def ask() -> bool:
        await asyncio.sleep(0)
        return True

    monkeypatch.setattr(asyncio, "timeout", counted)
    await removal.remove("it", ask, ended)
    assert waits == [100.0, 1.0, 1.5, 2.25, 3.375, 4.0, 4.0]
    now = time.monotonic()
    assert [removal.settled(now - age_s) for age_s in (59.0, 60.5)] == [False, True]


def test_a_cancelled_create_is_removed_for_fifteen_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)

    def refuse() -> None:
        raise KeyError

    removal.insist(refuse, (KeyError,))
    assert pauses == [0.0, 0.5, 1.0, 2.0, 4.0, 8.0]
    ask = Mock(side_effect=[KeyError("not found"), KeyError("not found"), None])
    removal.insist(ask, (KeyError,))
    assert ask.call_count == 3, "and no longer than it is refused"


def test_sixteen_mebibytes_of_an_output_and_its_end_are_kept() -> None:
    output = KeptOutput()
    for _ in range(17):
        output.add(b"x" * 2**20)
    assert (len(output.kept), output.dropped) == (2**24 + 2**16, 2**20 - 2**16)


def test_version_1_of_cgroups_needs_root_and_three_controllers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(local_limits, "_CGROUPS", tmp_path)
    for controller in ("cpu", "memory", "pids"):
        assert local_limits._version_1(tmp_path) is None
        (tmp_path / controller).mkdir()
        (tmp_path / controller / "cgroup.procs").write_text("7 8\n")
    limiter = local_limits._version_1(tmp_path)
    assert limiter is not None
    assert (limiter.label, limiter.freezes, local_limits.can_freeze()) == ("cgroup v1", False, False)
    (tmp_path / "unified").mkdir()
    (tmp_path / "unified/cgroup.procs").touch()
    hybrid = local_limits._version_1(tmp_path)
    assert hybrid is not None
    assert hybrid.groups("box") == [*limiter.groups("box"), tmp_path / "unified/taxtui/box"]
    assert (hybrid.freezes, local_limits.can_freeze()) == (True, True)
    for group in hybrid.groups("box")[1:]:
        group.mkdir(parents=True)
        (group / "cgroup.procs").write_text("12\n13\n")
    assert hybrid._processes("box") == {12, 13}
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert (local_limits._version_1(tmp_path), local_limits.can_freeze()) == (None, False)
