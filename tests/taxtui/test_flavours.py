"""What a substrate without options stands for in a sweep, and what is said of one that this Python cannot have."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from taxtui import installed
from taxtui.commands import clean, doctor
from taxtui.errors import SubstrateUnavailable
from taxtui.plan.notation import parse_substrate
from taxtui.sandboxes import registry


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("inspect", ["inspect:environment=local", "inspect:environment=docker"]),
        ("inspect:environment=docker", ["inspect:environment=docker"]),
        ("local", ["local"]),
    ],
)
def test_every_place_where_a_sandbox_may_stand(text: str, places: list[str]) -> None:
    pytest.importorskip("inspect_ai")
    assert [str(each) for each in registry.flavours(parse_substrate(text))] == places


def test_what_a_sweep_did_not_look_at_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai")
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(clean.command, ["-s", "inspect", "--dry-run"])
    words = "taxtui: not searched: inspect: docker does not answer: the program docker is not installed"
    assert done.exit_code == 0
    assert f"{words}; install or start docker" in done.output.splitlines()  # others measure on this machine too
    named = CliRunner().invoke(clean.command, ["-s", "inspect:environment=docker", "--dry-run"])
    assert isinstance(named.exception, SubstrateUnavailable)


def test_a_python_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "is_installed", lambda package: package != "harbor")
    monkeypatch.setattr(sys, "version_info", (3, 11, 7, "final", 0))
    told = registry.needs_newer_python("harbor")
    assert told is not None
    fix = installed.extra_command("harbor", python="3.12")
    assert str(told) == f"harbor: needs Python 3.12 or newer, and this is Python 3.11; {fix}"
    assert registry.needs_newer_python("docker") is None
    done = CliRunner().invoke(doctor.command, ["-s", "harbor"])
    assert "needs Python 3.12 or newer, and this is Python 3.11" in done.output
    monkeypatch.setattr(sys, "version_info", (3, 12, 0, "final", 0))
    assert registry.needs_newer_python("harbor") is None
