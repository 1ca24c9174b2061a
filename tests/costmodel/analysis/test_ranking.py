"""Which place is cheapest for the same work, by how much, how sure, and against which baseline."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from costmodel import Precision, Row, Think, TrainingRun, TrainingRunError, load
from costmodel.analysis.project import SubstrateRun, project, project_per_substrate
from costmodel.analysis.ranking import HELD_PER_SUCCESS, answer_of
from taxtui.report.headline import excess, headline, sentence
from tests.support.asking import ask
from tests.support.command_line import printed
from tests.support.cost_model.costmodel_files import S, cell, trial, write

RECORDINGS = Path(__file__).parents[3] / "recordings"
SHIPPED = [RECORDINGS / "short.msgpack", RECORDINGS / "gvisor.msgpack"]


def rows_of(*names: Path, **asked: Any) -> list[Row]:
    return project([load(name) for name in names], ask(**asked))


def cells(folder: Path, *spec: tuple[dict[str, Any], int], name: str = "a") -> Path:
    """A cell each, at 3 actions of which so many seconds are not work."""
    frames = [
        trial(10 * place + n, cell=place, block=n, create=(2 + n % 2) * S, actions=[(1 + more) * S] * 3, runs=[S] * 3)
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
                    assert low <= entry.ratio.value <= high
                    assert (low <= 1 <= high) == (entry.verdict.kind != "differs"), line.name
                    seen.add(entry.verdict.kind)
    assert seen >= {"differs", "tie"}


def test_the_headline_is_the_middle_of_the_works_that_most_did() -> None:
    found = answer_of(rows_of(RECORDINGS / "run.msgpack"))
    line = headline(found)
    assert line.name == "T1 50 exec"
    assert sentence(found) == (
        "docker:runc exec takes 3.48 ± 0.29 times as long as local:bwrap exec for T1 x 50; 31 ms of dispatch per "
        "action is 92 % of the difference. By session, docker:runc takes 1.45 ± 0.05 times as long as local:bwrap."
    )


def test_a_tie_and_what_one_run_cannot_tell_are_said(tmp_path: Path) -> None:
    file = cells(tmp_path, ({}, 1), ({"substrate": "local"}, 1))
    assert sentence(answer_of(rows_of(file))).startswith(
        "docker exec and local exec cannot be told apart for T2 x 3: 1.00 times ("
    )
    one, other = cells(tmp_path, ({}, 10), name="b"), cells(tmp_path, ({"substrate": "local"}, 9), name="c")
    said = sentence(answer_of(rows_of(one, other)))
    assert said.startswith("local exec and docker exec cannot be told apart for T2 x 3: 1.09 times (")


def test_none_of_those_that_tie_is_called_cheapest(tmp_path: Path) -> None:
    """Headline and table agree: what ties in the table is in one list of the headline."""
    file = cells(tmp_path, ({}, 1), ({"substrate": "kubernetes"}, 3), ({"substrate": "local"}, 0))
    said = sentence(answer_of(rows_of(file)))
    assert said.startswith("local exec is cheapest for T2 x 3: docker takes 1.46 ± ")
    assert "times as long, kubernetes 2.38 ± " in said
    assert said.endswith("; 3 s of dispatch per action is all of the difference between kubernetes and local.")
    said = sentence(answer_of(rows_of(file), baseline="docker"))
    assert said.startswith("docker exec is the baseline for T2 x 3; docker exec takes 1.46 ± ")
    with pytest.raises(TrainingRunError, match="no row for 'podman'"):
        answer_of(rows_of(file), baseline="podman")
    file = cells(tmp_path, ({}, 1), ({"substrate": "kubernetes"}, 3), ({"substrate": "local"}, 1))
    found = answer_of(rows_of(file))
    [tied] = [entry.place.name for entry in found.lines[0].ranked if entry.verdict and entry.verdict.kind == "tie"]
    said = sentence(found)
    assert tied == "local"
    assert said.startswith("docker exec and local exec cannot be told apart for T2 x 3; kubernetes exec takes 1.63 ± ")
    assert " times as long as docker exec; " in said
    assert "cheapest" not in said


def test_a_difference_that_is_small_beside_the_whole_is_a_percentage(tmp_path: Path) -> None:
    """Beside much think time dispatch is nearly all of the difference, and next to nothing of the whole."""
    file = cells(tmp_path, ({}, 1), ({"substrate": "local"}, 0))
    said = sentence(answer_of(rows_of(file, think=Think(600 * S))))
    assert said.startswith("docker exec takes 0.2487 ± ")
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
    assert (found.cause, found.share, found.per_action_s) == ("dispatch", pytest.approx(1), pytest.approx(3))
    assert excess(*reversed(rows)) is None
    published = rows_of(RECORDINGS.parent / "scenarios/published/essay.toml")
    assert excess(published[0], published[1]) is None
    said = sentence(answer_of(published))
    assert said.startswith("Daytona is cheapest for T2 x 50 (as published): Docker takes 1.09 times as long, ")


def test_one_substrate_alone_has_its_modes_in_the_headline(tmp_path: Path) -> None:
    rows = rows_of(cells(tmp_path, ({}, 3), ({"mode": "session"}, 0)))
    found = answer_of(rows)
    [one] = found.modes
    exec_row, session_row = rows
    assert one.ratio.value == pytest.approx(exec_row.worker_hours.value / session_row.worker_hours.value)
    assert one.verdict.kind == "differs"
    said = sentence(found)
    assert said.startswith(f"docker exec takes {one.ratio.value:.2f} ± ")
    assert "times as long as docker session for T2 x 3; " in said
    assert said.endswith(" of dispatch per action is all of the difference.")


def test_every_place_and_work_is_compared_in_table_and_json() -> None:
    rows = rows_of(RECORDINGS / "run.msgpack", trajectories=10**6, workers=500)
    found = answer_of(rows)
    assert len(found.modes) == 18
    asked = ["project", str(RECORDINGS / "run.msgpack"), "--trajectories", "1000000", "--workers", "500"]
    text = printed(*asked, "--full")
    assert "How many times as long exec takes as session" in text
    docker = next(one for one in found.modes if (one.name, one.place.name) == ("T1 50", "docker:runc"))
    assert f"{docker.ratio.value:.2f}x" in text
    records = json.loads(printed(*asked, "--format", "json"))
    told = {record["cell_id"]: record["answer"] for record in records}
    answer = told[docker.row.identity.cell_id]
    assert answer["session"] == docker.session.identity.cell_id
    assert answer["ratio_to_session"] == docker.ratio._asdict()
    assert answer["verdict_to_session"] == "differs"
    assert told[docker.session.identity.cell_id]["session"] is None


def two_substrates(folder: Path, slow: int = 3, **other: Any) -> Path:
    """docker: 3 s and 1 s an action (half of it work); the other: 4 s and ``slow`` s an action."""
    fast = [trial(n, block=n, create=(2 + n % 2) * S, runs=[S // 2] * 3) for n in range(6)]
    actions, runs = [slow * S] * 3, [S] * 3
    slower = [trial(n, cell=1, block=n, create=(3 + n % 2) * S, actions=actions, runs=runs) for n in range(10, 16)]
    return write(folder / "a", fast + slower, cell(0), cell(1, **{"substrate": "kubernetes"} | other))


def test_rows_are_compared_with_the_baseline(tmp_path: Path) -> None:
    file = two_substrates(tmp_path)
    docker, other = rows_of(file, baseline="docker", full_speed="docker")
    assert docker.versus is None
    assert other.versus.worker_hours.value == pytest.approx(7)
    assert other.versus.verdict.kind == "differs"
    assert other.versus.baseline == docker.identity.cell_id
    assert (other.by_cause_worker_hours.slowdown, other.by_cause_worker_hours.work) == pytest.approx((1.5, 1.5))
    assert docker.by_cause_worker_hours.slowdown == 0
    for wrong in ({"baseline": "podman"}, {"full_speed": "docker:runtime=runsc"}):
        with pytest.raises(TrainingRunError, match=f"no row for '{next(iter(wrong.values()))}'"):
            rows_of(file, **wrong)
    assert rows_of(two_substrates(tmp_path, slow=1), baseline="docker")[1].versus.verdict.kind == "differs"
    variants = two_substrates(tmp_path, substrate="docker", variant="runtime=runsc")
    assert rows_of(variants, baseline="docker:runtime=runsc")[1].versus is None
    assert [row.versus is None for row in rows_of(variants, baseline="docker")] == [True, False]


@pytest.mark.parametrize(
    ("differs", "compared", "flag"),
    [
        ({"environment": "elsewhere"}, True, "environment_differs"),
        ({"provenance": "stand_in"}, False, "provenance_differs"),
        ({"tier": "T1"}, False, None),
    ],
)
def test_comparisons_across_places_are_flagged_and_across_provenance_refused(
    tmp_path: Path, differs: dict[str, str], compared: bool, flag: str | None
) -> None:
    row = rows_of(two_substrates(tmp_path, **differs), baseline="docker")[1]
    assert (row.versus is not None) == compared
    assert [one for one in row.flags if one.endswith("_differs")] == ([flag] if flag else [])


def test_each_place_is_asked_its_own_and_compared_with_the_baseline_of_the_last(tmp_path: Path) -> None:
    cells = cell(0), cell(1, substrate="local"), cell(2, substrate="local", tier="T1", tier_digest="d1")
    trials = [trial(n, actions=(S + n,) * 3, cell=n % 3) for n in range(30)]
    recording = load(write(tmp_path / "run.msgpack", trials, *cells))
    here = TrainingRun(trajectories=100, workers=4, batch=20, precision=Precision(tolerance=0.2, effort=0.05))
    there = replace(here, train_s=30.0)
    places = [SubstrateRun("local", there, None), SubstrateRun("", here, None)]
    rows = project_per_substrate([recording], places)
    alone = {
        spec: project([recording], training_run, wanted=lambda identity, spec=spec: identity.substrate == spec)
        for spec, training_run in (("local", there), ("docker", here))
    }
    assert rows == [*alone["local"], *alone["docker"]]
    few = project_per_substrate([recording], places, wanted=lambda identity: identity.tier == "T1")
    assert [(row.identity.substrate, row.identity.tier) for row in few] == [("local", "T1")]
    places[-1] = SubstrateRun("", replace(here, baseline="docker"), None)
    [local] = project_per_substrate([recording], places, wanted=lambda identity: identity.tier == "T2")[:1]
    assert local.versus.label == "docker"
