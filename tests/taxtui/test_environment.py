"""Folders, installed extras and missing packages: every environment gets a working path or one line with a fix."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import platformdirs
import pytest
from click.testing import CliRunner
from platformdirs.macos import MacOS
from platformdirs.unix import Unix

import taxtui
from taxtui import folders, installed
from taxtui.commands import doctor
from taxtui.sandboxes import registry

SUPPORT = "Library/Application Support"
PLACES: list[tuple[str, Callable[[], Path], str, str, str]] = [
    ("XDG_DATA_HOME", folders.recordings, "taxtui/recordings", ".local/share", SUPPORT),
    ("XDG_STATE_HOME", folders.ledger, "taxtui/runs", ".local/state", SUPPORT),
    ("XDG_CACHE_HOME", folders.cache, "taxtui", ".cache", "Library/Caches"),
]
"""Variable, folder, name within it, and the folder's place on Linux and macOS."""


@pytest.mark.parametrize(("variable", "folder", "within", "linux", "macos"), PLACES)
def test_an_absolute_xdg_variable_names_the_folder_else_the_platform_does(
    variable: str, folder: Callable[[], Path], within: str, linux: str, macos: str,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for platform, home in ((Unix, linux), (MacOS, macos)):
        monkeypatch.setattr(platformdirs, "PlatformDirs", platform)
        for value, place in ((str(tmp_path / "data"), "data"), ("data", home), ("", home)):
            monkeypatch.setenv(variable, value)
            assert folder() == tmp_path / place / within


FOLDER = {"url": "file:///home/me/my%20taxtui", "dir_info": {}}
EDITABLE = {"url": "file:///home/me/taxtui", "dir_info": {"editable": True}}
WHEEL = {"url": "file:///home/me/taxtui-9-py3-none-any.whl", "archive_info": {}}
GIT = {"url": "https://host/x.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}
BRANCH = {"url": "https://host/x.git", "vcs_info": {"vcs": "git", "commit_id": "abc", "requested_revision": "main"}}
METADATA = """\
Metadata-Version: 2.4
Name: taxtui
Version: 9
Provides-Extra: all
Provides-Extra: aws
Provides-Extra: test
Requires-Dist: msgspec
Requires-Dist: pytest; extra == 'all'
Requires-Dist: no-such-package>=1; extra == 'aws'
Requires-Dist: pytest>=1; extra == 'aws'
Requires-Dist: pytest>=1; extra == 'test'
"""
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put the metadata of a taxtui with the extras above before the metadata of the real one."""

    def write(origin: dict[str, Any] | None, receipt: str = "") -> None:
        about = tmp_path / "site" / "taxtui-9.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(METADATA)
        if origin is not None:
            (about / "direct_url.json").write_text(json.dumps(origin))
        if receipt:
            (tmp_path / receipt).touch()
        monkeypatch.syspath_prepend(about.parent)
        monkeypatch.setattr(sys, "prefix", str(tmp_path))
        monkeypatch.setattr(sys, "executable", "/v/bin/python")
        monkeypatch.setattr(installed, "find_spec", lambda module: True)

    return write


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        (EDITABLE, "-e '/home/me/taxtui[aws]'"),
        (FOLDER, "'/home/me/my taxtui[aws]'"),
        (WHEEL, "'taxtui[aws] @ file:///home/me/taxtui-9-py3-none-any.whl'"),
        (GIT, "'taxtui[aws] @ git+https://host/x.git@abc'"),
        (BRANCH, "'taxtui[aws] @ git+https://host/x.git@main'"),
        (None, "'taxtui[aws]'"),  # from an index
    ],
)
def test_pip_installs_an_extra_from_the_source_of_taxtui(
    install: Install, monkeypatch: pytest.MonkeyPatch, origin: dict[str, Any] | None, words: str
) -> None:
    install(origin)
    assert installed.extra_command("aws") == f"/v/bin/python -m pip install {words}"
    newer = f"python3.12 -m venv .venv-3.12 && .venv-3.12/bin/pip install {words}"
    assert installed.extra_command("aws", python="3.12") == newer
    monkeypatch.setattr(installed, "find_spec", lambda module: None)  # an environment of uv has no pip
    assert installed.extra_command("aws") == f"uv pip install --python /v/bin/python {words}"


@pytest.mark.parametrize(
    ("receipt", "tool", "python"),
    [("pipx_metadata.json", "pipx", "python3.12"), ("uv-receipt.toml", "uv tool", "3.12")],
)
def test_a_tool_keeps_its_installed_extras(install: Install, receipt: str, tool: str, python: str) -> None:
    install(FOLDER, receipt)
    words = "'/home/me/my taxtui[test,aws]'"
    assert installed.extra_command("aws") == f"{tool} install --force {words}"
    assert installed.extra_command("aws", python="3.12") == f"{tool} install --force --python {python} {words}"
    assert installed.extra_command("test") == f"{tool} install --force '/home/me/my taxtui[test]'"
    assert installed.missing_packages("aws") == ["no-such-package"]
    assert installed.missing_packages("test") == installed.missing_packages(None) == []


def test_one_module_has_the_commands_of_an_installation() -> None:
    package = Path(taxtui.__file__).parent
    texts = {path.relative_to(package).as_posix(): path.read_text() for path in package.rglob("*.py")}
    assert [name for name, text in texts.items() if "pip install" in text or "taxtui[" in text] == ["installed.py"]


def test_an_old_python_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "is_installed", lambda package: package != "harbor")
    monkeypatch.setattr(sys, "version_info", (3, 11, 7, "final", 0))
    fix = installed.extra_command("harbor", python="3.12")
    line = f"harbor: needs Python 3.12 or newer, and this is Python 3.11; {fix}"
    assert str(registry.needs_newer_python("harbor")) == line
    assert registry.needs_newer_python("docker") is None
    told = CliRunner().invoke(doctor.command, ["-s", "harbor"]).output
    assert "needs Python 3.12 or newer, and this is Python 3.11" in told
