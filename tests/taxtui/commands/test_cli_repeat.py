"""``taxtui run --repeat``: complete runs in processes of their own, one recording, one exit code, nothing left."""

from __future__ import annotations

import signal

import pytest

from costmodel.recording.events import Clock, Event, Header, RunFinished, TrialEnded, TrialStarted
from tests.support import waiting
from tests.support.command_line import PLAIN, Home, ended, events, last
from tests.support.worker_kills import workers

pytestmark = pytest.mark.processes

TINY = (*PLAIN, "-t", "T0", "-n", "1", "--trials", "2", "--warmup", "0", "--mode", "exec", "-o", "r.msgpack")


def of(home: Home, kind: type[Event]) -> list[Event]:
    return [event for event in events(home.cwd / "r.msgpack") if isinstance(event, kind)]


def test_repetitions_are_workers_of_one_recording(home: Home) -> None:
    done = home.run("run", *TINY, "--repeat", "3", "--progress", "json")
    assert done.code == 0, done.err
    assert done.out == "r.msgpack\n"
    clocks = dict.fromkeys(clock.worker for clock in of(home, Clock))  # type: ignore[union-attr]
    assert list(clocks) == [0, 1, 2, 3], "the run itself, and a worker for each repetition"
    starts = of(home, TrialStarted)
    assert [(start.trial, start.repetition) for start in starts] == [  # type: ignore[union-attr]
        (number, number // 2) for number in range(6)
    ]
    assert len(of(home, Header)) == 1
    assert last(home.cwd / "r.msgpack") == RunFinished("finished", {"ok": 6})
    assert '"planned": 6, "ended": 6, "ok": 6' in done.err
    assert '"repetition": 3, "repetitions": 3' in done.err
    home.assert_nothing_left()


def test_ctrl_c_between_runs_ends_it_at_once(home: Home) -> None:
    process = home.start("run", *TINY, "--repeat", "2", "--set", "gap=1h")

    def waits() -> bool:
        path = home.cwd / "r.msgpack"
        begun = path.exists() and path.stat().st_size > 0
        return begun and len(of(home, TrialEnded)) == 2 and not workers(home)

    waiting.block_until(waits, "the gap")
    process.send_signal(signal.SIGINT)
    done = ended(process)
    assert done.code == 130, done.err
    assert last(home.cwd / "r.msgpack") == RunFinished("interrupted", {"ok": 2})
    home.assert_nothing_left()


def test_what_cannot_begin_is_said_in_one_line(home: Home) -> None:
    (home.cwd / "r.msgpack").write_bytes(b"precious")
    done = home.run("run", *TINY, "--repeat", "2", "--progress", "none")
    assert (done.code, done.out) == (2, "")
    assert "r.msgpack exists; choose another name with -o" in done.complaint
    assert (home.cwd / "r.msgpack").read_bytes() == b"precious"
