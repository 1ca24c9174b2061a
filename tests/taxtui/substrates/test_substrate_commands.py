"""``taxtui doctor`` and ``taxtui clean``."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from taxtui import installed
from taxtui.commands import clean, doctor
from taxtui.errors import CleanupFailed, CreateFailed, SubstrateUnavailable, UsageError
from taxtui.plan.notation import parse_substrate
from taxtui.runner.cleanup import ledger
from taxtui.runner.cleanup.ledger import LedgerEntry
from taxtui.sandboxes.kit.labels import LABEL_DEADLINE, LABEL_RUN
from taxtui.sandboxes.protocol import Availability, Found, Marks
from taxtui.substrates.local import LocalOptions
from taxtui.substrates.local.substrate import LocalSubstrate
from tests.support.sandboxes import RUN, spec

PLAIN = "local:isolation=plain"


async def leave_one(number: int, deadline_s: str = "1") -> str:
    """A sandbox that nobody removes; its name. Its deadline, in Unix seconds, passed long ago if nothing is said."""
    async with LocalSubstrate(LocalOptions(isolation="plain")) as substrate:
        labels = {LABEL_RUN: RUN, LABEL_DEADLINE: deadline_s}
        return (await substrate.create(spec(number, labels=labels), Marks())).name


async def found() -> list[str]:
    async with LocalSubstrate(LocalOptions(isolation="plain")) as substrate:
        return [each.name for each in await substrate.find(RUN)]


def enter_in_ledger(pid: int = 0) -> None:
    """A run on local sandboxes that was not cleaned; ``pid``: the process."""
    reference = parse_substrate(PLAIN)
    ledger.write(LedgerEntry(run_id=RUN, substrates=(reference,), create_timeout_s=5, pid=pid))


@pytest.fixture
def ended_pid() -> int:
    """Of a process that is no more."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    return ended.pid


async def test_the_command_in_the_error_removes_an_existing_sandbox() -> None:
    """Its deadline is ahead: without --force the sweep would spare it."""
    ahead = str(int(time.time()) + 3600)
    name = await leave_one(7, ahead)
    with pytest.raises(CreateFailed) as raised:
        await leave_one(7, ahead)
    words = raised.value.fix.removesuffix(" removes it").split()
    assert words[:2] == ["taxtui", "clean"]
    done = await asyncio.to_thread(CliRunner().invoke, clean.command, [*words[2:], "-s", PLAIN])
    assert (done.exit_code, f"removed local {name}" in done.output) == (0, True)


def cleaned(*args: str, substrate: str = PLAIN, code: int = 0) -> Result:
    """``taxtui clean``, of all substrates if ``substrate`` is empty."""
    done = CliRunner().invoke(clean.command, [*(("-s", substrate) if substrate else ()), *args])
    assert done.exit_code == code, done.output
    return done


def rows(*args: str, exit_code: int = 0) -> list[dict[str, Any]]:
    done = CliRunner().invoke(doctor.command, [*args, "--format", "json"], catch_exceptions=False)
    assert done.exit_code == exit_code
    parsed: list[dict[str, Any]] = json.loads(done.stdout)
    return parsed


class TestDoctor:
    def test_an_adapter_that_raises_against_the_protocol_is_a_row(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def check(_: LocalSubstrate) -> Availability:
            raise RuntimeError("boom")

        monkeypatch.setattr(LocalSubstrate, "check", check)
        [row] = rows("-s", "local", exit_code=3)
        assert (row["ok"], row["fix"]) == (False, "report it to the adapter's author")
        assert re.fullmatch(r"unexpected RuntimeError \(test_substrate_commands\.py:\d+\)", row["detail"])

    @pytest.mark.parametrize(
        ("name", "missing", "detail"),
        [
            ("docker", {"docker"}, "docker is not installed"),
            ("ec2", {"boto3", "asyncssh"}, "asyncssh and boto3 are not installed"),
            ("ec2", {"boto3", "asyncssh", "websockets"}, "asyncssh, boto3 and websockets are not installed"),
        ],
    )
    def test_a_missing_extra_is_a_row_with_its_fix(
        self, monkeypatch: pytest.MonkeyPatch, name: str, missing: set[str], detail: str
    ) -> None:
        monkeypatch.setattr(installed, "is_installed", lambda package: package not in missing)
        [row] = rows("-s", name, exit_code=3)
        assert row["detail"] == detail
        table = CliRunner().invoke(doctor.command, ["-s", name]).stdout
        assert f"unavailable  {detail}  →  {row['fix']}" in table

    def test_a_substrate_is_checked_with_its_options_and_its_deadline(self) -> None:
        [row] = rows("-s", PLAIN)
        assert (row["name"], row["ok"], row["variant"]) == (PLAIN, True, "plain")
        assert row["limits"]
        assert row["capabilities"]["deadline"] == "none"
        assert CliRunner().invoke(doctor.command, ["-s", PLAIN]).stdout.rstrip().endswith("; deadline: none")

    @pytest.mark.parametrize(
        ("reference", "detail"),
        [
            ("local:isolated=plain", "local has no option 'isolated'"),
            ("ssh:host=box,port=99999", "Expected `int` <= 65535 - at `$.port`"),
            ("local:iso; lation=plain", "local has no option 'iso; lation'"),
            ("local:isolation=no", "Invalid enum value 'no' - at `$.isolation`"),
        ],
    )
    def test_an_invalid_option_is_a_row(self, reference: str, detail: str) -> None:
        [row] = rows("-s", reference, exit_code=3)
        assert (row["ok"], row["detail"]) == (False, detail)

    @pytest.mark.parametrize(
        ("reference", "words"), [("docer", "unknown substrate 'docer'"), ("docker:runsc", "not an option")]
    )
    def test_an_unknown_substrate_is_refused(self, reference: str, words: str) -> None:
        with pytest.raises(UsageError, match=words):
            rows("-s", reference)

    def test_one_unusable_substrate_of_two_is_the_exit_code_of_a_complete_table(self) -> None:
        words = ["-s", PLAIN, "-s", "docker:host=unix:///nonexistent"]
        done = CliRunner().invoke(doctor.command, words, catch_exceptions=False)
        assert (done.exit_code, done.stdout.count("\n")) == (3, 2)


class TestClean:
    @pytest.fixture(autouse=True)
    def _own_folder(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        yield
        CliRunner().invoke(clean.command, ["-s", PLAIN, "--run", RUN, "--force"])  # the sandbox's cgroup too

    def test_dry_run_then_for_real(self) -> None:
        name = asyncio.run(leave_one(1))
        assert cleaned("--run", RUN, "--dry-run").stdout.startswith(f"would remove local {name} ")
        assert asyncio.run(found()) == [name]
        assert cleaned("--run", RUN, "--older-than", "1h").stdout == ""
        assert cleaned("--run", RUN).stdout.startswith(f"removed local {name} ")
        assert asyncio.run(found()) == []

    def test_a_remaining_sandbox_is_named(self) -> None:
        async def fail(self: LocalSubstrate, found: Found) -> None:
            raise CleanupFailed("it would not go")

        name = asyncio.run(leave_one(2))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LocalSubstrate, "reap", fail)
            done = cleaned("--run", RUN, code=1)
        assert f"may still exist: local {name}" in done.stderr
        assert "it would not go" in done.stderr
        cleaned("--run", RUN)

    @pytest.mark.parametrize("who", ["of another machine", "which is going on here", "whose process has ended"])
    def test_before_its_deadline_it_takes_force(self, who: str, ended_pid: int) -> None:
        pid = {"which is going on here": os.getpid(), "whose process has ended": ended_pid}.get(who)
        if pid is not None:
            enter_in_ledger(pid)
        known = {
            os.getpid(): f", which is going on here (process {pid}),",
            None: ", of another user, machine or state folder,",
        }
        until = "until the last one's deadline, 2100-01-01 00:00:00 UTC; --force removes them"
        words = f"kept 1 of run {RUN}{known.get(pid, ', whose process on this machine has ended,')} {until}\n"
        name = asyncio.run(leave_one(3, "4102444800"))
        for args, code in ((), 0), (("--dry-run",), 0), (("--run", RUN, "--dry-run"), 0), (("--run", RUN), 1):
            spared = cleaned(*args, code=code)
            assert (spared.stdout, spared.stderr) == ("", f"taxtui: {PLAIN}: {words}")
        assert asyncio.run(found()) == [name]
        assert cleaned("--run", RUN, "--force", "--dry-run").stdout.startswith(f"would remove local {name} ")
        cleaned("--run", RUN, "--force")
        assert asyncio.run(found()) == []

    @pytest.fixture
    def _no_substrates(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """But those of the ledger."""
        monkeypatch.setattr("taxtui.sandboxes.registry.names", list)

    @pytest.mark.usefixtures("_no_substrates")
    def test_a_reused_process_id_spares_nothing_whose_deadline_has_passed(self) -> None:
        enter_in_ledger(os.getpid())
        name = asyncio.run(leave_one(5))
        assert f"removed local {name}" in cleaned(substrate="").stdout
        assert [entry.run_id for entry in ledger.entries()] == [RUN], "it may be going on, and make more"

    def test_a_named_sweep_forgets_a_run_that_used_nothing_else(self) -> None:
        both = (parse_substrate(PLAIN), parse_substrate("fake"))
        for run, used in ((RUN, both[:1]), (f"{RUN}b", both)):
            ledger.write(LedgerEntry(run_id=run, substrates=used, create_timeout_s=5))
        cleaned()
        assert [entry.run_id for entry in ledger.entries()] == [f"{RUN}b"], "the other place was not looked at"

    def test_without_a_deadline_only_a_run_that_goes_on_here_is_spared(self) -> None:
        enter_in_ledger(os.getpid())
        name = asyncio.run(leave_one(6, ""))
        assert f"which is going on here (process {os.getpid()}), until it ends; --force" in cleaned().stderr
        ledger.remove(RUN)
        assert f"removed local {name}" in cleaned().stdout

    @pytest.mark.usefixtures("_no_substrates")
    def test_a_deadline_that_no_calendar_has(self) -> None:
        enter_in_ledger()
        asyncio.run(leave_one(7, "9" * 30))
        assert "deadline, 9999-12-31" in cleaned(substrate="").stderr
        assert [entry.run_id for entry in ledger.entries()] == [RUN], "what is spared is not forgotten"

    @pytest.mark.usefixtures("_no_substrates")
    def test_the_substrates_of_a_dead_run_are_cleaned_and_the_run_forgotten(self, ended_pid: int) -> None:
        enter_in_ledger(ended_pid)
        name = asyncio.run(leave_one(4))
        assert f"removed local {name}" in cleaned("--run", RUN, substrate="").stdout
        assert ledger.entries() == []

    async def test_an_option_of_an_older_version_in_the_ledger_hides_no_sandbox(self) -> None:
        name = await leave_one(8)
        older = tuple(map(parse_substrate, ("local:isolation=plain,disk_mib=9", "local:isolation=gone", "vanished")))
        for number, reference in enumerate(older):
            run = f"{RUN}{'abc'[number]}" if number else RUN
            ledger.write(LedgerEntry(run_id=run, substrates=(reference,), create_timeout_s=5))
        done = await asyncio.to_thread(CliRunner().invoke, clean.command, [])
        assert (done.exit_code, f"removed local {name}" in done.output) == (0, True)
        for reference in older[1:]:
            assert f"not searched: {reference.name}" in done.output or f"{reference.name!r}" in done.output
        left = {entry.run_id for entry in ledger.entries()}
        assert RUN not in left
        for run in left:
            ledger.remove(run)

    def test_an_unavailable_substrate_is_fatal_only_if_named(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
        monkeypatch.setattr("taxtui.sandboxes.registry.names", lambda: ["docker", "local"])
        assert "not searched: docker: no docker daemon" in cleaned("--run", "no-such-run", substrate="").stderr
        named = CliRunner().invoke(clean.command, ["--run", "no-such-run", "-s", "docker"])
        assert isinstance(named.exception, SubstrateUnavailable)
        assert named.exception.exit_code == 3

    def test_bad_arguments(self) -> None:
        for arguments in (["--older-than", "soon"], ["-s", "no-such"], ["-s", "local:isolation=magic"]):
            assert isinstance(CliRunner().invoke(clean.command, arguments).exception, UsageError)
