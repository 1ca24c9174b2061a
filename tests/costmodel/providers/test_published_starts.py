"""Published starts, figures, limits and ranges: dated, sourced, and refused where they cannot answer."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from costmodel import (
    Recording,
    answer_of,
    known_profiles,
    load,
    load_prices,
    load_profile,
    load_provider,
    project,
    published_figures,
)
from costmodel.errors import SourceError, TrainingRunError
from costmodel.providers import plausible_ranges
from costmodel.providers.plausible_ranges import Candidate, Input, figures
from costmodel.training.run import TrainingRun
from taxtui.report.headline import sentence
from tests.support.cost_model.costmodel_files import S, trial, write
from tests.support.cost_model.decision_worlds import RUN, candidate_at, record

FACTS = {facts.name: facts for facts in published_figures()}


@pytest.mark.parametrize("name", FACTS)
def test_every_figure_that_ships_has_a_source_a_date_and_a_licence(name: str) -> None:
    facts = FACTS[name]
    assert facts.source
    assert facts.licence
    assert facts.starts or facts.figures
    for figure in (*facts.starts, *facts.figures):
        assert figure.date.year == 2026
        assert figure.unit
        own = figure.source.startswith(("https://", "github.com/", "arXiv ")) or figure.note
        assert own or figure.source == facts.source


def test_a_range_of_a_decision_is_within_the_figures_of_its_provider() -> None:
    compared = 0
    for span in plausible_ranges.figures():
        if span.input == "dispatch":
            every = [figure for facts in FACTS.values() for figure in facts.figures]
            own = [one for one in every if (one.quantity, one.substrate) == ("dispatch", span.provider)]
            values = [value for one in own for value in (one.value, one.min, one.p50, one.max) if value is not None]
            assert min(values) <= span.low <= span.high <= max(values)
            compared += 1
    assert compared > 3


def test_starts_and_figures_answer_nothing_alone_and_say_what_they_are_for(tmp_path: Path) -> None:
    starts = "[[starts]]\nsubstrate = 'x'\np50 = 9_223_372_036\n"  # the longest that there is
    for rest, said in (
        (starts, r"acme\.toml holds no latency of a trajectory .* --compose x"),
        (f"{FIGURE}value = 1\n", r"acme\.toml has figures for the page of taxtui site only, and no latency"),
    ):
        path = tmp_path / "acme.toml"
        path.write_text(f"{HEAD}source = 'a'\n{rest}")
        with pytest.raises(SourceError, match=said):
            project([load(path)], TrainingRun(trajectories=10, workers=1))


def test_a_table_has_what_the_file_says_unless_it_says_otherwise(tmp_path: Path) -> None:
    path, row = tmp_path / "rows.toml", '[[rows]]\nsubstrate = "x"\nactions = 5\ntrajectory_s = 1\n'
    path.write_text(f'{HEAD}cpus = 2\nsource = "a"\n{row}{row}date = 2025-05-05\ncpus = 0.5\nsource = "b"\n')
    found = project([load(path)], TrainingRun(trajectories=10, workers=1))
    told = [(row.identity.cpu_milli, row.assumptions[0].source) for row in found]
    assert told == [(2000, "a (2026-01-01)"), (500, "b (2025-05-05)")]


FIGURE = '[[figures]]\nsubstrate = "x"\nquantity = "dispatch"\nunit = "s"\nmeasure = "round trip"\n'
PUBLISHED = 'provenance = "published"\n'
ROW = f'{PUBLISHED}\n[[rows]]\nsubstrate = "x"\nactions = 7\ntrajectory_s = 5\n'
SECOND = ROW.replace(PUBLISHED, "\n\n")
HEAD = f"{PUBLISHED}date = 2026-01-01\n"
SOURCED = f"{HEAD}source = 'a'\n"
START = f"{SOURCED}[[starts]]\nsubstrate = 'x'\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name = "a scenario"', "not a file of published latencies"),
        (PUBLISHED, r"no \[\[rows\]\]; each needs"),
        (f'{PUBLISHED}[[rows]]\nsubstrat = "x"', r":3: rows\[1\].substrat: unknown key; did you mean 'substrate'\?"),
        (ROW + SECOND.replace("= 5", "= -1"), r":13: rows\[2\].trajectory_s: expected `float` >= 1e-09"),
        (ROW + SECOND.replace("= 7", "= 0"), r":12: rows\[2\].actions: expected `int` >= 1"),
        (ROW.replace('substrate = "x"\n', ""), "missing required field `substrate`; add substrate = "),
        (f"{PUBLISHED}cpu = 2\n{SECOND}", r":2: cpu: unknown key; did you mean 'cpus'\?"),
        (ROW + SECOND, r"bad\.toml: rows: row 2 is x x 7 once more; keep one of them"),
        ('provenance = "published"\n[[starts]]\nsubstrate = "x"\np50 = 1', "each needs its date; add date"),
        (f"{START}p50 = 0", "start is a time above 0"),
        (f"{START}p50 = 300\nunit = 'ms'", "start is a time above 0"),
        (f"{START}p50 = 1e-12\np95 = 1e15", "from 1 ns to 292 years"),
        (f"{START}quantity = 'scale'\nunit = 'ms'\np50 = 300", "each is a start; write other quantities under"),
        (f"{START}p50 = 1\nburst = 3", r":7: starts\[1\].burst: unknown key; known: substrate, quantity"),
        (f"{HEAD}{FIGURE}value = 1", "a figure needs its source; add source = "),
        (f"{SOURCED}{FIGURE}", "no figure; give value, low and high, mean, or one of min, p50"),
        (f"{SOURCED}{FIGURE}p50 = 2\np95 = 1", "min, p50, p90, p95, p99, max must ascend"),
        (f"{SOURCED}{FIGURE}low = 2", "low and high must both be given"),
        (f"{SOURCED}{FIGURE}value = 1".replace('"s"', '"ms"'), "dispatch is a time above 0"),
        (f"{SOURCED}{FIGURE}value = 2".replace('"s"', '"share"').replace("dispatch", "failures"), "must be at most 1"),
    ],
)
def test_bad_files_are_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(SourceError, match=message) as error:
        load(path)
    assert "\n" not in str(error.value)


def test_the_same_row_in_two_files_is_no_pair_to_compare(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text(ROW)
    files = [load(tmp_path / f"{name}.toml") for name in ("a", "b")]
    rows = project(files, TrainingRun(trajectories=10, workers=2))
    assert "nothing to compare it with" in sentence(answer_of(rows))


@pytest.mark.parametrize("name", known_profiles())
def test_every_limit_that_ships_has_a_source_and_a_date(name: str) -> None:
    profile = load_profile(name)
    assert profile.source.startswith("https://")
    assert datetime.date(2025, 1, 1) < profile.date < datetime.date(2027, 1, 1)
    TrainingRun(**profile.filled({"trajectories": 10, "workers": 2}))


def test_what_is_not_asked_is_filled_and_what_is_asked_stays() -> None:
    pro = load_profile("e2b-pro")
    assert pro.filled({"workers": 9}) == {"workers": 9, "quota": 100, "create_rate": 5.0, "create_burst": 5}
    assert pro.filled({"quota": 3, "create_rate": None}) == {"quota": 3, "create_rate": 5.0, "create_burst": 5}
    assert pro.filled({"create_rate": 50.0}) == {"quota": 100, "create_rate": 50.0}  # its burst is of another rate
    assert pro.filled({"create_burst": 7})["create_burst"] == 7
    assert load_profile("render").filled({}) == {"quota": 1000}


def test_a_bare_name_is_the_shipped_one_beside_any_file_or_folder_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "modal").mkdir()
    (tmp_path / "daytona").write_text("concurrent = 1")
    assert load_profile("modal").creates_per_s == 40
    assert load_profile("daytona").creates_per_s == 10
    assert load_prices("modal").sandboxes


def test_who_says_otherwise_is_told() -> None:
    provider, disputed = (load_provider(f"daytona:profile={name}") for name in ("daytona", "daytona-disputed"))
    said = [item.value for item in provider.assumptions(1)]
    assert any("creates_per_s 10 (https://www.daytona.io/docs/en/rate-limits, 2026-11-22)" in line for line in said)
    assert any("0.0333333 says https://www.mintlify.com" in line for line in said)
    assert not any("600 creates" in item.value for item in disputed.assumptions(1))


WHOLE: dict[str, Any] = {"substrate": '"x"', "source": '"y"', "date": "2026-01-01", "concurrent": "5"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"date": None}, "a profile needs its date"),
        ({"source": None}, 'missing required field `source`; add source = "…"'),
        ({"concurrent": None}, "no limit; give at least one of concurrent, creates_per_s, burst"),
        ({"concurrent": "0"}, ":4: concurrent: expected `int` >= 1"),
        ({"creates_per_s": "-1"}, "creates_per_s: expected `float` > 0"),
        ({"burst": "5"}, "a burst is an exception to a rate; add creates_per_s = ?"),
    ],
)
def test_bad_profiles_are_one_line(tmp_path: Path, change: dict[str, str | None], message: str) -> None:
    path = tmp_path / "ours.toml"
    path.write_text("".join(f"{key} = {value}\n" for key, value in (WHOLE | change).items() if value is not None))
    with pytest.raises(TrainingRunError, match=message) as error:
        load_profile(path)
    assert "\n" not in str(error.value)


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
    found = named(recording, "daytona")
    own, failures = found["dispatch"], found["failure_rate"]
    assert (own.best, own.worst, own.of_others) == (0.06, 1.13, False)
    assert all("podflare: " not in source for source in own.sources)
    # asked of both places, it is assumed at a provider and not known
    assert (failures.assumed, failures.best, failures.worst) == (0.05, 0.0, 0.16)
    more = named(recording, "daytona", replace(RUN, failure_rate=0.3, failure_burst=9))
    failures, burst = more["failure_rate"], more["failure_burst"]
    assert (failures.assumed, failures.best, failures.worst) == (0.3, 0.0, 0.3)
    assert (burst.assumed, burst.best, burst.worst) == (9, 9, 1)
    by_hour = named(recording, "daytona", replace(RUN, failure_hazard=3600 / 15.9))["failure_rate"]
    assert by_hour.assumed == pytest.approx(0.632, rel=0.02)  # 1 - 1 / e: attempts take 15.9 s


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


def test_the_dispatch_of_an_action_is_without_the_set_up(tmp_path: Path) -> None:
    trials = [trial(n, runs=[S - S // 5] * 3, setup=[(9 * S, S)]) for n in range(4)]
    assert named(load(write(tmp_path / "run.msgpack", trials)), "modal")["dispatch"].assumed == pytest.approx(0.2)


def test_a_stated_input_has_no_range(recording: Recording) -> None:
    assert "failure_rate" not in named(recording, "daytona", ASKED, frozenset({"failure_rate"}))
    stated = named(recording, "e2b:profile=e2b-pro,dispatch=100ms..300ms,slowdown=1")
    assert "limits" not in stated
    assert "work_speed" not in stated
    assert (stated["dispatch"].best, stated["dispatch"].worst) == (0.1, 0.3)
    assert "limits" not in named(recording, "e2b", replace(ASKED, quota=12))


def test_plans_go_from_loose_to_tight_with_the_disputed_one(recording: Recording) -> None:
    daytona = named(recording, "daytona")["limits"]
    ends = daytona.label(daytona.best), daytona.label(daytona.worst)
    assert ends == ("daytona (10 creates a second)", "daytona-disputed (0.0333 creates a second)")
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
