"""The command that adds an extra: for each way in which taxtui can have been installed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import taxtui
from taxtui import installed

FOLDER = {"url": "file:///home/me/my%20taxtui", "dir_info": {}}
EDITABLE = {"url": "file:///home/me/taxtui", "dir_info": {"editable": True}}
WHEEL = {"url": "file:///home/me/taxtui-9-py3-none-any.whl", "archive_info": {}}
GIT: dict[str, Any] = {"url": "https://host/x.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}
BRANCH = {**GIT, "vcs_info": {**GIT["vcs_info"], "requested_revision": "main"}}
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
    """Metadata of a taxtui with these extras, before those of the real one, in an environment of its own."""

    def written(origin: dict[str, Any] | None, receipt: str = "") -> None:
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

    return written


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        (EDITABLE, "-e '/home/me/taxtui[aws]'"),
        (FOLDER, "'/home/me/my taxtui[aws]'"),
        (WHEEL, "'taxtui[aws] @ file:///home/me/taxtui-9-py3-none-any.whl'"),
        (GIT, "'taxtui[aws] @ git+https://host/x.git@abc'"),
        (BRANCH, "'taxtui[aws] @ git+https://host/x.git@main'"),
        (None, "'taxtui[aws]'"),  # an index that has us
    ],
)
def test_pip_takes_it_from_where_taxtui_came_from(
    install: Install, monkeypatch: pytest.MonkeyPatch, origin: dict[str, Any] | None, words: str
) -> None:
    install(origin)
    assert installed.extra_command("aws") == f"/v/bin/python -m pip install {words}"
    assert installed.extra_command("aws", python="3.12") == (
        f"python3.12 -m venv .venv-3.12 && .venv-3.12/bin/pip install {words}"
    )
    monkeypatch.setattr(installed, "find_spec", lambda module: None)  # as uv makes an environment
    assert installed.extra_command("aws") == f"uv pip install --python /v/bin/python {words}"


@pytest.mark.parametrize(
    ("receipt", "tool", "python"),
    [("pipx_metadata.json", "pipx", "python3.12"), ("uv-receipt.toml", "uv tool", "3.12")],
)
def test_a_tool_keeps_the_extras_that_it_has(install: Install, receipt: str, tool: str, python: str) -> None:
    install(FOLDER, receipt)
    assert installed.extra_command("aws") == f"{tool} install --force '/home/me/my taxtui[test,aws]'"
    assert installed.extra_command("test") == f"{tool} install --force '/home/me/my taxtui[test]'"
    assert installed.extra_command("aws", python="3.12") == (
        f"{tool} install --force --python {python} '/home/me/my taxtui[test,aws]'"
    )


def test_what_an_extra_lacks(install: Install) -> None:
    install(FOLDER)
    assert installed.missing_packages("aws") == ["no-such-package"]
    assert installed.missing_packages("test") == installed.missing_packages(None) == []


def test_no_other_module_says_how_to_install_taxtui() -> None:
    package = Path(taxtui.__file__).parent
    texts = {path.relative_to(package).as_posix(): path.read_text() for path in package.rglob("*.py")}
    assert [name for name, text in texts.items() if "pip install" in text] == ["installed.py"]
    assert [name for name, text in texts.items() if "taxtui[" in text and name != "installed.py"] == []
