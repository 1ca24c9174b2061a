"""Errors for the exceptions of inspect_ai, Harbor and SWE-ReX."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from taxtui.errors import ExecFailed, Throttled
from taxtui.sandboxes.protocol import Availability
from taxtui.substrates.harness import harbor_environment
from taxtui.substrates.harness.failure import not_run, not_started

POOLS = "could not find an available, non-overlapping IPv4 address pool among the defaults to assign to the network"
FEWER = "fewer at once, or more address pools for docker"


@pytest.mark.parametrize(
    ("said", "problem", "fix"),
    [
        (
            "No services started.\nCompose up stderr:  default\nError response from daemon: No such image: x:1\n",
            "inspect_ai did not start it: Error response from daemon: No such image: x:1",
            "taxtui setup",
        ),
        (f"No services started.\n{POOLS}", f"inspect_ai did not start it: {POOLS}", FEWER),
        ("", "inspect_ai did not start it: RuntimeError", ""),
    ],
)
def test_what_inspect_did_not_start(said: str, problem: str, fix: str) -> None:
    told = not_started("inspect_ai", RuntimeError(said))
    assert (told.problem, told.fix) == (problem, fix)


@pytest.mark.parametrize(
    ("said", "problem", "fix"),
    [
        (
            "Docker compose command failed for environment taxtui. Command: docker compose up. Return code: 1. "
            f"Stdout:  Network x-default  Creating\nfailed to create network x-default: {POOLS}\n. Stderr: None. ",
            f"harbor did not start it: failed to create network x-default: {POOLS}",
            FEWER,
        ),
        (
            "Docker compose command failed for environment taxtui. Command: docker compose up. Return code: 125. "
            "Stdout: unknown shorthand flag: 'p' in -p\n. Stderr: None. ",
            "harbor did not start it: unknown shorthand flag: 'p' in -p",
            "install docker's compose plugin, 2.21 or newer",
        ),
        ("no such file", "harbor did not start it: no such file", ""),
    ],
)
def test_what_harbor_did_not_start(said: str, problem: str, fix: str) -> None:
    told = not_started("harbor", RuntimeError(said))
    assert (told.problem, told.fix) == (problem, fix)


@pytest.mark.parametrize(
    ("said", "problem", "fix"),
    [
        (
            "Container process terminated.\nstdout:\n\nstderr:\n/bin/sh: 1: swerex-remote: not found\n",
            "swe-rex did not start it: /bin/sh: 1: swerex-remote: not found",
            "install swe-rex in the image: docs/substrates/harnesses.md",
        ),
        (
            "docker: Error response from daemon: Bind for 0.0.0.0:1 failed: port is already allocated",
            "swe-rex did not start it: docker: Error response from daemon: Bind for 0.0.0.0:1 failed: "
            "port is already allocated",
            "another program took the port first; try again",
        ),
        ("something else", "swe-rex did not start it: something else", ""),
        ("", "swe-rex did not start it: RuntimeError", ""),
    ],
)
def test_what_swerex_did_not_start(said: str, problem: str, fix: str) -> None:
    told = not_started("swe-rex", RuntimeError(said))
    assert (told.problem, told.fix) == (problem, fix)


def test_a_command_that_was_not_carried_out() -> None:
    assert str(not_run("inspect_ai", TimeoutError())) == "inspect_ai: TimeoutError"
    assert str(not_run("harbor", OSError("Too many open files"))) == "harbor: Too many open files"
    assert str(not_run("swe-rex", TimeoutError())) == "swe-rex: TimeoutError"
    assert str(not_run("swe-rex", OSError("Server disconnected"))) == "swe-rex: Server disconnected"


def test_a_link_and_a_group_of_exceptions_are_not_the_reason() -> None:
    status = RuntimeError("Client error '401' for url 'x'\nFor more information check: https://example.org/401")
    assert (
        str(not_run("harbor", ExceptionGroup("unhandled errors", [status]))) == "harbor: Client error '401' for url 'x'"
    )


class RateLimitError(Exception):
    """As SDKs name it."""


def test_a_refusal_for_the_rate_is_a_throttle() -> None:
    by_status, behind, other = RuntimeError("slow down"), RuntimeError("retries exhausted"), RuntimeError("no")
    by_status.status_code = 429  # type: ignore[attr-defined]
    behind.__cause__ = RateLimitError("429")
    for error in (by_status, behind, RateLimitError("slow down")):
        assert isinstance(not_started("harbor", error), Throttled)
        assert isinstance(not_run("harbor", error), Throttled)
    assert isinstance(not_run("harbor", other), ExecFailed)


class MissingExtraError(ImportError):
    """As Harbor has it."""


@pytest.mark.parametrize(
    ("error", "problem", "fix"),
    [
        (
            SystemExit("E2B requires E2B_API_KEY to be set. Please set this environment variable and try again."),
            "E2B requires E2B_API_KEY to be set",
            "Please set this environment variable and try again",
        ),
        (SystemExit("Runta requires RUNTA_TOKEN or RUNTA_CONFIG."), "Runta requires RUNTA_TOKEN or RUNTA_CONFIG", ""),
        (
            MissingExtraError("The 'x' package is required.\nInstall it with:\n  pip install 'harbor[x]'"),
            "the SDK of x is not installed",
            "install the Python package harbor[x]",
        ),
        (
            ImportError("No module named 'kubernetes'", name="kubernetes"),
            "the SDK of x is not installed",
            "install the Python package 'kubernetes'",
        ),
        (
            TypeError("X.__init__() missing 2 required positional arguments: 'region' and 'zone'"),
            "x requires the settings 'region' and 'zone'",
            "harbor:environment=x,settings=FILE.json, a JSON object of settings",
        ),
        (ValueError(), "ValueError", ""),
    ],
)
def test_an_environment_of_harbors_that_cannot_be_used(error: BaseException, problem: str, fix: str) -> None:
    assert harbor_environment._refused("x", error) == Availability(ok=False, detail=problem, fix=fix)


def test_credentials_that_harbor_does_not_check(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PRIME_API_KEY", raising=False)
    needs = harbor_environment._UNCHECKED["prime"]
    refused = harbor_environment._unmet("prime", needs)
    assert refused is not None
    assert refused.fix == "set PRIME_API_KEY, or write ~/.prime/config.json"
    (tmp_path / ".prime").mkdir()
    (tmp_path / ".prime" / "config.json").touch()
    assert harbor_environment._unmet("prime", needs) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    programs = harbor_environment._unmet("singularity", harbor_environment._UNCHECKED["singularity"])
    assert programs is not None
    assert programs.fix == "install singularity or apptainer"


def test_the_limits_in_force_are_those_that_the_environment_declares() -> None:
    def declared(**true: bool) -> SimpleNamespace:
        names = ("cpu_limit", "memory_limit", "cpu_request", "memory_request")
        return SimpleNamespace(**{name: true.get(name, False) for name in names})

    enforcement = harbor_environment._enforcement
    assert enforcement(declared(cpu_limit=True, memory_limit=True)) == "as asked"
    assert enforcement(declared(cpu_request=True, memory_request=True)) == "requested"
    assert enforcement(declared(cpu_limit=True)) == "none"
    assert enforcement(None) == "unknown"
