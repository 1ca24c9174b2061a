"""How long a plan takes and what it costs, against recordings whose durations are known to the nanosecond."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from costmodel.recording.events import Cell, Event
from taxtui.plan import scenario
from taxtui.plan.scenario import CellBlock, ScenarioFile
from taxtui.plan.spec import Plan
from taxtui.report.plan_cost import CheckedSubstrate, Expense, expense
from taxtui.report.plan_time import HistoryReader, PastTrial, expect, time_words
from tests.taxtui.tui import story
from tests.taxtui.tui.story import MS, S, record

RUNC = story.cell(0, "docker", "runc")
TRIAL_NS = (40 + 20 + 2 + 10 * 5 + 10) * MS
"""Of ``story.trial`` as it is by default; ten actions of 5 ms each."""


def told(cells: Sequence[Cell], trials: int = 3, **durations: Any) -> list[Event]:
    """A recording of these cells, every trial alike."""
    plans = [story.planned(cell.substrate, cell.tier, cell.actions, trials) for cell in cells]
    events: list[Event] = [story.header(plans), story.clock(), *cells]
    for number in range(trials * len(cells)):
        cell = number % len(cells)
        taken_ns = [5 * MS] * cells[cell].actions
        warm_up = number < len(cells)
        events += story.trial(number, cell, number * S, durations_ns=taken_ns, warm_up=warm_up, **durations)
    return events


def write(folder: Path, name: str, events: list[Event], age_s: int = 0) -> Path:
    """Record it, as last written to some time ago."""
    path = record(folder / f"{name}.msgpack", events)
    when = 1_700_000_000 - age_s
    os.utime(path, (when, when))
    return path


def plan(block: Mapping[str, Any] | None = None, **more: Any) -> Plan:
    usual = {"substrates": ["docker"], "tiers": ["T0"], "actions": [10], "trials": 100, "warmup": 0}
    cell = msgspec.convert({**usual, **(block or {})}, CellBlock)
    return scenario.plan(ScenarioFile(cells=[cell], **more), Path())


def history(reader: HistoryReader | None = None) -> list[PastTrial]:
    return (reader or HistoryReader()).read(lambda: False)


def words(asked: Plan, trials: list[PastTrial], **variants: str) -> str:
    return time_words(asked, expect(asked, trials, variants))


@pytest.fixture
def trials(only_recordings: Path) -> list[PastTrial]:
    """Of one recording."""
    write(only_recordings, "a", told([RUNC]))
    return history()


@pytest.mark.parametrize(
    ("block", "wall_ns"),
    [
        ({"warmup": 2}, 102 * TRIAL_NS),
        ({"concurrency": 4}, 25 * TRIAL_NS),
        ({"concurrency": 4, "trials": 101}, 26 * TRIAL_NS),
        ({"concurrency": 4, "warmup": 3}, 28 * TRIAL_NS),  # warm-ups run one at a time
        ({"concurrency": 4, "arrival": "burst"}, 25 * TRIAL_NS),
        ({"think": "2s"}, 100 * (TRIAL_NS + 10 * 2 * S)),
    ],
)
def test_a_plan_takes_the_mean_of_the_recorded_trials_which_share_the_time(
    trials: list[PastTrial], block: Mapping[str, Any], wall_ns: int
) -> None:
    [one] = expect(plan(block), trials, {"docker": "runc"})
    assert one.wall_ns == wall_ns


@pytest.mark.parametrize(("actions", "difference"), [(12, 2), (9, -1), (30, 30 - 50), (45, 45 - 50), (60, 60 - 50)])
def test_a_length_that_was_not_recorded_is_as_the_nearest(only_recordings: Path, actions: int, difference: int) -> None:
    write(only_recordings, "a", told([RUNC, story.cell(1, "docker", "runc", actions=50)]))
    nearest_ns = TRIAL_NS + (40 * 5 * MS if actions in (45, 60) else 0)
    if actions == 30:  # as far from 10 as from 50
        nearest_ns, difference = TRIAL_NS, 30 - 10
    [one] = expect(plan({"actions": [actions]}), history(), {})
    assert one.trial_ns == nearest_ns + difference * 5 * MS


def test_the_newest_recording_of_a_cell_counts(only_recordings: Path) -> None:
    both = [RUNC, story.cell(1, "docker", "runc", "T1")]
    for name, cells, unix_s, create_ns in (("z_old", both, 1_000, 4 * S), ("a_new", both[:1], 2_000, 40 * MS)):
        events = told(cells, create_ns=create_ns)
        events[1] = story.clock(unix_ns=unix_s * S)
        write(only_recordings, name, events)
    asked = plan({"tiers": ["T0", "T1"], "trials": 10})
    t0, t1 = expect(asked, history(), {})
    assert (t0.trial_ns, t1.trial_ns) == (TRIAL_NS, TRIAL_NS + 3960 * MS)
    assert words(asked, history()) == "~42 s, estimated from 2 recordings"


@pytest.mark.parametrize("change", [{"provenance": "stand_in"}, {"think": "8s"}, {"acquire": "reset"}])
def test_only_plain_measured_trials_estimate_plain_trials(only_recordings: Path, change: Mapping[str, str]) -> None:
    write(only_recordings, "a", told([msgspec.structs.replace(RUNC, **change)]))
    assert words(plan(), history()) == "unknown for docker: no recording of it yet"


BOTH = {"substrates": ["docker", "ec2"]}
REST = "(not measured yet), estimated from 1 recording"


@pytest.mark.parametrize(
    ("block", "budget", "said"),
    [
        ({}, "", "~12 s, estimated from 1 recording"),
        (BOTH, "", f"~12 s + ec2 {REST}"),
        ({"tiers": ["T0", "T2"]}, "", f"~12 s + docker T2 {REST}"),
        (
            {"modes": ["exec", "session"]},
            "",
            "~12 s + docker T0 session (not measured yet), estimated from 1 recording",
        ),
        ({"substrates": ["a", "b", "c", "d", "e"]}, "", "unknown for a, b, c and 2 more: no recording of it yet"),
        ({}, "3m", "~12 s, estimated from 1 recording"),
        ({}, "5s", "at most 5 s, the budget (~12 s without it, estimated from 1 recording)"),
        (
            BOTH,
            "3m",
            "at most 3 min, the budget (~12 s + ec2 (not measured yet) without it, estimated from 1 recording)",
        ),
    ],
)
def test_the_time_is_cut_by_a_budget_and_what_is_not_measured_is_named_as_coarsely_as_that_is_true(
    trials: list[PastTrial], block: Mapping[str, Any], budget: str, said: str
) -> None:
    assert words(plan(block, **({"budget": budget} if budget else {})), trials, docker="runc") == said


def test_a_recording_that_has_changed_is_read_again(only_recordings: Path) -> None:
    path = write(only_recordings, "a", told([RUNC]))
    reader = HistoryReader()
    history(reader)
    path.unlink()
    write(only_recordings, "a", told([RUNC], create_ns=S), age_s=5)
    [one] = expect(plan(), history(reader), {})
    assert one.trial_ns == TRIAL_NS + 960 * MS
    path.unlink()
    assert words(plan(), history(reader)).startswith("unknown")


@pytest.mark.parametrize("damage", [lambda data: data[:-40], lambda data: data[:-40] + b"x" * 40 + data[:50]])
def test_what_comes_before_the_damage_counts(only_recordings: Path, damage: Callable[[bytes], bytes]) -> None:
    path = write(only_recordings, "a", told([RUNC], trials=40))
    path.write_bytes(damage(path.read_bytes()))
    (only_recordings / "b.msgpack").write_bytes(b"no recording at all")
    (only_recordings / "c.msgpack").write_bytes(b"")
    assert words(plan(), history()) == "~12 s, estimated from 1 recording"


ECS = CheckedSubstrate(name="ecs", ok=True, variant="fargate", prices="aws-fargate", capabilities={"paid": True})
ANSWERS = {
    "docker": CheckedSubstrate(name="docker", ok=True, variant="runc"),
    "ecs": ECS,
    "daytona": CheckedSubstrate(name="daytona", ok=True, variant="", capabilities={"paid": True}),
    "kubernetes": CheckedSubstrate(name="kubernetes", ok=False, detail="kubernetes is not installed"),
}
VARIANTS = {name: answer.variant for name, answer in ANSWERS.items() if answer.variant is not None}
HOUR_USD = 0.04048 + 2 * 0.004445 + 0.005  # 1 GiB is sold as 2, with a public address
"""Of 1 vCPU and 1 GiB by the shipped sheet."""


def cost(*substrates: str, known: list[PastTrial] | None = None, sheet: str = "", **more: Any) -> Expense:
    asked = plan({"warmup": 1, "substrates": list(substrates), "trials": more.pop("trials", 100)}, **more)
    return expense(asked, expect(asked, known or [], VARIANTS), ANSWERS, sheet)


@pytest.fixture
def measured(only_recordings: Path, trials: list[PastTrial]) -> list[PastTrial]:
    """ecs:fargate takes two minutes a trial, and docker what it takes."""
    write(only_recordings, "b", told([story.cell(0, "ecs", "fargate")], create_ns=2 * 60 * S - TRIAL_NS + 40 * MS))
    return history()


def test_what_is_free_costs_nothing_and_what_is_not_known_to_be_free_is_not_said_to_be() -> None:
    assert cost("docker") == Expense("docker $0")
    assert cost("kubernetes", "local").words == "kubernetes: unknown, not available · local: not checked yet"


def test_a_measured_substrate_costs_its_time_and_is_held_to_half_as_much_again(measured: list[PastTrial]) -> None:
    found = cost("docker", "ecs", known=measured)
    usd = 101 * HOUR_USD * 120 / 3600
    assert found.words == f"docker $0 · ecs ~${usd:.2f} (max $0.28)"
    assert found.options == ("--max-sandboxes", "202", "--max-cost", "0.28", "--prices", "aws-fargate")
    assert found.questions == {"ecs": f"ecs: up to 101 sandboxes, about ${usd:.2f}, stops at $0.28."}
    assert (found.obstacle, found.paid) == ("", True)
    assert 1.5 * usd <= 0.28 < 1.5 * usd + 0.01


def test_the_least_that_is_billed_counts_where_nothing_was_measured() -> None:
    found = cost("ecs", trials=1000)
    least = 1001 * HOUR_USD * 60 / 3600
    assert found.words == f"ecs from ${least:.2f} (max $1.82)"
    assert 2 * least <= 1.82 < 2 * least + 0.01
    assert f"at least ${least:.2f} (not measured yet), stops at $1.82." in found.questions["ecs"]


def test_without_a_price_only_the_number_is_limited() -> None:
    found = cost("daytona")
    assert found.words == "daytona: price unknown; without a price sheet, no limit in dollars"
    assert found.options == ("--max-sandboxes", "101")
    assert "price is unknown" in found.questions["daytona"]
    assert found.obstacle == ""


def test_a_run_is_counted_by_one_sheet_or_by_none(measured: list[PastTrial], tmp_path: Path) -> None:
    found = cost("ecs", "daytona", known=measured)
    assert found.words == "ecs ~$0.18 · daytona: price unknown; without a price sheet, no limit in dollars"
    assert found.options == ("--max-sandboxes", "202")
    sheet = tmp_path / "mine.toml"
    stanza = '[[sandbox]]\nsubstrate="{}"\nusd_per_hour={}\nminimum_s=3600\nincrement_s=1\nsource="s"\n'
    sheet.write_text("date=2026-01-01\n" + stanza.format("ecs", 1) + stanza.format("daytona", 2))
    found = cost("ecs", "daytona", known=measured, sheet=str(sheet))
    assert found.words == "ecs ~$101.00 · daytona from $202.00 (max $555.50 in all)"
    assert found.options[2:] == ("--max-cost", "555.50", "--prices", str(sheet))
    assert found.questions["ecs"].endswith("the whole run stops at $555.50.")


@pytest.mark.parametrize(
    ("substrate", "sheet", "more", "obstacle"),
    [
        ("ecs", "nowhere.toml", {}, "cannot read nowhere.toml: No such file or directory; shipped"),
        ("ecs", "pyproject.toml", {}, "pyproject.toml:"),  # no price sheet
        ("ecs", "x" * 5000, {}, "File name too long"),
        ("daytona", "aws-fargate", {}, "has no price for daytona; add a [[sandbox]] for it"),
        ("daytona", "", {"max_cost_usd": 3.0}, "a limit in dollars needs one price sheet"),
        ("ecs", "/dev/null", {}, "cannot read /dev/null: not a regular file"),
    ],
)
def test_a_limit_that_cannot_be_kept_is_refused(
    substrate: str, sheet: str, more: Mapping[str, Any], obstacle: str
) -> None:
    found = cost(substrate, sheet=sheet, **more)
    assert obstacle in found.obstacle
    assert "\n" not in found.obstacle
    assert found.options == ()


@pytest.mark.parametrize("sheet", ["", "no-such-sheet", "../prices/aws-fargate"])
def test_only_a_sheet_that_ships_is_taken_unasked(sheet: str) -> None:
    answer = msgspec.structs.replace(ECS, prices=sheet, detail="billed by the second: --prices aws-fargate")
    asked = plan({"substrates": ["ecs"]})
    assert "price unknown" in expense(asked, expect(asked, [], {}), {"ecs": answer}).words
