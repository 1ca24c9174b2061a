"""Laws from data: against published examples, simulated truth, and degenerate samples."""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel import Interval, RecordedTrial
from costmodel.workload.characterization import (
    hazard,
    poisson_interval,
    think_law,
)
from taxtui.commands.report import command
from taxtui.importers import registry
from taxtui.importers.importing import import_files

HOUR_NS = 3_600 * 10**9


def trial(
    thinks_s: Sequence[float] = (), *, group: str = "", failed: bool = False, hours: float = 1.0
) -> RecordedTrial:
    one = RecordedTrial("r", 0)
    one.thinks_ns = array("q", (round(s * 1e9) for s in thinks_s))
    one.durations_ns = array("q", [10**6] * len(thinks_s))
    one.ok, one.failed_in, one.group = not failed, "action" * failed, group
    one.sandbox_ns = round(hours * HOUR_NS)
    return one


def failures_per_hour(trials: Sequence[RecordedTrial]) -> Interval | None:
    hours = [one.sandbox_ns / HOUR_NS for one in trials]
    return hazard([int(not one.ok) for one in trials], hours, [one.group or n for n, one in enumerate(trials)])


@pytest.mark.parametrize(
    ("count", "low", "high"), [(0, 0.0, 3.689), (1, 0.0253, 5.572), (10, 4.795, 18.391), (100, 81.36, 121.63)]
)
def test_the_interval_of_a_count_is_about_garwood_s(count: int, low: float, high: float) -> None:
    found = poisson_interval(count)
    assert found == pytest.approx((low, high), abs=0.025)
    assert found[0] <= low + 0.005


def _covered(intervals: Sequence[Interval], truth: float) -> float:
    return sum(found.low <= truth <= found.high for found in intervals) / len(intervals)


def test_a_think_law_is_in_its_intervals_where_trials_differ_in_their_pace() -> None:
    rng = Random(11)
    found = []
    for _ in range(150):
        paces = [rng.gauss(math.log(8), 0.4) for _ in range(25)]
        found.append(think_law([trial([rng.lognormvariate(pace, 0.6) for _ in range(10)]) for pace in paces]))
    mean = 8 * math.exp((0.4**2 + 0.6**2) / 2)
    assert _covered([law.median_s for law in found], 8.0) >= 0.9
    assert _covered([law.mean_s for law in found], mean) >= 0.88


def test_a_hazard_is_in_its_interval() -> None:
    rng = Random(13)
    found = []
    for _ in range(150):
        trials = []
        for _ in range(80):
            until_h, wanted_h = rng.expovariate(0.5), rng.uniform(0.2, 1.0)
            trials.append(trial(hours=min(until_h, wanted_h), failed=until_h < wanted_h))
        found.append(failures_per_hour(trials))
    assert _covered(found, 0.5) >= 0.92


def test_groups_that_fail_together_widen_the_hazard() -> None:
    apart = [trial(group=f"g{i}", failed=i % 8 == 0) for i in range(80)]
    together = [trial(group=f"g{i % 10}", failed=i % 10 == 0) for i in range(80)]
    narrow, wide = (failures_per_hour(trials) for trials in (apart, together))
    assert wide.high - wide.low > 1.3 * (narrow.high - narrow.low)


@settings(max_examples=60)
@given(st.lists(st.lists(st.floats(0, 1e7), max_size=6), min_size=1, max_size=8), st.booleans())
def test_whatever_was_thought_a_law_is_finite(thinks: list[list[float]], grouped: bool) -> None:
    law = think_law([trial(own, group=f"g{i % 3}" if grouped else "") for i, own in enumerate(thinks)])
    if law is not None:
        assert math.isfinite(law.median_s.value)
        assert law.sigma.value >= 0


def test_nothing_is_said_without_data() -> None:
    assert think_law([trial(), trial([0.0, 0.0])]) is None
    one = think_law([trial([0.0, 8.0])])
    assert (one.median_s.value, one.median_s.low, one.thinks) == (pytest.approx(8.0), None, 1)
    assert failures_per_hour([trial(hours=0.0)]) is None


def test_logs_of_somebody_s_training_feed_every_law_in_a_table_of_their_own(tmp_path: Path) -> None:
    out = tmp_path / "out.msgpack"
    logs = Path(__file__).parents[2] / "logs" / "verifiers-given.jsonl"
    import_files(registry.load("verifiers"), [logs], out)

    def shown(*words: str) -> str:
        return CliRunner().invoke(command, [str(out), *words], catch_exceptions=False).stdout

    text = shown("--table", "distributions")
    assert "Distributions" in text
    assert "Failures by cause" in text
    (row,) = json.loads(shown("--table", "distributions", "--format", "json"))
    assert row["think_law"]["thinks"] > 0
    assert '"think_law.median_s.low"' in shown("--table", "distributions", "--format", "csv")
    assert "think_law" not in shown("--format", "json")
