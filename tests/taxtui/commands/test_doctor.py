"""``taxtui doctor``: facts without names, and canaries with exit codes, limits and nothing left."""

from __future__ import annotations

import asyncio
import getpass
import json
import platform
import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from taxtui.commands import doctor_substrates
from taxtui.commands.doctor_canary import CanaryResult, exit_code
from taxtui.plan.spec import SubstrateRef
from taxtui.runner.cleanup import ledger
from taxtui.runner.cleanup.ledger import LedgerEntry
from tests.support import paced_fake
from tests.support.command_line import PLAIN, TAXTUI, Home, ended, printed
from tests.support.standins.kubernetes_pool_standin import ACQUIRE, PoolStandin
from tests.support.waiting import block_until

pytestmark = pytest.mark.processes
RUN = "20250101t000000z-00000000"


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The answer of every substrate; a test may change it."""
    row: dict[str, Any] = {"ok": False, "detail": "no permission for 'jsmith' at https://api.acme.example", "fix": "x"}

    async def checked(references: Sequence[SubstrateRef], **_: bool) -> list[dict[str, Any]]:
        return [{"name": str(reference)} | row for reference in references]

    monkeypatch.setattr(doctor_substrates, "checked", checked)
    return row


def test_it_names_no_person_no_machine_and_no_folder(answer: dict[str, Any]) -> None:
    output = printed("doctor")
    for part in ("versions", "limits", "clocks", "isolation", "leftovers", "substrates"):
        assert f"\n{part}\n" in f"\n{output}"
    assert platform.python_version() in output
    assert "unavailable: no permission for '<name>' at <url>; fix it with: taxtui doctor -s docker" in output
    for secret in (str(Path.home()), socket.gethostname(), f"{getpass.getuser()}@", "jsmith", "acme"):
        assert secret not in output
    answer.update(ok=True, detail="ready, 20.10.24+dfsg1, runc", fix="")
    assert " ready: 20.10.24+dfsg1, runc\n" in printed("doctor")


def test_it_lists_remains_of_earlier_runs(answer: dict[str, Any]) -> None:
    ledger.write(LedgerEntry(run_id=RUN, substrates=(), create_timeout_s=1.0))
    rows = json.loads(printed("doctor", "--format", "json"))
    assert {row["name"]: row["value"] for row in rows if row["part"] == "leftovers"} == {
        "runs in progress": "0",
        f"run {RUN}": f"not cleaned; taxtui clean --run {RUN} --force --dry-run",
    }
    ledger.remove(RUN)


@pytest.fixture
def fake(home: Home, tmp_path: Path) -> Home:
    home.env |= paced_fake.environment(tmp_path / "installed")
    return home


def test_a_canary_within_its_limits_prints_each_time_and_leaves_nothing(home: Home) -> None:
    done = home.run("doctor", *PLAIN, "--canary", "--max-start", "1h", "--max-exec", "1h", "--max-release", "1h")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("local:isolation=plain: ok: start ")
    assert "median of 20" in done.out
    assert not list((home.folder / "data").rglob("*.msgpack"))


def test_a_step_above_its_limit_is_exit_code_5(home: Home) -> None:
    done = home.run("doctor", *PLAIN, "--canary", "--max-exec", "1ns", "--format", "json")
    assert done.code == 5
    (row,) = json.loads(done.out)
    assert row["state"] == "SLOW"
    assert "is above 1 ns" in row["error"]
    assert min(row["start_ns"], row["exec_ns"], row["release_ns"]) > 1


@pytest.mark.parametrize("acquire", ["create", ACQUIRE])
async def test_a_canary_of_a_cluster_creates_or_claims_and_leaves_no_pod(home: Home, acquire: str) -> None:
    async with PoolStandin() as cluster:
        await cluster.filled()
        words = ("doctor", "-s", f"kubernetes:kubeconfig={cluster.kubeconfig}", "--canary", "--acquire", acquire)
        process = await asyncio.create_subprocess_exec(
            *TAXTUI, *words, "--max-start", "1h", "--format", "json", env=home.env, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        assert process.returncode == 0, out
        (row,) = json.loads(out)
        assert row["state"] == "ok"
        assert min(row["start_ns"], row["exec_ns"]) > 0
        assert cluster.left() == (0, 0)
    assert home.ledger() == []


def test_a_sandbox_that_fails_is_exit_code_1_and_no_substrate_3_with_the_reason(fake: Home) -> None:
    done = fake.run("doctor", "-s", "paced", *PLAIN, "--canary", "--max-start", "1h")
    failed, local = done.out.splitlines()  # the fake has no shell: the tier's commands prove nothing
    assert done.code == 1
    assert failed.startswith("paced: FAILED: ")
    assert local.startswith("local:isolation=plain: ok: ")
    assert fake.ledger() == []
    assert "unavailable: " in printed("doctor", "-s", "docker:host=unix:///nowhere.sock", "--canary", code=3)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_canary_with_130_and_a_clean_ledger(fake: Home, number: int) -> None:
    process = fake.start("doctor", "-s", "paced:exec_s=600", *PLAIN, "--canary")
    block_until(fake.ledger, "the canary has begun")
    process.send_signal(number)
    done = ended(process)
    assert (done.code, done.out) == (130, "paced:exec_s=600: interrupted\n")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--canary",), "name its substrate: -s kubernetes --canary"),
        ((*PLAIN, "--max-exec", "5ms"), "--max-exec is for a canary; add --canary"),
        ((*PLAIN, "--canary", "--probe"), "give one of them"),
        ((*PLAIN, "--canary", "--acquire", "pool:warm"), "cannot acquire sandboxes by 'pool'; it can: create, reset"),
    ],
)
def test_bad_options_are_one_line_and_create_nothing(options: tuple[str, ...], complaint: str) -> None:
    assert complaint in printed("doctor", *options, code=2)


def test_a_failure_precedes_a_limit_and_an_interruption_precedes_all() -> None:
    for step, word in (("start", "start"), ("exec", "command"), ("release", "release")):
        slow = CanaryResult("a", start_ns=5, exec_ns=5, release_ns=5).checked({step: 4})
        assert (slow.exit_code, slow.error) == (5, f"{word} 5 ns is above 4 ns")
    failed = CanaryResult("b", error="lost", exit_code=1).checked({"start": 4})
    assert (failed.exit_code, failed.error) == (1, "lost")
    assert exit_code([]) == exit_code([CanaryResult("c")]) == 0
    assert exit_code([slow, failed]) == 5
    assert exit_code([slow, CanaryResult("d", exit_code=130)]) == 130
