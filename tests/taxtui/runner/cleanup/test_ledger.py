from __future__ import annotations

import errno
import os
import stat
import subprocess
from pathlib import Path
from unittest.mock import Mock

import msgspec
import pytest

from taxtui import folders
from taxtui.errors import TaxtuiError
from taxtui.plan.spec import SubstrateRef
from taxtui.runner.cleanup import ledger
from taxtui.runner.cleanup.ledger import LedgerEntry, TrialShare


def entry(run_id: str = "r1") -> LedgerEntry:
    ref = SubstrateRef(name="ecs", options={"cluster": "arn:aws:ecs:eu-west-1:123456789012:cluster/x"})
    return LedgerEntry(run_id=run_id, substrates=(ref,), create_timeout_s=300.0)


def test_what_is_written_is_read_by_its_owner_only(monkeypatch: pytest.MonkeyPatch) -> None:
    path = ledger.write(entry())
    assert ledger.read(path) == entry()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    with pytest.raises(TaxtuiError, match=r"cannot write /dev/null/.*: Not a directory; set XDG_STATE_HOME"):
        ledger.write(entry())


def test_entries_come_oldest_first_and_damaged_ones_are_passed_over() -> None:
    for run_id in ("20260102t0", "20260101t0", "r"):
        path = ledger.write(entry(run_id))
    (folders.ledger() / "half.json").write_bytes(b'{"run_id": "x"')
    (folders.ledger() / "folder.json").mkdir()
    path.with_name("x.json").write_bytes(path.read_bytes().replace(b'"r"', b'"../../x"'))  # names something else
    assert [found.run_id for found in ledger.entries()] == ["20260101t0", "20260102t0", "r"]


def test_forgetting_a_run_twice_is_fine_and_one_that_cannot_be_deleted_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    path = ledger.write(entry())
    with monkeypatch.context() as read_only:
        read_only.setattr(Path, "unlink", Mock(side_effect=OSError(errno.EROFS, os.strerror(errno.EROFS))))
        ledger.remove("r1")
    assert [found.run_id for found in ledger.entries()] == ["r1"], "for a later sweep"
    ledger.remove("r1")
    ledger.remove("r1")
    assert not path.exists()
    assert ledger.entries() == []
    with pytest.raises(OSError, match="No such file"):
        ledger.read(path)
    path.write_text("[]")
    with pytest.raises(msgspec.DecodeError):
        ledger.read(path)


def test_a_run_is_going_on_as_long_as_its_runner_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    for run_id, pid in (("alive", os.getpid()), ("ended", ended.pid), ("of-an-old-version", 0)):
        ledger.write(msgspec.structs.replace(entry(run_id), pid=pid))
    assert ledger.live_runs() == {"alive": os.getpid()}

    monkeypatch.setattr("os.kill", Mock(side_effect=PermissionError))  # another user's
    assert ledger.live_runs() == {"alive": os.getpid(), "ended": ended.pid}


@pytest.mark.skipif(not ledger.born(os.getpid()), reason="this machine does not tell when a process was born")
def test_a_process_id_that_was_used_again_is_not_the_runner() -> None:
    ours = ledger.born(os.getpid())
    for run_id, born in (("ours", ours), ("before-us", f"{ours}0"), ("of-an-old-version", "")):
        ledger.write(msgspec.structs.replace(entry(run_id), pid=os.getpid(), born=born))
    assert set(ledger.live_runs()) == {"ours", "of-an-old-version"}
    assert ledger.unswept_runs("ours") == ["before-us"]
    assert ledger.unswept_runs("before-us") == []


def test_an_entry_covers_the_sandboxes_of_its_own_parts_of_the_run() -> None:
    first, copy = entry(), msgspec.structs.replace(entry(), parts=("3f2a",))
    resumed = msgspec.structs.replace(entry(), parts=("b00c", ""))
    names = [ledger.sandbox_name("r1", part, 17) for part in ("", "3f2a", "b00c")]
    assert names == ["taxtui-r1-17", "taxtui-r1-3f2ax17", "taxtui-r1-b00cx17"]
    assert [list(map(each.covers, names)) for each in (first, copy, resumed)] == [
        [True, False, False],
        [False, True, False],
        [True, False, True],
    ]
    share = msgspec.structs.replace(copy, share=TrialShare(1, 2))
    assert [share.covers(ledger.sandbox_name("r1", "3f2a", trial)) for trial in (16, 17)] == [False, True]
    assert first.covers("a name of another form"), "as before there were parts"
