"""What benchmarks measure becomes one table, and a benchmark that fails says so without taking the others along."""

from __future__ import annotations

from pathlib import Path

import pytest

from costmodel.recording.follower import read_events
from taxtui.recording.writer import Recorder
from tests.benchmarks import __main__ as bench
from tests.benchmarks import figures
from tests.benchmarks.bench_recording import LENGTH, stream
from tests.benchmarks.figures import Figure


def test_a_figure_comes_back_with_the_benchmark_that_told_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(figures.ASKED, str(tmp_path / "kept"))
    figures.tell("exec", 3.0, "ms", 2.0, "a peer", wanted="≤ 2")
    figures.grown("read", "s", [(1, 0.5), (2, 1.5), (4, 2.0)])
    exec_, twice, four = figures.read(tmp_path / "kept", "dispatch")
    assert exec_ == Figure("exec", 3.0, "ms", 2.0, "a peer", "≤ 2", "dispatch")
    assert exec_.ratio == 1.5
    assert (twice.ratio, four.ratio) == (1.5, 1.0)
    assert "| x | memory | 7 kB |  |  |  |" in figures.table([Figure("memory", 7.0, "kB", bench="x")])


def test_one_that_fails_takes_no_other_along(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    told = "from tests.benchmarks.figures import tell\ntell('speed', 5.0, 'x', 2.0, 'before')\nprint('its own words')\n"
    (tmp_path / "bench_bad.py").write_text(f"{told}raise SystemExit(1)\n", encoding="utf-8")
    (tmp_path / "bench_good.py").write_text(told, encoding="utf-8")
    assert bench.names(tmp_path) == ["bad", "good"]
    found, failed = bench.collected(["bad", "good"], tmp_path)
    assert [one.bench for one in found] == ["bad", "good"]
    assert failed == ["bad"]
    assert capfd.readouterr().out.count("its own words") == 2
    page = bench.page([bench.Run("then", "now", found)], failed)
    assert "| good | speed | 5 x | 2 x before | 2.5 |  |" in page
    assert "bad failed" in page


def test_the_recording_of_a_million_actions_could_have_been_measured(tmp_path: Path) -> None:
    with Recorder(tmp_path / "r.msgpack") as recorder:
        for event in stream(2 * LENGTH):
            recorder.add(event)
    assert read_events(tmp_path / "r.msgpack", lambda event: None).complete
