"""What ``taxtui doctor`` prints can be pasted anywhere, and says what helps."""

from __future__ import annotations

import getpass
import json
import platform
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from taxtui.commands import doctor, substrates
from taxtui.plan.spec import SubstrateRef
from taxtui.runner.cleanup import ledger
from taxtui.runner.cleanup.ledger import LedgerEntry

RUN = "20250101t000000z-00000000"


@pytest.fixture(autouse=True)
def _asked_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    async def checked(refs: Sequence[SubstrateRef], **_: bool) -> list[dict[str, Any]]:
        said = "no permission for 'jsmith' at https://api.acme.example/v1"
        return [{"name": str(ref), "ok": False, "detail": said, "fix": "set KEY"} for ref in refs]

    monkeypatch.setattr(substrates, "checked", checked)


def test_it_names_no_person_no_machine_and_no_folder() -> None:
    done = CliRunner().invoke(doctor.command)
    assert done.exit_code == 0, done.output
    for part in ("versions", "limits", "clocks", "isolation", "leftovers", "substrates"):
        assert f"\n{part}\n" in f"\n{done.output}"
    assert platform.python_version() in done.output
    assert "unavailable: no permission for '<name>' at <url>; fix it with: taxtui doctor -s docker" in done.output
    for secret in (str(Path.home()), socket.gethostname(), f"{getpass.getuser()}@", "jsmith", "acme"):
        assert secret not in done.output


def test_it_tells_what_earlier_runs_left() -> None:
    ledger.write(LedgerEntry(run_id=RUN, substrates=(), create_timeout_s=1.0))
    rows = json.loads(CliRunner().invoke(doctor.command, ["--format", "json"]).output)
    told = {row["name"]: row["value"] for row in rows if row["part"] == "leftovers"}
    assert told == {
        "runs in progress": "0",
        f"run {RUN}": f"not cleaned; taxtui clean --run {RUN} --force --dry-run",
    }
    ledger.remove(RUN)


def test_a_substrate_that_is_ready_is_said_to_be_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def checked(refs: Sequence[SubstrateRef], **_: bool) -> list[dict[str, Any]]:
        return [{"name": str(ref), "ok": True, "detail": "ready, 1.0", "fix": ""} for ref in refs]

    monkeypatch.setattr(substrates, "checked", checked)
    output = CliRunner().invoke(doctor.command).output
    assert "ready: 1.0" in output
    assert "ready, " not in output
