"""What goes wrong around the screens: names made of markup, folders that cannot be used, answers that come too late."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taxtui import shipped
from taxtui.errors import RecordingError, UsageError
from taxtui.live.histogram import LogHistogram
from taxtui.tui import units
from taxtui.tui.background import Newest
from taxtui.tui.colours import SUBSTRATES
from taxtui.tui.live.chart import outlines
from taxtui.tui.projection.screen import ProjectionScreen
from taxtui.tui.section_table import AnswerTable
from tests.taxtui.tui.driving import SIZE, app, looking_at, setup, until
from tests.taxtui.tui.story import record


class Pump:
    """Keeps what would be delivered as messages, until it is delivered."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.came = threading.Semaphore(0)

    def call_later(self, callback: Callable[..., None], *arguments: Any) -> bool:
        self.waiting.append(lambda: callback(*arguments))
        self.came.release()
        return True

    def deliver(self) -> None:
        assert self.came.acquire()
        self.waiting.pop(0)()


def test_an_answer_in_parts_ends_with_a_newer_request_and_failures_are_reported() -> None:
    pump, heard, closed = Pump(), [], []
    failures = {"-": RecordingError("negative"), "!": ZeroDivisionError("a bug")}

    def parts(request: str) -> Iterator[str]:
        try:
            if request in failures:
                raise failures[request]
            yield from request
        finally:
            closed.append(request)

    newest = Newest[str, str](parts, heard.append, heard.append, lambda: heard.append("end"), on=pump)  # type: ignore[arg-type]  # a pump
    assert not newest.busy
    newest.ask("ab")
    for _ in "ab":
        pump.deliver()
    assert newest.busy  # the end is not known yet
    pump.deliver()
    assert heard == ["a", "b", "end"]
    assert not newest.busy
    newest.ask("cd")
    assert pump.came.acquire()  # a part is on its way
    pump.came.release()
    for request in ("e", "-", "!", "f"):
        newest.ask(request)
        while newest.busy:
            pump.deliver()
    assert heard[3:] == ["e", "end", "negative", "end", "ZeroDivisionError: a bug", "end", "f", "end"]
    assert closed == ["ab", "cd", "e", "-", "!", "f"]
    newest.close()


async def test_another_recording_is_not_shown_with_the_rows_of_the_one_before(tmp_path: Path) -> None:
    broken = tmp_path / "broken.msgpack"
    broken.write_bytes(b"no recording")
    tui = looking_at(record(tmp_path / "x.msgpack"))
    async with tui.run_test(size=SIZE) as pilot:
        await pilot.press("4")
        screen = pilot.app.screen
        assert isinstance(screen, ProjectionScreen)
        await until(pilot, lambda: screen.answered)
        tui.chosen = (broken,)
        screen.arrive()
        await until(pilot, lambda: screen.refusal)
        assert screen.answered is None
        assert not screen.query_one(AnswerTable).items


async def test_a_run_that_cannot_be_started_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise UsageError("cannot create recordings: read-only; name the recording with -o")

    monkeypatch.setattr("taxtui.folders.recordings", nowhere)
    async with app().run_test(size=SIZE) as pilot:
        await pilot.pause(0.2)
        await pilot.press("ctrl+r")
        await until(pilot, lambda: any("read-only" in note.message for note in pilot.app._notifications))
        setup(pilot)


def test_a_percentile_is_only_printed_where_the_data_support_it() -> None:
    histogram = LogHistogram()
    assert units.percentile(histogram, "p50") == "–"
    histogram.add([1_000_000] * 71)
    assert [units.percentile(histogram, name) for name in units.QUANTILES] == ["≈1.00ms", "n≥72", "n≥368"]
    histogram.add([1_000_000] * 297)
    assert [units.percentile(histogram, name) for name in units.QUANTILES] == ["≈1.00ms"] * 3
    for name, n in units.NEEDED.items():
        q = units.QUANTILES[name]
        assert name == "p50" or q**n <= 0.025 < q ** (n - 1)


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=50))
def test_the_chart_contains_every_value_of_each_cell(values: list[int]) -> None:
    histograms = [LogHistogram(), LogHistogram(), LogHistogram()]
    histograms[0].add(values)
    histograms[1].add(values[:1])
    drawn = outlines(histograms)
    for histogram, points in zip(histograms[:2], drawn, strict=False):
        edges = [edge for edge, _ in points]
        assert edges == sorted(edges)
        assert (points[0][1], points[-1][1]) == (0, 0)
        assert sum(count for _, count in points[1:-1:2]) == pytest.approx(histogram.n)  # each top edge has two points
    assert drawn[2] == []


def test_no_two_looks_are_alike() -> None:
    looks = [*SUBSTRATES.values(), *(look for name in SUBSTRATES for look in shipped.SUBSTRATES[name].variant_looks)]
    assert len({shape for shape, _ in looks}) == len({shade for _, shade in looks}) == len(looks)
