"""One that cannot be removed keeps no other from being tried, and Ctrl-C none from being guarded."""

from __future__ import annotations

import errno
import signal

import pytest
from click.testing import CliRunner

from taxtui.commands import clean as sweep_command
from taxtui.errors import CleanupFailed, SubstrateUnavailable, TaxtuiError
from taxtui.runner.cleanup import watchdog
from taxtui.runner.cleanup.ledger import LedgerEntry
from taxtui.runner.cleanup.reaping import reap_all
from taxtui.sandboxes.fake import FakeSubstrate
from taxtui.sandboxes.protocol import Found

RUN = "20260101t000000z-00000000"


@pytest.fixture(params=[CleanupFailed("it is stuck"), KeyError("a bug of the adapter")], ids=["refused", "bug"])
def stuck(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> FakeSubstrate:
    """Ten sandboxes, of which the first cannot be removed."""
    fake = FakeSubstrate()
    fake.alive = {f"taxtui-{RUN}-{number}": RUN for number in range(10)}
    real = fake.reap

    async def reap(found: Found) -> None:
        if found.name.endswith("-0"):
            raise request.param
        await real(found)

    monkeypatch.setattr(fake, "reap", reap)
    return fake


async def test_all_are_tried_and_what_is_left_is_told(stuck: FakeSubstrate) -> None:
    gone: list[Found] = []
    left = await reap_all(stuck, await stuck.find(RUN), reaped=gone.append)
    assert [each.sandbox.name for each in left] == list(stuck.alive) == [f"taxtui-{RUN}-0"]
    assert isinstance(left[0].error, CleanupFailed | KeyError)
    assert {found.name for found in gone} == {f"taxtui-{RUN}-{number}" for number in range(1, 10)}


def test_the_command_s(stuck: FakeSubstrate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taxtui.sandboxes.registry.build", lambda reference: stuck)
    done = CliRunner().invoke(sweep_command.command, ["-s", "local", "--run", RUN, "--force"])
    assert done.exit_code == 1
    assert list(stuck.alive) == [f"taxtui-{RUN}-0"]
    assert done.stdout.count("removed fake") == 9
    assert f"may still exist: fake taxtui-{RUN}-0" in done.stderr


def test_a_substrate_that_cannot_be_used_keeps_no_other_from_being_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    fake, broken = FakeSubstrate(), FakeSubstrate()
    fake.alive = {"here": RUN}

    async def find(run_id: str | None = None) -> list[Found]:
        raise SubstrateUnavailable("the API is down")

    monkeypatch.setattr(broken, "find", find)
    built = [broken, fake]
    monkeypatch.setattr("taxtui.sandboxes.registry.build", lambda reference: built.pop(0))
    done = CliRunner().invoke(sweep_command.command, ["-s", "docker", "-s", "local", "--run", RUN, "--force"])
    assert isinstance(done.exception, SubstrateUnavailable)
    assert fake.alive == {}


def test_an_id_that_nothing_is_found_of_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a slip of the pen, which would look like success."""
    fake = FakeSubstrate()
    monkeypatch.setattr("taxtui.sandboxes.registry.build", lambda reference: fake)
    done = CliRunner().invoke(sweep_command.command, ["-s", "local", "--run", "unknown", "--force"])
    assert done.exit_code == 0
    assert "no sandbox of run 'unknown' was found, and this user's ledger knows no such run" in done.stderr
    assert CliRunner().invoke(sweep_command.command, ["-s", "local"]).stderr == "taxtui: no sandbox was found\n"


def test_ctrl_c_is_held_back_while_the_watchdog_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the process has left our session, Ctrl-C would end it, and the run with it."""
    masks: list[set[int]] = []

    def popen(*_: object, **__: object) -> None:
        masks.append(set(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(watchdog.subprocess, "Popen", popen)
    entry = LedgerEntry(run_id=RUN, substrates=(), create_timeout_s=1.0)
    with pytest.raises(TaxtuiError):
        watchdog.Watchdog(entry)
    assert [signal.SIGINT in mask for mask in masks] == [True]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
