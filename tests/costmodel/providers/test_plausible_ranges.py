"""Inputs that nobody measured at a provider: where a range comes from, and a run at the values of a range."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from costmodel import Recording, TrainingRun, load_prices, poisoned_groups
from costmodel.providers.plausible_ranges import Candidate, Input, figures
from tests.support.cost_model.decision_worlds import RUN, candidate_at, record

ASKED = replace(RUN, failure_rate=0.05)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return record(tmp_path_factory.mktemp("ranges") / "run.msgpack", Random(1), [0.2], [1.0], 30)


def named(
    recording: Recording, provider: str, asked: TrainingRun = ASKED, stated: frozenset[str] = frozenset()
) -> dict[str, Input]:
    return {one.name: one for one in candidate_at(recording, provider, asked, stated).inputs}


def test_every_shipped_figure_has_an_address_and_a_date() -> None:
    assert len(figures()) > 10
    for one in figures():
        assert any(mark in one.source for mark in ("github.com/", "arXiv ", "www.", "docs.", "bench")), one.source
        assert one.date.year >= 2025


def test_a_providers_own_figures_count_before_those_of_others(recording: Recording) -> None:
    own = named(recording, "daytona")["dispatch"]
    assert (own.best, own.worst, own.of_others) == (0.06, 1.13, False)
    assert all("podflare: " not in source for source in own.sources)


@pytest.mark.parametrize(("options", "source"), [("", "range"), (":dispatch=100ms", "given")])
def test_a_dispatch_of_a_range_is_not_called_given(recording: Recording, options: str, source: str) -> None:
    assumptions = candidate_at(recording, f"daytona{options}", ASKED).at({}).assumptions
    [dispatch] = [one for one in assumptions if one.name == "dispatch"]
    assert dispatch.source == source


def test_without_a_range_of_its_own_a_provider_gets_the_widest_of_all(recording: Recording) -> None:
    printed = [one for one in figures() if one.input == "dispatch"]
    widest = min(one.low for one in printed), max(one.high for one in printed)
    for name in ("e2b", "modal"):  # a single value, and none
        found = named(recording, name)["dispatch"]
        assert (found.best, found.worst, found.of_others) == (*widest, True)


def test_a_stated_input_has_no_range(recording: Recording) -> None:
    assert "failure_rate" not in named(recording, "daytona", ASKED, frozenset({"failure_rate"}))
    stated = named(recording, "e2b:profile=e2b-pro,dispatch=100ms..300ms,slowdown=1")
    assert "limits" not in stated
    assert "work_speed" not in stated
    assert (stated["dispatch"].best, stated["dispatch"].worst) == (0.1, 0.3)
    assert "limits" not in named(recording, "e2b", replace(ASKED, quota=12))


def test_a_rate_of_both_places_is_assumed_at_a_provider_and_not_known(recording: Recording) -> None:
    found = named(recording, "daytona")["failure_rate"]
    assert (found.assumed, found.best, found.worst) == (0.05, 0.0, 0.16)


def test_plans_go_from_loose_to_tight_with_the_disputed_one(recording: Recording) -> None:
    daytona = named(recording, "daytona")["limits"]
    assert [daytona.label(value) for value in (daytona.best, daytona.worst)] == [
        "daytona (10 creates a second)",
        "daytona-disputed (0.0333 creates a second)",
    ]
    e2b = named(recording, "e2b")["limits"]
    assert [e2b.short(number) for number in (0, 1, 2)] == ["e2b-pro-1100", "e2b-pro", "e2b-hobby"]


def test_sizes_of_images_make_the_time_of_a_pull(recording: Recording) -> None:
    plain = candidate_at(recording, "daytona", ASKED)
    sized = Candidate(plain.pool, plain.provider, plain.training_run, None, images_gb=[2.0, 8.0])
    for candidate, worst in ((plain, 3.1), (sized, 5 / 0.065)):
        [image] = [one for one in candidate.inputs if one.name == "image"]
        assert (image.best, image.worst) == (0.0, pytest.approx(worst))


def test_other_inputs_go_into_the_training_run_and_the_price(recording: Recording) -> None:
    candidate = candidate_at(recording, "daytona", ASKED)
    told = candidate.at({"failure_rate": 0.1, "failure_burst": 4.0, "limits": 1.0, "disk": 10.0})
    assert (told.training_run.failure_rate, told.training_run.failure_burst) == (0.1, 4)
    assert told.training_run.create_rate == pytest.approx(1 / 30)
    assert [one.disk_gib for one in told.prices.sandboxes] == [10.0]
    assert [one.disk_gib for one in load_prices("daytona").sandboxes] == [3.0]


def test_the_share_of_groups_with_a_failed_attempt() -> None:
    assert poisoned_groups(0.05, 16) == pytest.approx(1 - 0.95**16)
    assert poisoned_groups(0.05, 16, 4) == pytest.approx(1 - 0.95**4)
    assert poisoned_groups(0.0, 16) == 0.0
