"""What containers without a daemon are made from, and what is said where that cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from taxtui.errors import CleanupFailed, CreateFailed, ExecFailed, SubstrateUnavailable, UsageError
from taxtui.substrates.machine.nspawn import failure as nspawn
from taxtui.substrates.machine.options import MachineOptions
from taxtui.substrates.machine.root import OUR_FOLDER, find_root
from taxtui.substrates.machine.runsc import failure as runsc
from taxtui.substrates.machine.store import Store
from taxtui.workloads import unpacked
from taxtui.workloads.image import DIGEST


def _files(folder: Path) -> None:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "sh").touch()


def test_an_unpacked_image_says_what_it_is(tmp_path: Path) -> None:
    _files(tmp_path / unpacked.FILES)
    about = {
        "image": "sha256:1",
        "image_bytes": 5,
        "fixtures": DIGEST,
        "env": {"PATH": "/bin", "HOME": "/home/agent"},
        "user": "10001",
        "folder": "/home/agent/work",
    }
    (tmp_path / unpacked.ABOUT).write_text(json.dumps(about))
    root = find_root("nspawn", MachineOptions(root=str(tmp_path)))
    assert (root.uid, root.gid, root.folder, root.image_bytes) == (10001, 10001, "/home/agent/work", 5)
    assert root.holds_fixtures
    assert root.env == {"PATH": "/bin", "LANG": "C.UTF-8", "HOME": "/home/agent"}
    assert (root.has("sh"), root.has("bash")) == (True, False)
    assert find_root("nspawn", MachineOptions(root=str(tmp_path), user="7:8")).gid == 8


def test_a_root_file_system_of_ones_own_has_nobody_in_our_folder(tmp_path: Path) -> None:
    _files(tmp_path)
    root = find_root("runsc", MachineOptions(root=str(tmp_path)))
    assert (root.uid, root.gid, root.folder, root.env["HOME"]) == (65534, 65534, OUR_FOLDER, OUR_FOLDER)
    assert not root.holds_fixtures


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"root": "/nowhere"}, "/nowhere is no root file system"),
        ({"user": "agent"}, "user=agent is no UID or UID:GID; write user=1000:1000"),
        ({}, "no image is unpacked; taxtui image build, then taxtui image unpack"),
    ],
)
def test_what_is_missing_is_said_with_what_helps(
    options: dict[str, str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(SubstrateUnavailable, match=words):
        find_root("runsc", MachineOptions(**options))


def test_an_existing_folder_is_not_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(UsageError, match="exists; remove it, or name another folder"):
        unpacked.unpack(to=tmp_path)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(UsageError, match="only root can keep the owners"):
        unpacked.unpack(to=tmp_path)


def test_a_container_whose_record_was_never_written_is_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = Store("nspawn")
    (store.folder / "taxtui-r1-3").mkdir()
    (found,) = store.found(None)
    assert (found.name, found.run_id, found.deadline_unix_s) == ("taxtui-r1-3", "r1", None)
    assert store.found("r2") == []
    store.remove(found.name)
    store.remove(found.name)
    assert store.found("r1") == []


def test_the_last_words_become_the_error() -> None:
    told = nspawn.not_started(b"Spawning container\nFailed to open /x: No such file or directory\n")
    assert (type(told), str(told)) == (
        CreateFailed,
        "systemd-nspawn did not start it: Failed to open /x: No such file or directory",
    )
    assert str(nspawn.not_started(b"")) == "systemd-nspawn did not start it: it said nothing"
    assert str(runsc.not_started(128, b"")) == "runsc did not start it: exit 128"
    assert (type(runsc.not_killed(1, b"a\nb")), str(runsc.not_killed(1, b"a\nb")).endswith("b")) == (ExecFailed, True)
    assert (type(runsc.not_removed("s", 1, b"busy")), str(runsc.not_removed("s", 1, b"busy"))) == (
        CleanupFailed,
        "s: runsc cannot delete it: busy",
    )
