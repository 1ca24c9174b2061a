"""``taxtui substrates`` and ``taxtui sweep``."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from taxtui.commands import substrates, sweep
from taxtui.errors import CleanupFailed, SubstrateUnavailable, UsageError
from taxtui.notation import parse_substrate
from taxtui.runner import ledger
from taxtui.runner.ledger import Entry
from taxtui.spec import LABEL_RUN, Limits, SandboxSpec
from taxtui.substrate import Found, Marks
from taxtui.substrates.local import LocalOptions, LocalSubstrate

RUN = f"s{os.getpid()}"
PLAIN = "local:isolation=plain"


async def leave_one(number: int) -> str:
    """A sandbox that nobody removes; its name."""
    name = f"taxtui-{RUN}-{number}"
    async with LocalSubstrate(LocalOptions(isolation="plain")) as substrate:
        await substrate.create(SandboxSpec(name=name, labels={LABEL_RUN: RUN}, limits=Limits(), ttl_s=60), Marks())
    return name


async def found() -> list[str]:
    async with LocalSubstrate(LocalOptions(isolation="plain")) as substrate:
        return [each.name for each in await substrate.find(RUN)]


class TestSubstrates:
    def test_listing_imports_no_sdk(self) -> None:
        script = (
            "import sys; from taxtui.cli import app\n"
            "try: app(['substrates'])\n"
            "except SystemExit: pass\n"
            "print(sorted({'docker', 'requests', 'kubernetes', 'boto3', 'daytona_sdk'} & set(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "[]"
        assert "local" in done.stdout

    def test_a_missing_extra_is_a_row_with_its_fix(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(substrates, "_installed", lambda package: package != "docker")
        rows = json.loads(CliRunner().invoke(substrates.command, ["--format", "json"]).stdout)
        row = next(row for row in rows if row["name"] == "docker")
        assert row == {
            "name": "docker",
            "ok": False,
            "detail": "docker is not installed",
            "fix": 'pip install "taxtui[docker]"',
        }
        checked = CliRunner().invoke(substrates.command, ["--check"])
        assert 'unavailable  docker is not installed  →  pip install "taxtui[docker]"' in checked.stdout

    def test_check_asks_each(self) -> None:
        done = CliRunner().invoke(substrates.command, ["--check", "--format", "json"])
        assert done.exit_code == 0
        row = next(row for row in json.loads(done.stdout) if row["name"] == "local")
        assert row["ok"] is True
        assert row["limits"]
        assert row["capabilities"]["server_side_deadline"] is False

    def test_a_substrate_that_cannot_be_built(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(reference: object) -> None:
            raise UsageError("local: no; do this")

        monkeypatch.setattr("taxtui.registry.build", refuse)
        rows = json.loads(CliRunner().invoke(substrates.command, ["--check", "--format", "json"]).stdout)
        assert {"name": "local", "ok": False, "detail": "no", "fix": "do this"} in rows


class TestSweep:
    def test_dry_run_then_for_real(self) -> None:
        name = asyncio.run(leave_one(1))
        told = CliRunner().invoke(sweep.command, ["-s", PLAIN, "--run", RUN, "--dry-run"])
        assert (told.exit_code, told.stdout.startswith(f"would remove local {name} ")) == (0, True)
        assert asyncio.run(found()) == [name]
        young = CliRunner().invoke(sweep.command, ["-s", PLAIN, "--run", RUN, "--older-than", "1h"])
        assert (young.exit_code, young.stdout) == (0, "")
        done = CliRunner().invoke(sweep.command, ["-s", PLAIN, "--run", RUN])
        assert (done.exit_code, done.stdout.startswith(f"removed local {name} ")) == (0, True)
        assert asyncio.run(found()) == []

    def test_what_is_left_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        name = asyncio.run(leave_one(2))
        sound = LocalSubstrate.reap

        async def fail(self: LocalSubstrate, found: Found) -> None:
            raise CleanupFailed("it would not go")

        monkeypatch.setattr(LocalSubstrate, "reap", fail)
        done = CliRunner().invoke(sweep.command, ["-s", PLAIN, "--run", RUN])
        assert done.exit_code == 1
        assert f"may still exist: local {name}" in done.stderr
        assert "it would not go" in done.stderr
        monkeypatch.setattr(LocalSubstrate, "reap", sound)
        assert CliRunner().invoke(sweep.command, ["-s", PLAIN, "--run", RUN]).exit_code == 0

    def test_a_run_that_is_going_on_is_spared_unless_named(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # this sweep takes all it finds: only our own
        ledger.write(Entry(run_id=RUN, substrates=(parse_substrate(PLAIN),), create_timeout_s=5, pid=os.getpid()))
        name = asyncio.run(leave_one(3))
        spared = CliRunner().invoke(sweep.command, ["-s", PLAIN])
        assert (spared.exit_code, spared.stdout) == (0, "")
        assert f"run {RUN} is going on (process {os.getpid()}), spared" in spared.stderr
        assert asyncio.run(found()) == [name]
        assert CliRunner().invoke(sweep.command, ["-s", PLAIN, "--run", RUN]).exit_code == 0
        assert asyncio.run(found()) == []

    def test_where_a_dead_run_had_been_is_looked_at_and_then_forgotten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ended = subprocess.Popen(["true"])
        ended.wait()
        monkeypatch.setattr("taxtui.registry.names", list)
        ledger.write(Entry(run_id=RUN, substrates=(parse_substrate(PLAIN),), create_timeout_s=5, pid=ended.pid))
        name = asyncio.run(leave_one(4))
        swept = CliRunner().invoke(sweep.command, ["--run", RUN])
        assert f"removed local {name}" in swept.stdout
        assert ledger.entries() == []

    def test_an_unavailable_substrate_is_fatal_only_if_named(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
        monkeypatch.setattr("taxtui.registry.names", lambda: ["docker", "local"])
        done = CliRunner().invoke(sweep.command, ["--run", "no-such-run"])
        assert done.exit_code == 0
        assert "not swept: docker: no docker daemon" in done.stderr
        named = CliRunner().invoke(sweep.command, ["--run", "no-such-run", "-s", "docker"])
        assert isinstance(named.exception, SubstrateUnavailable)
        assert named.exception.exit_code == 3

    def test_bad_arguments(self) -> None:
        for arguments in (["--older-than", "soon"], ["-s", "no-such"], ["-s", "local:isolation=magic"]):
            assert isinstance(CliRunner().invoke(sweep.command, arguments).exception, UsageError)
