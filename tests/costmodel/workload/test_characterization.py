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

from costmodel.recording.trial import RecordedTrial
from costmodel.workload.characterization import (
    Shared,
    correlation,
    failure_law,
    kaplan_meier,
    laws,
    length_law,
    poisson_interval,
    think_law,
)
from taxtui.commands.report import command
from taxtui.importers import registry
from taxtui.importers.importing import import_files
from taxtui.importers.protocol import ReaderOptions

HOUR_NS = 3_600 * 10**9


def trial(
    thinks_s: Sequence[float] = (),
    actions: int | None = None,
    *,
    group: str = "",
    failed_in: str = "",
    error: str = "",
    hours: float = 1.0,
) -> RecordedTrial:
    one = RecordedTrial("r", 0)
    one.thinks_ns = array("q", (round(s * 1e9) for s in thinks_s))
    one.durations_ns = array("q", [10**6] * (len(thinks_s) if actions is None else actions))
    one.ok, one.failed_in, one.error, one.group = not failed_in, failed_in, error, group
    one.sandbox_ns = round(hours * HOUR_NS)
    return one


# ---------------------------------------------------------------------------------------- against what is published


def test_kaplan_and_meier_of_freireich_s_leukaemia_patients() -> None:
    """Remission under 6-MP (Freireich et al. 1963): the median of 23 weeks that every textbook has."""
    ended = [6, 6, 6, 7, 10, 13, 16, 22, 23]
    cut = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    assert kaplan_meier(ended, cut, (0.25, 0.5, 0.9)) == [13, 23, None]


@pytest.mark.parametrize(
    ("count", "low", "high"), [(0, 0.0, 3.689), (1, 0.0253, 5.572), (10, 4.795, 18.391), (100, 81.36, 121.63)]
)
def test_garwood_s_interval(count: int, low: float, high: float) -> None:
    assert poisson_interval(count) == pytest.approx((low, high), abs=0.005)


def test_the_cube_goes_on_where_the_exact_one_ends() -> None:
    exact, cubed = poisson_interval(200), poisson_interval(201)
    assert all(0 < after - before < 1.2 for before, after in zip(exact, cubed, strict=True))


# ------------------------------------------------------------------------------------------- against simulated truth


def _covered(intervals: Sequence[tuple[float | None, float | None]], truth: float) -> float:
    return sum(low is not None and high is not None and low <= truth <= high for low, high in intervals) / len(
        intervals
    )


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7])
def test_a_correlation_is_in_its_interval(share: float) -> None:
    rng = Random(7)

    def study() -> Shared:
        values = []
        for group in range(20):
            common = rng.gauss(0, math.sqrt(share))
            values += [(group, common + rng.gauss(0, math.sqrt(1 - share))) for _ in range(rng.choice((3, 6, 9)))]
        found = correlation("x", values)
        assert found is not None
        return found

    found = [study() for _ in range(150)]
    assert _covered([(one.correlation.low, one.correlation.high) for one in found], share) >= 0.88
    assert sum(one.correlation.value for one in found) / len(found) == pytest.approx(share, abs=0.05)


def test_a_think_law_is_in_its_intervals_where_trials_differ_in_their_pace() -> None:
    rng = Random(11)
    found = []
    for _ in range(150):
        paces = [rng.gauss(math.log(8), 0.4) for _ in range(25)]
        found.append(think_law([trial([rng.lognormvariate(pace, 0.6) for _ in range(10)]) for pace in paces]))
    known = [law for law in found if law is not None]
    assert len(known) == 150
    sigma, mean = math.hypot(0.4, 0.6), 8 * math.exp((0.4**2 + 0.6**2) / 2)
    assert _covered([(law.median_s.low, law.median_s.high) for law in known], 8.0) >= 0.9
    assert _covered([(law.sigma.low, law.sigma.high) for law in known], sigma) >= 0.88
    assert _covered([(law.mean_s.low, law.mean_s.high) for law in known], mean) >= 0.88
    assert all(law.distance < 0.15 for law in known)


def test_a_hazard_is_in_its_interval() -> None:
    rng = Random(13)
    found = []
    for _ in range(150):
        trials = []
        for _ in range(80):
            until_h, wanted_h = rng.expovariate(0.5), rng.uniform(0.2, 1.0)
            trials.append(trial(hours=min(until_h, wanted_h), failed_in="action" if until_h < wanted_h else ""))
        per_hour = failure_law(trials).per_hour
        assert per_hour is not None
        found.append((per_hour.low, per_hour.high))
    assert _covered(found, 0.5) >= 0.92


# ----------------------------------------------------------------------------------------------- what is counted how


def test_failures_are_of_starts_or_of_what_ran() -> None:
    trials = [
        *[trial(hours=2.0)] * 6,
        trial(hours=0.5, failed_in="ready", error="ReadyTimeout"),
        trial(hours=0.5, failed_in="action", error="SandboxLost"),
        trial(hours=1.0, failed_in="action", error="SandboxLost"),
        trial(hours=1.0, failed_in="verify", error="VerifierTimeoutError"),
    ]
    law = failure_law(trials)
    assert (law.attempts, law.starts_failed, law.failures, law.exposure_h) == (10, 1, 2, 15.0)
    assert law.per_hour is not None
    assert law.per_hour.value == pytest.approx(2 / 15)
    assert law.errors == (("SandboxLost", 2), ("ReadyTimeout", 1), ("VerifierTimeoutError", 1))


def test_groups_that_fail_together_widen_the_hazard() -> None:
    apart = [trial(group=f"g{i}", failed_in="action" if i % 8 == 0 else "") for i in range(80)]
    together = [trial(group=f"g{i % 10}", failed_in="action" if i % 10 == 0 else "") for i in range(80)]
    widths = []
    for trials in (apart, together):
        per_hour = failure_law(trials).per_hour
        assert per_hour is not None
        assert per_hour.low is not None
        assert per_hour.high is not None
        widths.append(per_hour.high - per_hour.low)
    assert widths[1] > 1.3 * widths[0]


def test_a_failed_trial_is_longer_than_it_became() -> None:
    law = length_law([trial(actions=n) for n in (5, 10, 15)] + [trial(actions=12, failed_in="action")] * 3)
    assert law is not None
    assert (law.trials, law.censored, law.p50, law.p95, law.shortest, law.longest) == (3, 3, 15, 15, 5, 15)


def test_nothing_is_said_without_data() -> None:
    found = laws([trial(actions=3), trial([0.0, 0.0])])
    assert found.think is None
    assert found.shared == ()
    assert length_law([trial(actions=3, failed_in="action")]) is None
    one = think_law([trial([0.0, 8.0])])
    assert one is not None
    assert (one.median_s.value, one.median_s.low, one.thinks) == (pytest.approx(8.0), None, 1)
    assert failure_law([trial(hours=0.0)]).per_hour is None


numbers = st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0])


@settings(max_examples=80)
@given(st.lists(st.tuples(st.integers(0, 8), numbers), max_size=60))
def test_whatever_the_values_a_correlation_is_at_most_1(values: list[tuple[int, float]]) -> None:
    found = correlation("x", values)
    if found is not None:
        low, high = found.correlation.low, found.correlation.high
        assert found.correlation.value <= 1
        assert (low is None) == (high is None)
        assert low is None or high is None or low <= found.correlation.value <= high <= 1


@settings(max_examples=60)
@given(st.lists(st.lists(st.floats(0, 1e7), max_size=6), min_size=1, max_size=8), st.booleans())
def test_whatever_was_thought_a_law_is_finite(thinks: list[list[float]], grouped: bool) -> None:
    law = think_law([trial(own, group=f"g{i % 3}" if grouped else "") for i, own in enumerate(thinks)])
    if law is not None:
        assert math.isfinite(law.median_s.value)
        assert law.sigma.value >= 0
        assert 0 <= law.distance <= 1


# ---------------------------------------------------------------------------------------------------- as it is shown

RUN = str(Path(__file__).parents[3] / "recordings" / "run.msgpack")


def test_the_laws_are_a_table_of_their_own() -> None:
    done = CliRunner().invoke(command, [RUN, "--table", "distributions"], catch_exceptions=False)
    assert "Failures" in done.stdout
    (row, *_) = json.loads(
        CliRunner()
        .invoke(command, [RUN, "--table", "distributions", "--format", "json"], catch_exceptions=False)
        .stdout
    )
    assert row["failure_law"]["attempts"] == row["trials"]
    assert row["think_law"] == dict.fromkeys(row["think_law"])
    assert "think_law" not in CliRunner().invoke(command, [RUN, "--format", "json"]).stdout


def test_logs_of_somebody_s_training_feed_every_law(tmp_path: Path) -> None:
    told = json.loads((Path(__file__).parents[2] / "logs" / "verifiers-given.jsonl").read_text())
    rng, lines = Random(3), []
    for prompt in range(8):
        pace_s = rng.lognormvariate(2, 0.7)
        for _ in range(4):
            trace, at_s, calls = told["traces"][0], 1795297006.0, []
            for _ in range(rng.randint(2, 12)):
                thought_s = pace_s * rng.lognormvariate(0, 0.2)
                calls.append({"node": 1, "model": "m", "time": {"start": at_s, "end": at_s + thought_s}})
                at_s += thought_s + 1.0
            timing = trace["timing"] | {"agent": {"start": 1795297006.0, "end": at_s}}
            trace = trace | {"calls": calls, "timing": timing, "ok": prompt > 0, "errors": [{"type": "SandboxError"}]}
            lines.append(json.dumps(told | {"group": {"id": f"g{prompt}"}, "traces": [trace]}))
    (tmp_path / "traces.jsonl").write_text("\n".join(lines))
    out = tmp_path / "out.msgpack"
    import_files(registry.load("verifiers"), [tmp_path / "traces.jsonl"], out, ReaderOptions())
    text = CliRunner().invoke(command, [str(out), "--table", "distributions"], catch_exceptions=False).stdout
    assert "Distributions" in text
    assert "Failures by cause" in text
    (row,) = json.loads(CliRunner().invoke(command, [str(out), "--table", "distributions", "--format", "json"]).stdout)
    assert row["group_correlation"]["think"]["groups"] == 7  # those with a success
    assert row["group_correlation"]["think"]["correlation"]["low"] > 0.5
    assert row["group_correlation"]["failure"]["correlation"]["value"] == 1.0
    assert row["length_law"]["censored"] == 4
    csv = CliRunner().invoke(command, [str(out), "--table", "distributions", "--format", "csv"]).stdout
    assert '"think_law.median_s.low"' in csv
    assert '"group_correlation.length.correlation.value"' in csv
