"""What the exceptions of inspect_ai and of Harbor amount to."""

from __future__ import annotations

import pytest

from taxtui.substrates.harness.harbor import failure as of_harbor
from taxtui.substrates.harness.inspect import failure as of_inspect

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
    told = of_inspect.not_started(RuntimeError(said))
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
    told = of_harbor.not_started(RuntimeError(said))
    assert (told.problem, told.fix) == (problem, fix)


def test_a_command_that_was_not_carried_out() -> None:
    assert str(of_inspect.not_run(TimeoutError())) == "inspect_ai: TimeoutError"
    assert str(of_harbor.not_run(OSError("Too many open files"))) == "harbor: Too many open files"
