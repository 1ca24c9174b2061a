"""Trying from inside what a sandbox can get at: against sandboxes that say anything, and real ones."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from taxtui.commands import doctor_substrates as substrates
from taxtui.errors import CreateFailed, ExecFailed
from taxtui.plan.spec import Command
from taxtui.sandboxes import isolation
from taxtui.sandboxes.fake import FakeSubstrate
from taxtui.sandboxes.isolation import PROBES, Tried, probe
from taxtui.sandboxes.protocol import ExecResult
from taxtui.substrates.local import LocalOptions
from taxtui.substrates.local.substrate import LocalSubstrate

RUN = "20260101t000000z-00000000"


@pytest.mark.parametrize("said", [b"", b"\xff\x00" * 9, b"9" * 4000, b"1 2 3 4 5 6\nCapEff: zz\n", b"all\n536870912\n"])
async def test_any_answer_of_a_sandbox_gives_a_result_for_each_probe(said: bytes) -> None:
    fake = FakeSubstrate()
    fake.answer = lambda command: ExecResult(0, said, b"")
    found = await probe(fake, RUN)
    assert [finding.aspect for finding in found] == list(PROBES)
    assert all(len(finding.detail) <= 200 for finding in found)
    assert fake.alive == {}
    assert "TAXTUI_CANARY" not in os.environ


async def test_a_failed_probe_is_unknown_and_leaves_nothing() -> None:
    fake = FakeSubstrate()
    fake.fail("exec", ExecFailed("no shell"), times=1000)
    unknown = {finding.aspect for finding in await probe(fake, RUN) if finding.holds is None}
    assert unknown == set(PROBES) - {"pids", "memory"}, "those two may kill what asks for them"
    fake.fail("created", CreateFailed("half made"))
    with pytest.raises(CreateFailed):
        await probe(fake, RUN)
    assert fake.alive == {}


async def test_a_script_that_cannot_look_and_a_silent_sandbox_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeSubstrate()
    fake.answer = lambda command: ExecResult(0, b"?\n", b"")
    assert {finding.holds for finding in await probe(fake, RUN)} == {None}
    monkeypatch.setattr(isolation, "COMMAND_TIMEOUT_S", 0.005)
    fake.fail("exec", TimeoutError(), times=1000)
    assert {finding.holds for finding in await probe(fake, RUN)} == {None}


@pytest.mark.parametrize("aspect", sorted(set(PROBES) - {"devices", "container daemons"}))  # these need the shell alone
def test_without_programs_a_script_says_that_it_cannot_look(aspect: str) -> None:
    done = subprocess.run(["/bin/sh", "-c", PROBES[aspect].checked], capture_output=True, env={"PATH": ""}, check=False)
    assert done.stdout.decode().strip() == isolation.UNKNOWN


@pytest.mark.parametrize(("seen", "holds"), [(b"", None), (b"process\n", False)])
async def test_without_a_canary_unseen_sandboxes_are_unknown(seen: bytes, holds: bool | None) -> None:
    def answer(command: Command) -> ExecResult:
        if command.script.startswith("until"):
            raise ExecFailed("no canary")
        return ExecResult(0, seen, b"")

    fake = FakeSubstrate()
    fake.answer = answer
    by_aspect = {finding.aspect: finding for finding in await probe(fake, RUN)}
    assert by_aspect["other sandboxes"].holds is holds
    assert by_aspect["files"].holds is not None


@pytest.mark.bwrap
async def test_bubblewrap_keeps_everything_away_but_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    async with LocalSubstrate(LocalOptions(isolation="bwrap")) as substrate:
        found = await probe(substrate, RUN)
        limited = {"pids", "memory"} if "cgroup" in substrate.limiter.label else set()
        assert await substrate.find() == []
    held = {finding.aspect for finding in found if finding.holds}
    assert held >= set(PROBES) - {"disk", "pids", "memory"} | limited


async def test_plain_processes_keep_nothing_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(isolation, "PROBES", {"files": PROBES["files"], "other sandboxes": PROBES["other sandboxes"]})
    async with LocalSubstrate(LocalOptions(isolation="plain")) as substrate:
        assert [finding.holds for finding in await probe(substrate, RUN)] == [False, False]


def test_results_of_the_probe_are_printed_below_their_substrate() -> None:
    findings = [Tried("files", True, "not there"), Tried("disk", False, "all\x1b[31m"), Tried("pids", None, "")]
    row: dict[str, Any] = {"name": "fake", "ok": True, "detail": "ready, v1", "fix": ""}
    row["capabilities"] = {"deadline": "none"}
    row["isolation"] = [finding._asdict() for finding in findings]
    assert substrates.lines([row]) == [
        "fake  ready        v1; deadline: none",
        "    files              holds    not there",
        "    disk               OPEN     all\N{REPLACEMENT CHARACTER}[31m",
        "    pids               unknown  ",
    ]
    assert substrates._sections([row])[1].rows[0] == ["fake", "files", "holds", "not there"]
