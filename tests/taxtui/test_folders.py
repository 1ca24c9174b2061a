from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import platformdirs
import pytest
from platformdirs.macos import MacOS
from platformdirs.unix import Unix

from taxtui import folders
from taxtui.errors import UsageError

PLACES: list[tuple[str, Callable[[], Path], str, dict[type, str]]] = [
    (
        "XDG_DATA_HOME",
        folders.recordings,
        "taxtui/recordings",
        {Unix: ".local/share", MacOS: "Library/Application Support"},
    ),
    ("XDG_STATE_HOME", folders.ledger, "taxtui/runs", {Unix: ".local/state", MacOS: "Library/Application Support"}),
    ("XDG_CACHE_HOME", folders.cache, "taxtui", {Unix: ".cache", MacOS: "Library/Caches"}),
]


@pytest.fixture(params=[Unix, MacOS])
def platform(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type:
    """A platform, in an empty home that is also the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(platformdirs, "PlatformDirs", request.param)
    assert isinstance(request.param, type)
    return request.param


@pytest.mark.parametrize(("variable", "place", "within", "home"), PLACES)
def test_xdg_says_where_on_every_platform_else_the_platform_does(
    variable: str,
    place: Callable[[], Path],
    within: str,
    home: dict[type, str],
    platform: type,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "elsewhere"))
    assert place() == tmp_path / "elsewhere" / within
    for relative in ("elsewhere", ""):
        monkeypatch.setenv(variable, relative)
        assert place() == tmp_path / home[platform] / within


def test_a_folder_of_recordings_here_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("recordings").mkdir()
    assert folders.new_recording("r1") == Path("recordings/r1.msgpack")


@pytest.mark.parametrize("place", [folders.recordings, folders.ledger, folders.cache])
def test_a_user_without_a_home_is_told_in_one_line(
    place: Callable[[], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(path: str) -> str:
        return path

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.path.expanduser", unknown)
    for variable in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(UsageError, match=r"^could not determine the home directory .* set an absolute HOME or XDG"):
        place()


def test_run_ids_sort_by_time_and_differ() -> None:
    one, other = folders.new_run_id(), folders.new_run_id()
    assert one != other
    assert one[:13] <= other[:13]
