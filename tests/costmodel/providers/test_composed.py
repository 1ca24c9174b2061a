"""Recorded work at a provider that nobody measured: what is the work's stays, what is the provider's is named."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel import Images, Recording, Row, TrainingRun, load, load_prices, pools, project, rows_of
from costmodel.errors import SourceError, TrainingRunError
from costmodel.providers.estimation import estimated, workloads
from costmodel.providers.provider import Provider, StartTime, load_provider
from tests.support.command_line import printed
from tests.support.cost_model.costmodel_files import S, cell, price_sheet, trial, write

MS = S // 1000
PROVIDER = """provenance = "published"
source = "our trial account"
date = 2026-11-01
[[starts]]
substrate = "acme"
concurrency = 1000
p50 = 0.5
p95 = 0.5
"""


def recorded(folder: Path, name: str = "run", runs: int = 900 * MS, **identity: Any) -> Recording:
    trials = [
        trial(n, actions=(S,) * 3, runs=(runs,) * 3, thinks=(0, 2 * S, 2 * S), cpus=(300 * MS,) * 3) for n in range(20)
    ]
    return load(write(folder / f"{name}.msgpack", trials, cell(**identity), run_id=name))


def acme(folder: Path, options: str = "", provider: str = PROVIDER) -> Provider:
    (folder / "acme.toml").write_text(provider)
    return load_provider(f"{folder / 'acme.toml'}:{options}")


def one(folder: Path, provider: Provider, recording: Recording | None = None, **asked: Any) -> Row:
    (pool,) = workloads(pools([recording or recorded(folder)]))
    training_run = TrainingRun(**{"trajectories": 1000, "workers": 10, "run_sd": 0.0} | asked)
    [row] = rows_of([estimated(pool, provider, training_run, None)])
    return row


def test_the_work_and_the_think_time_stay_and_the_start_is_the_providers(tmp_path: Path) -> None:
    row = one(tmp_path, acme(tmp_path))
    assert row.provenance == "composed"
    assert row.label == "acme"
    assert row.trajectory_s.mean.value == pytest.approx(0.5 + 3)  # instead of 3 s to start
    assert row.think_s == pytest.approx(4)
    parts = {name: hours * 3.6 for name, hours in row.by_cause_worker_hours.as_dict().items() if hours}
    assert parts == pytest.approx({"startup": 0.5, "dispatch": 0.3, "work": 2.7, "think": 4})
    assert row.flags[0] == "composed"
    assert {"dispatch_borrowed", "speed_assumed"} <= set(row.flags)
    (borrowed,) = (one for one in row.assumptions if one.name == "dispatch")
    assert (borrowed.value, borrowed.source.partition(":")[0]) == ("as it was on docker", "run.msgpack")


def test_dispatch_and_speed_are_a_range_where_they_are_given_as_one(tmp_path: Path) -> None:
    row = one(tmp_path, acme(tmp_path, "dispatch=100ms..300ms,slowdown=1..2"))
    mean = row.trajectory_s.mean
    assert mean.value == pytest.approx(0.5 + 3 * (0.2 + 1.5 * 0.9))
    assert (mean.low, mean.high) == (pytest.approx(0.5 + 3 * (0.1 + 0.9)), pytest.approx(0.5 + 3 * (0.3 + 2 * 0.9)))
    assert row.worker_hours.low * 3.6 == pytest.approx(mean.low + 4)
    assert row.worker_hours.high * 3.6 == pytest.approx(mean.high + 4)
    assert not {"dispatch_borrowed", "speed_assumed"} & set(row.flags)
    assert row.wall_clock_hours.low < row.wall_clock_hours.value < row.wall_clock_hours.high
    for text, s in ((".5s", 0.5), ("5e-2s", 0.05), ("1.s", 1.0)):
        assert load_provider(f"e2b:dispatch={text}").dispatch_s == (s, s, s)


def test_commands_that_are_not_split_hold_anything_from_none_to_all_of_the_dispatch(tmp_path: Path) -> None:
    whole = recorded(tmp_path, runs=-MS // MS)
    row = one(tmp_path, acme(tmp_path, "dispatch=100ms"), whole)
    mean = row.trajectory_s.mean
    assert (mean.low, mean.value, mean.high) == pytest.approx((3.5, 3.65, 3.8))
    assert row.tax_worker_hours is None
    assert "run_time_unknown" in row.flags


def test_a_start_is_as_slow_as_so_many_at_a_time_make_it_and_all_dates_are_its_range(tmp_path: Path) -> None:
    e2b = load_provider("e2b")
    alone, own, together = (e2b.start_times(n)[1].p50_s for n in (1, 10, 100))
    assert (alone, together) == (0.491, 0.822)
    assert own == pytest.approx(math.sqrt(0.491 * 0.822))
    assert e2b.start_times(10_000)[1].p50_s == 0.822  # nothing is guessed beyond; the row is flagged
    quickest, newest, slowest = load_provider("daytona").start_times(1)
    assert (quickest.p50_s, newest.p50_s, slowest.p50_s) == (0.144, 0.186, 0.710)
    step = one(tmp_path, e2b, workers=100, batch=100, quota=1000, create_rate=1e6, create_burst=1000)
    stream = one(tmp_path, e2b, workers=1)
    assert step.trajectory_s.mean.value - stream.trajectory_s.mean.value > 0.5 * 0.491


def test_limits_are_the_plans_unless_the_training_run_has_its_own(tmp_path: Path) -> None:
    (pool,) = workloads(pools([recorded(tmp_path)]))
    asked = TrainingRun(trajectories=10_000, workers=500)
    for plan, own, usable, rate, burst in (
        ("e2b", {}, 100, 5.0, 5),
        ("e2b", {"quota": 400, "create_rate": 50.0}, 400, 50.0, 1),
        ("e2b:profile=e2b-hobby", {}, 20, 1.0, 1),
    ):
        limited = estimated(pool, load_provider(plan), replace(asked, **own), None)
        assert (limited.training_run.create_rate, limited.training_run.create_burst) == (rate, burst)
        [row] = rows_of([limited])
        assert row.evidence.usable_workers == usable


def test_a_composed_row_is_billed_by_its_providers_sheet_and_cpu_time(tmp_path: Path) -> None:
    row = one(tmp_path, load_provider("vercel"), trajectories=1, workers=1)
    assert row.cost.sheet == "Vercel Sandbox, Pro (2026-08-08)"
    assert row.cost.sandbox_usd.low < row.cost.sandbox_usd.value < (row.cost.sandbox_usd.high or 0.0)
    assert "cpu_time_unknown" not in row.flags  # the recording tells it
    ours = load_prices(price_sheet(tmp_path, "usd_per_hour = 3600", substrate="vercel"))
    (pool,) = workloads(pools([recorded(tmp_path)]))
    [row] = rows_of([estimated(pool, load_provider("vercel"), TrainingRun(trajectories=1, workers=1), ours)])
    assert row.cost.sheet == "sheet.toml (2026-01-01)"


def test_composed_rows_stand_beside_measured_ones_uncompared_and_nothing_of_them_is_called_measured(
    tmp_path: Path,
) -> None:
    recordings = [recorded(tmp_path, f"run-{number}") for number in range(3)]
    asked = TrainingRun(trajectories=160, workers=16, batch=16, baseline="docker")
    measured, composed = project(recordings, asked, providers=[acme(tmp_path)], effort=0.01)
    assert (measured.provenance, composed.provenance) == ("measured", "composed")
    assert composed.versus is None
    assert "provenance_differs" in composed.flags
    assert measured.worker_hours == project(recordings, asked, effort=0.01)[0].worker_hours
    here, there = (
        {found.name: (found.value, found.source) for found in row.attribution.assumptions}
        for row in (measured, composed)
    )
    assert here["run-to-run sd"][1] == here["failure_rate"][1] == "measured"
    assert there["run-to-run sd"][1] == "unmeasured: as where the work was recorded (measured)"
    assert there["failure_rate"] == ("none", "unmeasured: give failure_rate of this place")


def test_one_row_for_each_work_from_the_recording_that_tells_most(tmp_path: Path) -> None:
    quick = recorded(tmp_path, "local", runs=990 * MS, substrate="local")
    slow = recorded(tmp_path, "docker", runs=900 * MS)
    unsplit = recorded(tmp_path, "unsplit", runs=-1, substrate="other")
    busy = recorded(tmp_path, "busy", runs=100 * MS, concurrency=8)
    found = workloads(pools([unsplit, quick, slow, busy]))
    assert [pool.identity.label for pool in found] == ["docker"]
    assert found[0].identity.concurrency == 1
    other = recorded(tmp_path, "other", tier="T1")
    assert len(workloads(pools([slow, other]))) == 2


def test_failures_of_the_recording_are_not_the_providers(tmp_path: Path) -> None:
    trials = [trial(n, outcome="ok" if n % 2 else "failed") for n in range(10)]
    row = one(tmp_path, acme(tmp_path), load(write(tmp_path / "flaky", trials)))
    assert row.delivered == 1.0
    assert "no_failures_seen" in row.flags


def test_inputs_that_nobody_published_are_said_to_be_unmeasured(tmp_path: Path) -> None:
    steps = {"batch": 16, "group_size": 4, "nodes": 4, "pods_per_node": 4}
    images = {"images": Images.of([2.0, 6.0]), "pull_gb_s": 1.0}
    for asked, failures, pulls in (
        ({}, "none", "none"),
        (steps | images | {"failure_rate": 0.05}, "0.05 of attempts", "2 images, 4 GB on average"),
        ({"failure_hazard": 0.5, "batch": 16}, "0.5 an hour", "none"),
    ):
        told = {found.name: found for found in one(tmp_path, acme(tmp_path), **asked).assumptions}
        assert (told["failures"].value, told["image pulls and builds"].value) == (failures, pulls)
        if not asked:
            source = "unmeasured: failure_rate under [at.acme.failures] says otherwise"
            assert told["failures"].source == source


def test_a_range_of_what_is_assumed_gives_no_limits_to_what_is_unknown(tmp_path: Path) -> None:
    """20 trials that differ do not bound a step of 16, whatever the dispatch there is."""
    trials = [trial(n, actions=(S + n * S // 10,) * 3, runs=(n * S // 10,) * 3) for n in range(20)]
    source = load(write(tmp_path / "varied.msgpack", trials))
    provider = acme(tmp_path, "dispatch=100ms..300ms")
    training_run = TrainingRun(trajectories=160, workers=16, batch=16)
    [row] = [one for one in project([source], training_run, providers=[provider], effort=0.01) if one.label == "acme"]
    dispatch = row.attribution.causes["dispatch"]
    assert (dispatch.step_s.low, dispatch.step_s.high) == (None, None)
    assert dispatch.worker_hours.low * 3600 <= 160 * 3 * 0.1 * 1.01 < dispatch.worker_hours.value * 3600


@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 100), st.floats(1, 10), st.integers(1, 300))
def test_the_parts_of_a_law_have_its_mean(p50_s: float, spread: float, count: int) -> None:
    parts = StartTime(p50_s, p50_s * spread).strata(count)
    sigma = math.log(spread) / NormalDist().inv_cdf(0.95)
    assert len(parts) == count
    assert all(one <= other * (1 + 1e-9) for one, other in pairwise(parts))
    assert math.fsum(parts) / count == pytest.approx(p50_s * math.exp(sigma**2 / 2))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nowhere", "no start of 'nowhere' is published; known are blaxel, .*vercel"),
        ("agent-sandbox", "no start of 'agent-sandbox' is published"),
        ("docker", "the starts of 'docker' are of runsc, runc"),
        ("e2b:speed=2", "'speed=2' is none of dispatch=…, slowdown=…, profile=…, prices=…"),
        ("e2b:dispatch", "'dispatch' is none of"),
        ("e2b:dispatch=3", "dispatch must be a duration in ms or s, or a range of two .*, not '3'"),
        ("e2b:dispatch=300ms..100ms", "dispatch must be a duration"),
        ("e2b:slowdown=0", "slowdown must be a factor above 0, or a range of two .*, not '0'"),
        ("e2b:slowdown=1..2..3", "slowdown must be a factor"),
        ("e2b:profile=e2b", "cannot read e2b: .*; shipped are coreweave, coreweave-disputed, .*, vercel-pro-disputed$"),
    ],
)
def test_a_provider_that_is_not_known_or_not_well_said_is_one_line(spec: str, message: str) -> None:
    with pytest.raises(TrainingRunError, match=message) as error:
        load_provider(spec)
    assert "\n" not in str(error.value)


def test_a_bad_file_of_a_provider_or_one_without_work_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="a provider is one substrate"):
        acme(tmp_path, provider=f'{PROVIDER}[[starts]]\nsubstrate = "b"\np50 = 1\n')
    with pytest.raises(SourceError, match="no start has a median; add p50"):
        acme(tmp_path, provider=PROVIDER.replace("p50", "mean").replace("p95", "max"))
    essay = load(Path(__file__).parents[3] / "scenarios" / "published" / "essay.toml")
    with pytest.raises(TrainingRunError, match="a composed row needs recorded work: give a recording"):
        project([essay], TrainingRun(trajectories=10, workers=1), providers=[acme(tmp_path)])


@pytest.mark.parametrize("step", [(), ("--prompts", "4", "--group-size", "4", "--think", "1s")])
def test_a_choice_of_substrates_keeps_the_composed_rows(step: tuple[str, ...], tmp_path: Path) -> None:
    trials = [trial(number, cell=number % 2) for number in range(20)]
    path = write(tmp_path / "run.msgpack", trials, cell(0), cell(1, substrate="local"))
    training_run = ["--trajectories", "64", "--workers", "8", *step]
    words = ["project", str(path), *training_run, "--substrate", "docker", "--compose", "daytona", "--format", "json"]
    rows = json.loads(printed(*words))
    assert [(row["substrate"], row["provenance"]) for row in rows] == [("docker", "measured"), ("daytona", "composed")]
