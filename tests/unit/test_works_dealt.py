"""Work dealt out to forked processes gives what it gives in one, whatever happens to them, and leaves none behind."""

from __future__ import annotations

import errno
import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from costmodel import Demand, project
from costmodel.recording.load import read_recordings
from costmodel.recording.parallel import dealing
from costmodel.recording.parallel.dealing import dealt
from costmodel.recording.parallel.scratch import Scratch
from tests.support.costmodel_files import S, trial, write
from tests.support.every_digit import every_digit


@pytest.fixture(autouse=True)
def _three_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in a program without threads; a worker of the test runner has one, which holds no lock."""
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    yield
    assert not multiprocessing.active_children()


def works(count: int, one: Callable[[int], object]) -> list[Callable[[], object]]:
    return [lambda place=place: one(place) for place in range(count)]  # type: ignore[misc]


def test_they_are_in_their_order_and_of_three_processes() -> None:
    parent = os.getpid()
    found = dealt(works(7, lambda place: (place, os.getpid())), dealing.WORTH_TRIALS)
    assert [place for place, _ in found] == list(range(7))  # type: ignore[misc]
    own = [pid for _, pid in found]  # type: ignore[misc]
    assert own == [own[place % 3] for place in range(7)]
    assert len(set(own)) == 3
    assert own[0] == parent


@pytest.mark.parametrize("why", ["few trials", "one work", "a thread", "no Linux"])
def test_where_it_is_not_worth_it_or_not_safe_none_is_forked(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if why == "a thread":
        monkeypatch.setattr(threading, "active_count", lambda: 2)
    if why == "no Linux":
        monkeypatch.setattr("sys.platform", "darwin")
    trials = dealing.WORTH_TRIALS - (why == "few trials")
    found = dealt(works(1 if why == "one work" else 4, lambda _: os.getpid()), trials)
    assert set(found) == {os.getpid()}


def test_what_is_forked_forks_no_more() -> None:
    found = dealt(works(2, lambda _: len(set(dealt(works(3, lambda _: os.getpid()), 10**9)))), 10**9)
    assert found == [3, 1]


def test_what_raises_there_raises_here() -> None:
    def one(place: int) -> int:
        if place == 1:
            raise ValueError(f"in {'the parent' if os.getpid() == parent else 'a fork'}")
        return place

    parent = os.getpid()
    with pytest.raises(ValueError, match="in the parent"):
        dealt(works(3, one), 10**9)


def test_a_process_that_is_killed_costs_nothing_but_time() -> None:
    def one(place: int) -> int:
        if place == 2 and os.getpid() != parent:
            signal.raise_signal(signal.SIGKILL)
        return place

    parent = os.getpid()
    assert dealt(works(5, one), 10**9) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("what", "most"), [("fork", 0), ("fork", 1), ("pipe", 0), ("pipe", 2)])
def test_what_no_process_can_be_made_for_is_done_here(what: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of processes, and that of descriptors."""
    real, calls = getattr(os, what), itertools.count()

    def limited() -> object:
        if next(calls) >= most:
            raise OSError(errno.EAGAIN if what == "fork" else errno.EMFILE, "no more")
        return real()

    monkeypatch.setattr(os, what, limited)
    found = dealt(works(7, lambda place: (place, os.getpid())), 10**9)
    assert [place for place, _ in found] == list(range(7))  # type: ignore[misc]
    assert len({pid for _, pid in found}) == (2 if (what, most) == ("fork", 1) else 1)  # type: ignore[misc]


def test_ctrl_c_is_answered_by_the_parent_alone() -> None:
    def one(place: int) -> object:
        if place == 0:
            raise KeyboardInterrupt
        return signal.getsignal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        dealt(works(2, one), 10**9)
    assert dealt(works(2, lambda _: signal.getsignal(signal.SIGINT)), 10**9)[1] == signal.SIG_IGN


def test_rows_are_the_same_by_however_many_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [
        write(
            tmp_path / f"{run}", [trial(n, create=(n % 7 + 1) * S, block=n // 4) for n in range(40)], run_id=f"r{run}"
        )
        for run in range(4)
    ]
    demand = Demand(trajectories=1000, workers=10)
    recordings = read_recordings(paths, processes=1)
    alone = project(recordings, demand)
    monkeypatch.setattr(dealing, "WORTH_TRIALS", 0)
    assert every_digit(project(recordings, demand)) == every_digit(alone)


def test_bytes_that_are_put_away_come_back_also_where_the_disk_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = Scratch()
    first, second = scratch.put(b"first"), scratch.put(b"the second")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        third = scratch.put(b"third")
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", lambda file, data, place: len(data) - 1)
        fourth = scratch.put(b"fourth")
    assert [one() for one in (first, second, third, fourth, first)] == [
        b"first",
        b"the second",
        b"third",
        b"fourth",
        b"first",
    ]
