"""Starts and figures as they were printed: dated, sourced, and refused where they cannot answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from costmodel import SourceError, TrainingRun, load, project
from costmodel.providers import plausible_ranges
from costmodel.providers.provider import published_figures

FACTS = {facts.name: facts for facts in published_figures()}


FIGURES = [figure for facts in FACTS.values() for figure in facts.figures]


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


def test_percentiles_of_times_to_the_first_command_are_of_all_samples() -> None:
    latest = {
        (start.substrate, start.concurrency): start
        for start in FACTS["computesdk.toml"].starts
        if str(start.date) == "2026-05-05"
    }
    assert (latest["daytona", 100].p95, latest["e2b", 100].p50, latest["runloop", 100].p95) == (0.741, 0.822, 12.483)


def test_a_range_of_a_decision_is_within_the_figures_of_its_provider() -> None:
    compared = 0
    for span in plausible_ranges.figures():
        if span.input == "dispatch":
            own = [one for one in FIGURES if (one.quantity, one.substrate) == ("dispatch", span.provider)]
            values = [value for one in own for value in (one.value, one.min, one.p50, one.max) if value is not None]
            assert min(values) <= span.low <= span.high <= max(values)
            compared += 1
    assert compared > 3


def test_starts_answer_nothing_alone(tmp_path: Path) -> None:
    path = tmp_path / "starts.toml"
    path.write_text('provenance = "published"\nsource = "a"\ndate = 2026-01-01\n[[starts]]\nsubstrate = "x"\np50 = 1\n')
    starts = load(path)
    with pytest.raises(SourceError, match=r"starts\.toml holds no latency of a trajectory .* --compose x"):
        project([starts], TrainingRun(trajectories=10, workers=1))


def test_a_table_has_what_the_file_says_unless_it_says_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "rows.toml"
    row = '[[rows]]\nsubstrate = "x"\nactions = 5\ntrajectory_s = 1\n'
    path.write_text(f'{HEAD}cpus = 2\nsource = "a"\n{row}{row}date = 2025-05-05\ncpus = 0.5\nsource = "b"\n')
    facts = load(path)
    assert [one.identity.cpu_milli for one in facts.rows] == [2000, 500]
    printed = [row.assumptions[0].source for row in project([facts], TrainingRun(trajectories=10, workers=1))]
    assert printed == ["a (2026-01-01)", "b (2025-05-05)"]


def test_figures_answer_nothing_and_say_what_they_are_for(tmp_path: Path) -> None:
    path = tmp_path / "acme.toml"
    path.write_text(f"{HEAD}source = 'a'\n{FIGURE}value = 1\n")
    with pytest.raises(SourceError, match=r"acme\.toml has figures for the page of taxtui site only, and no latency"):
        project([load(path)], TrainingRun(trajectories=10, workers=1))


FIGURE = '[[figures]]\nsubstrate = "x"\nquantity = "dispatch"\nunit = "s"\nmeasure = "round trip"\n'
HEAD = 'provenance = "published"\ndate = 2026-01-01\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('provenance = "published"\n[[starts]]\nsubstrate = "x"\np50 = 1', "each needs its date; add date"),
        (f"{HEAD}source = 'a'\n[[starts]]\nsubstrate = 'x'\np50 = 0", "start is a time above 0"),
        (f"{HEAD}source = 'a'\n[[starts]]\nsubstrate = 'x'\np50 = 300\nunit = 'ms'", "start is a time above 0"),
        (f"{HEAD}source = 'a'\n[[starts]]\nsubstrate = 'x'\np50 = 1e-12\np95 = 1e15", "from 1 ns to 292 years"),
        (
            f"{HEAD}source = 'a'\n[[starts]]\nsubstrate = 'x'\nquantity = 'scale'\nunit = 'ms'\np50 = 300",
            "each is a start; write other quantities under",
        ),
        (
            f"{HEAD}source = 'a'\n[[starts]]\nsubstrate = 'x'\np50 = 1\nburst = 3",
            r":7: starts\[1\].burst: unknown key; known: substrate, quantity",
        ),
        (f"{HEAD}{FIGURE}value = 1", "a figure needs its source; add source = "),
        (f"{HEAD}source = 'a'\n{FIGURE}", "no figure; give value, low and high, mean, or one of min, p50"),
        (f"{HEAD}source = 'a'\n{FIGURE}p50 = 2\np95 = 1", "min, p50, p90, p95, p99, max must ascend"),
        (f"{HEAD}source = 'a'\n{FIGURE}low = 2", "low and high must both be given"),
        (
            f"{HEAD}source = 'a'\n{FIGURE}value = 1".replace('"s"', '"ms"'),
            "dispatch is a time above 0",
        ),
        (
            f"{HEAD}source = 'a'\n{FIGURE}value = 2".replace('"s"', '"share"').replace("dispatch", "failures"),
            "a share must be at most 1",
        ),
    ],
)
def test_bad_figures_are_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(SourceError, match=message) as error:
        load(path)
    assert "\n" not in str(error.value)
