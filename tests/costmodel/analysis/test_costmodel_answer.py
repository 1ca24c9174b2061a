"""Which place is cheapest for the same work, by how much, how sure, and what the difference consists of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from costmodel.analysis.headline import sentence
from costmodel.analysis.project import project
from costmodel.analysis.ranking import HELD_PER_SUCCESS, Answer, answer_of, excess, headline
from costmodel.errors import TrainingRunError
from costmodel.projection.row import Row
from costmodel.recording.reader import load
from costmodel.statistics.verdict import judge, ratio
from costmodel.training.run import Think
from tests.support.asking import ask
from tests.support.cost_model.costmodel_files import S, cell, trial, write
from tests.support.cost_model.simulated_runs import estimated

RECORDINGS = Path(__file__).parents[3] / "recordings"
SHIPPED = [RECORDINGS / "short.msgpack", RECORDINGS / "gvisor.msgpack"]


def rows_of(*names: Path, **asked: Any) -> list[Row]:
    return project([load(name) for name in names], ask(**asked))


def cells(folder: Path, *spec: tuple[dict[str, Any], int], name: str = "a") -> Path:
    """A cell each, at 3 actions of which so many seconds are not work."""
    frames = [
        trial(10 * place + n, cell=place, create=(2 + n % 2) * S, actions=[(1 + more) * S] * 3, runs=[S] * 3)
        for place, (_, more) in enumerate(spec)
        for n in range(6)
    ]
    return write(folder / name, frames, *(cell(place, **fields) for place, (fields, _) in enumerate(spec)), run_id=name)


def test_works_are_lines_in_order_and_substrates_are_columns() -> None:
    found = answer_of(rows_of(*SHIPPED))
    assert [place.name for place in found.places] == ["local:bwrap", "docker:runc", "docker:runsc"]
    names = [line.name for line in found.lines]
    assert names[:4] == ["T0 10 exec", "T0 10 session", "T0 50 exec", "T0 50 session"]
    assert [len(line.ranked) for line in found.lines] == [3, 3, 3, 3, 0, 0] * 2 + [2] * 2
    line = found.lines[0]
    assert line.reference == found.places[0]
    assert [entry.verdict and entry.verdict.kind for entry in line.entries] == [None, "differs", "differs"]


def test_a_ratio_spans_one_exactly_where_the_verdict_is_no_difference() -> None:
    """One rule decides both, paired within a run and across runs."""
    seen = set()
    for baseline in (None, "docker"):
        for line in answer_of(rows_of(RECORDINGS / "run.msgpack", SHIPPED[1]), baseline=baseline).lines:
            for entry in line.entries:
                if entry.verdict is not None and entry.ratio is not None:
                    low, high = entry.ratio.low, entry.ratio.high
                    assert low is not None
                    assert high is not None
                    assert low <= entry.ratio.value <= high
                    assert (low <= 1 <= high) == (entry.verdict.kind != "differs"), line.name
                    seen.add(entry.verdict.kind)
    assert seen >= {"differs", "tie"}


def test_the_ends_of_a_ratio_are_where_the_difference_becomes_a_tie() -> None:
    from costmodel.statistics.repetitions import assumed

    one, other = estimated([[9.0, 10.0, 12.0] * 5]), estimated([[3.0, 3.5, 4.0] * 5])
    found = ratio(one, other, assumed("local"))
    assert found is not None
    for end, name in ((found.low, "low"), (found.high, "high")):
        assert end is not None
        at_end = judge(one, other.scaled(end), assumed("local")).value
        assert getattr(at_end, name) == pytest.approx(0, abs=1e-3)


def test_the_headline_is_the_middle_of_the_works_that_most_did() -> None:
    found = answer_of(rows_of(RECORDINGS / "run.msgpack"))
    line = headline(found)
    assert line is not None
    assert line.name == "T1 50 exec"
    assert sentence(found) == (
        "docker:runc exec runs 3.48 ± 0.29 times longer than local:bwrap exec for T1 x 50; 31 ms of dispatch per "
        "action is 92 % of the difference. By session, docker:runc runs 1.45 ± 0.05 times longer than local:bwrap."
    )


def test_both_measures_rank_alike() -> None:
    rows = rows_of(RECORDINGS / "small.msgpack", SHIPPED[0])
    hours, held = answer_of(rows), answer_of(rows, HELD_PER_SUCCESS)
    for one, other in zip(hours.lines, held.lines, strict=True):
        assert [entry.place for entry in one.ranked] == [entry.place for entry in other.ranked]


def test_several_places_are_named_with_the_cheapest_or_the_baseline(tmp_path: Path) -> None:
    file = cells(tmp_path, ({}, 1), ({"substrate": "kubernetes"}, 3), ({"substrate": "local"}, 0))
    said = sentence(answer_of(rows_of(file)))
    assert said.startswith("local exec is cheapest for T2 x 3: docker runs 1.46 ± ")
    assert "times longer, kubernetes 2.38 ± " in said
    assert said.endswith("; 3 s of dispatch per action is all of the difference between kubernetes and local.")
    said = sentence(answer_of(rows_of(file), baseline="docker"))
    assert said.startswith("docker exec is the baseline for T2 x 3; docker exec runs 1.46 ± ")
    with pytest.raises(TrainingRunError, match="no row for 'podman'"):
        answer_of(rows_of(file), baseline="podman")


def test_a_tie_and_what_one_run_cannot_tell_are_said(tmp_path: Path) -> None:
    file = cells(tmp_path, ({}, 1), ({"substrate": "local"}, 1))
    assert sentence(answer_of(rows_of(file))).startswith(
        "docker exec and local exec cannot be told apart for T2 x 3: 1.00 times ("
    )
    one, other = cells(tmp_path, ({}, 10), name="b"), cells(tmp_path, ({"substrate": "local"}, 9), name="c")
    said = sentence(answer_of(rows_of(one, other)))
    assert (
        "docker exec runs 9.0 ± 27.2 % longer than local exec for T2 x 3, but that cannot be told from one run" in said
    )


def test_none_of_those_that_tie_is_called_cheapest(tmp_path: Path) -> None:
    """Headline and table agree: what ties in the table is in one list of the headline."""
    file = cells(tmp_path, ({}, 1), ({"substrate": "kubernetes"}, 3), ({"substrate": "local"}, 1))
    found = answer_of(rows_of(file))
    [tied] = [entry.place.name for entry in found.lines[0].ranked if entry.verdict and entry.verdict.kind == "tie"]
    said = sentence(found)
    assert tied == "local"
    assert said.startswith("docker exec and local exec cannot be told apart for T2 x 3; kubernetes exec runs 1.63 ± ")
    assert " times longer than docker exec; " in said
    assert "cheapest" not in said


def test_a_difference_that_is_small_beside_the_whole_is_a_percentage(tmp_path: Path) -> None:
    """Beside much think time dispatch is nearly all of the difference, and next to nothing of the whole."""
    file = cells(tmp_path, ({}, 1), ({"substrate": "local"}, 0))
    said = sentence(answer_of(rows_of(file, think=Think(600 * S))))
    assert said.startswith("docker exec runs 0.25 ± ")
    assert " % longer than local exec for T2 x 3; 1 s of dispatch per action is all of the difference." in said


def test_one_place_and_places_without_common_work_say_what_is_missing(tmp_path: Path) -> None:
    alone = answer_of(
        [row for row in rows_of(RECORDINGS / "small.msgpack") if row.identity.mode == "exec"], HELD_PER_SUCCESS
    )
    assert headline(alone) is None
    assert sentence(alone) == (
        "local:bwrap exec takes 150 ms per trajectory for T0 x 10, 90 % of it tax; there is nothing to compare it "
        "with: measure another substrate at the same work."
    )
    apart = answer_of(rows_of(cells(tmp_path, ({}, 1), ({"substrate": "local", "mode": "session"}, 1))))
    assert sentence(apart).startswith("docker and local share no work")
    assert [line.ranked for line in apart.lines] == [(), ()]


def test_only_one_ground_is_ranked(tmp_path: Path) -> None:
    """A stand-in's row is shown beside measured ones; alone with its like it is compared."""
    stand_in = {"substrate": "kubernetes", "provenance": "stand_in"}
    found = answer_of(rows_of(cells(tmp_path, ({}, 1), (stand_in, 0), ({"substrate": "local"}, 3))))
    (line,) = found.lines
    assert [place.label for place in found.unranked] == ["kubernetes"]
    assert [entry.place.label for entry in line.ranked] == ["docker", "local"]
    beside = line.at(found.unranked[0])
    assert beside is not None
    assert (beside.ratio, beside.verdict) == (None, None)
    both = answer_of(rows_of(cells(tmp_path, (stand_in, 0), (stand_in | {"substrate": "local"}, 3), name="b")))
    assert "(as stand-in)" in sentence(both)


def test_what_else_differs_sets_works_and_places_apart(tmp_path: Path) -> None:
    found = answer_of(rows_of(cells(tmp_path, ({}, 1), ({"memory_mib": 2048}, 2))))
    assert [line.name for line in found.lines] == ["T2 3 exec memory_mib 1024", "T2 3 exec memory_mib 2048"]
    assert [place.name for place in found.places] == ["docker"]
    found = answer_of(rows_of(cells(tmp_path, ({}, 1), ({"environment": "elsewhere"}, 3), name="b")))
    assert [place.name for place in found.places] == ["docker #1", "docker #2"]
    assert found.places[1].differs == "environment elsewhere"
    assert "on another machine" in sentence(found)


def test_what_is_not_known_of_both_is_no_reason(tmp_path: Path) -> None:
    rows = rows_of(cells(tmp_path, ({}, 3), ({"substrate": "local"}, 0)))
    found = excess(*rows)
    assert found is not None
    assert (found.cause, found.share, found.per_action_s) == ("dispatch", pytest.approx(1), pytest.approx(3))
    assert excess(*reversed(rows)) is None
    published = rows_of(RECORDINGS.parent / "scenarios/published/essay.toml")
    assert excess(published[0], published[1]) is None
    said = sentence(answer_of(published))
    assert said.startswith("Daytona is cheapest for T2 x 50 (as published): Docker runs 1.09 times longer, ")


def test_an_answer_is_for_notebooks_too() -> None:
    import costmodel

    rows = costmodel.project([costmodel.load(SHIPPED[0])], costmodel.TrainingRun(trajectories=1, workers=1))
    found = costmodel.answer_of(rows)
    assert isinstance(found, Answer)
    assert costmodel.sentence(found).startswith("docker:runc exec runs ")
