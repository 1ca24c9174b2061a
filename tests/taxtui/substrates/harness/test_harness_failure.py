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
NO_IMAGE = "Error response from daemon: No such image: x:1"
COMPOSE = "Docker compose command failed for environment taxtui. Command: docker compose up. Return code: 1. Stdout: "
SETUP = "taxtui setup, or docs/substrates/harnesses.md for SWE-ReX"


@pytest.mark.parametrize(
    ("package", "message", "problem", "fix"),
    [
        ("inspect_ai", f"No services started.\nCompose up stderr:  default\n{NO_IMAGE}\n", NO_IMAGE, SETUP),
        ("inspect_ai", f"No services started.\n{POOLS}", POOLS, FEWER),
        ("inspect_ai", "", "RuntimeError", ""),
        ("harbor", f"{COMPOSE} Network x  Creating\nfailed: {POOLS}\n. Stderr: None. ", f"failed: {POOLS}", FEWER),
        ("harbor", "no such file", "no such file", ""),
        (
            "swe-rex",
            "Container process terminated.\nstdout:\n\nstderr:\n/bin/sh: 1: swerex-remote: not found\n",
            "/bin/sh: 1: swerex-remote: not found",
            "install swe-rex in the image: docs/substrates/harnesses.md",
        ),
        (
            "swe-rex",
            "stderr:\n/bin/sh: line 1: swerex-remote: command not found\n",
            "/bin/sh: line 1: swerex-remote: command not found",
            "install swe-rex in the image: docs/substrates/harnesses.md",
        ),
    ],
)
def test_a_failed_start_has_the_reason_and_a_fix(package: str, message: str, problem: str, fix: str) -> None:
    error = not_started(package, RuntimeError(message))
    assert (error.problem, error.fix) == (f"{package} did not start it: {problem}", fix)


def test_the_reason_of_a_failed_command_is_one_line() -> None:
    assert str(not_run("inspect_ai", TimeoutError())) == "inspect_ai: TimeoutError"
    status = RuntimeError("Client error '401' for url 'x'\nFor more information check: https://example.org/401")
    group = ExceptionGroup("unhandled errors", [status])
    assert str(not_run("harbor", group)) == "harbor: Client error '401' for url 'x'"


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
    with monkeypatch.context() as homeless:
        homeless.delenv("HOME")
        homeless.setattr("pwd.getpwuid", lambda _: {}[0])
        assert harbor_environment._unmet("prime", needs) is not None
        homeless.setenv("PRIME_API_KEY", "key")
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
