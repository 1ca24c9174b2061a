"""Errors for the exceptions of inspect_ai, Harbor and SWE-ReX."""

from __future__ import annotations

import pytest

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
