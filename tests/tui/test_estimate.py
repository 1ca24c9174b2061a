"""How long and how dear a plan is said to be, against recordings whose durations are known to the nanosecond."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from costmodel.pricing import load_prices
from taxtui import scenario
from taxtui.events import Cell, Event
from taxtui.scenario import CellBlock, ScenarioFile
from taxtui.spec import Plan
from taxtui.tui import estimate, library
from taxtui.tui.availability import Answer
from taxtui.tui.estimate import Reader, Table, expect, time_words
from taxtui.tui.expense import Expense, dollars, expense
from tests.tui import story
from tests.tui.recorded import record
from tests.tui.story import MS, S

TRIAL_NS = (40 + 20 + 2 + 10 * 5 + 10) * MS
"""Of ``story.trial`` as it is by default; ten actions of 5 ms each."""


def never() -> bool:
    return False


def told(cells: Sequence[Cell], trials: int = 3, **durations: Any) -> list[Event]:
    """A recording of these cells, every trial alike."""
    plans = [story.planned(cell.substrate, cell.tier, cell.actions, trials) for cell in cells]
    events: list[Event] = [story.header(plans), story.clock(), *cells]
    for number in range(trials * len(cells)):
        cell = number % len(cells)
        events += story.trial(
            number,
            cell,
            number * S,
            durations_ns=[5 * MS] * cells[cell].actions,
            warm_up=number < len(cells),
            **durations,
        )
    return events


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the recordings are, and nothing else is."""
    monkeypatch.setattr(library, "default_folder", lambda: tmp_path)
    monkeypatch.setattr(library, "SHIPPED", ())
    monkeypatch.setattr(estimate, "listing", lambda: library.scan().entries)
    return tmp_path


def write(folder: Path, name: str, events: list[Event], age_s: int = 0) -> Path:
    path = record(folder / f"{name}.msgpack", events)
    when = 1_700_000_000 - age_s
    os.utime(path, (when, when))
    return path


def started(events: list[Event], unix_s: int) -> list[Event]:
    return [events[0], story.clock(unix_ns=unix_s * S), *events[2:]]


def plan(*blocks: Mapping[str, Any], **more: Any) -> Plan:
    usual = {"substrates": ["docker"], "tiers": ["T0"], "actions": [10], "trials": 100, "warmup": 0}
    cells = [msgspec.convert({**usual, **block}, CellBlock) for block in blocks or [{}]]
    return scenario.plan(ScenarioFile(cells=cells, **more), Path())


def words(asked: Plan, table: Table, **variants: str) -> str:
    return time_words(asked, expect(asked, table, variants))


RUNC = story.cell(0, "docker", "runc")


def test_a_plan_takes_the_mean_of_the_recorded_trials(folder: Path) -> None:
    write(folder, "a", told([RUNC]))
    table = Reader().table(never)
    [one] = expect(plan({"warmup": 2}), table, {"docker": "runc"})
    assert one.trial_ns == TRIAL_NS
    assert one.wall_ns == 102 * TRIAL_NS
    assert words(plan(), table, docker="runc") == "~12 s, estimated from 1 recording"


@pytest.mark.parametrize(
    ("block", "trials"),
    [
        ({"concurrency": 4}, 25),
        ({"concurrency": 4, "trials": 101}, 26),
        ({"concurrency": 4, "warmup": 3}, 28),  # warm-ups run one at a time
        ({"concurrency": 4, "arrival": "burst"}, 25),
    ],
)
def test_trials_in_flight_share_the_time(folder: Path, block: Mapping[str, Any], trials: int) -> None:
    write(folder, "a", told([RUNC]))
    [one] = expect(plan(block), Reader().table(never), {})
    assert one.wall_ns == trials * TRIAL_NS


def test_staggered_trials_wait_for_their_turn(folder: Path) -> None:
    write(folder, "a", told([RUNC]))
    [one] = expect(plan({"concurrency": 4, "arrival": "staggered:500ms"}), Reader().table(never), {})
    assert one.wall_ns == 25 * (TRIAL_NS + 3 * 500 * MS)


@pytest.mark.parametrize(("actions", "difference"), [(12, 2), (9, -1), (30, 30 - 50), (45, 45 - 50), (60, 60 - 50)])
def test_a_length_that_was_not_recorded_comes_from_the_nearest(folder: Path, actions: int, difference: int) -> None:
    write(folder, "a", told([RUNC, story.cell(1, "docker", "runc", actions=50)]))
    nearest_ns = TRIAL_NS + (40 * 5 * MS if actions in (45, 60) else 0)
    if actions == 30:  # as far from 10 as from 50
        nearest_ns, difference = TRIAL_NS, 30 - 10
    [one] = expect(plan({"actions": [actions]}), Reader().table(never), {})
    assert one.trial_ns == nearest_ns + difference * 5 * MS


def test_think_time_is_added(folder: Path) -> None:
    write(folder, "a", told([RUNC]))
    [one] = expect(plan({"think": "2s"}), Reader().table(never), {})
    assert one.trial_ns == TRIAL_NS + 10 * 2 * S


def test_the_newest_recording_of_a_cell_counts(folder: Path) -> None:
    write(folder, "z_old", started(told([RUNC, story.cell(1, "docker", "runc", "T1")], create_ns=4 * S), 1_000))
    write(folder, "a_new", started(told([RUNC]), 2_000))
    both = plan({"tiers": ["T0", "T1"], "trials": 10})
    t0, t1 = expect(both, Reader().table(never), {})
    assert (t0.trial_ns, t1.trial_ns) == (TRIAL_NS, TRIAL_NS + 3960 * MS)
    assert words(both, Reader().table(never)) == "~42 s, estimated from 2 recordings"


def test_the_same_concurrency_comes_before_one_at_a_time_and_that_before_others(folder: Path) -> None:
    wide = [msgspec.structs.replace(RUNC, id=n, concurrency=c) for n, c in enumerate((8, 1, 4))]
    events = told(wide)
    write(folder, "a", events)
    table = Reader().table(never)
    for asked, taken in ((4, 4), (8, 8), (2, 1), (1, 1)):
        [one] = expect(plan({"concurrency": asked}), table, {})
        assert one.trial is not None
        assert one.trial.concurrency == taken


@pytest.mark.parametrize(
    ("asked", "variants", "recorded", "taken"),
    [
        ("docker", {}, ["runsc", "runc"], "runsc"),  # not checked yet: the one recorded last
        ("docker", {"docker": "runc"}, ["runsc", "runc"], "runc"),
        ("docker", {"docker": "kata"}, ["runsc", "runc"], None),
        ("docker:runtime=runsc", {}, ["runc", "runsc"], "runsc"),
        ("docker:runtime=kata", {}, ["runc", "runsc"], None),
        ("docker:runtime=runsc,image=mine", {}, ["runsc"], None),  # nothing says that it was this image
        ("docker:runtime=runsc,image=mine", {"docker:image=mine,runtime=runsc": "runsc"}, ["runc", "runsc"], "runsc"),
        ("docker:launch_type=FARGATE,spot=true", {}, ["fargate", "fargate_spot"], "fargate_spot"),
        ("docker:runtime=gvisor", {}, ["runtime=gvisor,node=a"], "runtime=gvisor,node=a"),
    ],
)
def test_options_are_told_by_the_variant(
    folder: Path, asked: str, variants: Mapping[str, str], recorded: Sequence[str], taken: str | None
) -> None:
    for age, variant in enumerate(recorded):
        write(folder, f"r{age}", started(told([story.cell(0, "docker", variant)]), 9_000 - age))
    [one] = expect(plan({"substrates": [asked]}), Reader().table(never), variants)
    assert (one.trial.label if one.trial else None) == (f"docker:{taken}" if taken else None)


@pytest.mark.parametrize("change", [{"provenance": "stand_in"}, {"think": "8s"}, {"acquire": "reset"}])
def test_what_was_not_a_plain_trial_of_the_real_thing_does_not_count(folder: Path, change: Mapping[str, str]) -> None:
    write(folder, "a", told([msgspec.structs.replace(RUNC, **change)]))
    assert words(plan(), Reader().table(never)) == "unknown for docker: no recording of it yet"


def test_a_cell_whose_trials_all_failed_does_not_count(folder: Path) -> None:
    write(folder, "a", told([RUNC], outcome="failed"))
    assert words(plan(), Reader().table(never)) == "unknown for docker: no recording of it yet"


def test_nothing_is_known_of_a_sandbox_that_is_reset(folder: Path) -> None:
    write(folder, "a", told([RUNC]))
    assert words(plan({"acquire": "reset"}), Reader().table(never)).startswith("unknown for docker")


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({"substrates": ["docker", "ec2"]}, "~12 s + ec2 (not measured yet), estimated from 1 recording"),
        ({"tiers": ["T0", "T2"]}, "~12 s + docker T2 (not measured yet), estimated from 1 recording"),
        ({"modes": ["exec", "session"]}, "~12 s + docker T0 session (not measured yet), estimated from 1 recording"),
        ({"substrates": ["ec2", "ecs"]}, "unknown for ec2, ecs: no recording of it yet"),
        (
            {"substrates": ["a", "b", "c", "d", "e"]},
            "unknown for a, b, c and 2 more: no recording of it yet",
        ),
    ],
)
def test_what_is_not_measured_is_named_as_coarsely_as_that_is_true(
    folder: Path, block: Mapping[str, Any], said: str
) -> None:
    write(folder, "a", told([RUNC]))
    assert words(plan(block), Reader().table(never)) == said


@pytest.mark.parametrize(
    ("budget", "block", "said"),
    [
        ("3m", {}, "~12 s, estimated from 1 recording"),
        ("5s", {}, "at most 5 s, the budget (~12 s without it, estimated from 1 recording)"),
        ("3m", {"substrates": ["ec2"]}, "at most 3 min, the budget; unknown for ec2: no recording of it yet"),
        (
            "3m",
            {"substrates": ["docker", "ec2"]},
            "at most 3 min, the budget (~12 s + ec2 (not measured yet) without it, estimated from 1 recording)",
        ),
    ],
)
def test_a_budget_cuts_the_time(folder: Path, budget: str, block: Mapping[str, Any], said: str) -> None:
    write(folder, "a", told([RUNC]))
    assert words(plan(block, budget=budget), Reader().table(never)) == said


def test_substrates_take_turns_unless_they_run_side_by_side(folder: Path) -> None:
    write(folder, "a", told([RUNC, story.cell(1, "local", "bwrap")]))
    table = Reader().table(never)
    both = {"substrates": ["docker", "local"]}
    assert words(plan(both), table).startswith("~24 s,")
    assert words(plan(both, side_by_side=True), table).startswith("~12 s,")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.2, "1 s"), (89.4, "89 s"), (90, "2 min"), (22 * 60, "22 min"), (80 * 60, "80 min"), (5 * 3600, "5 h 0 min")],
)
def test_an_estimate_is_said_no_more_exactly_than_it_is_known(seconds: float, said: str) -> None:
    assert estimate.about(seconds * 1e9) == said


# ------------------------------------------------------------------------------------------------------ reading them


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the recordings that were read."""
    seen: list[str] = []

    class Follower(estimate.Follower):
        def __init__(self, path: Path) -> None:
            seen.append(path.name)
            super().__init__(path)

    monkeypatch.setattr(estimate, "Follower", Follower)
    return seen


def test_a_recording_is_read_again_only_when_it_has_changed(folder: Path, opened: list[str]) -> None:
    path = write(folder, "a", told([RUNC]))
    reader = Reader()
    assert len([reader.table(never) for _ in range(3)]) == 3
    assert opened == ["a.msgpack"]
    path.unlink()
    write(folder, "a", told([RUNC], create_ns=S), age_s=5)
    [one] = expect(plan(), reader.table(never), {})
    assert (one.trial_ns, len(opened)) == (TRIAL_NS + 960 * MS, 2)
    path.unlink()
    assert words(plan(), reader.table(never)).startswith("unknown")


def test_only_so_much_is_read_and_the_newest_first(
    folder: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = [write(folder, f"r{n}", started(told([RUNC]), 9_000 - n)).stat().st_size for n in range(4)]
    monkeypatch.setattr(estimate, "MOST_BYTES", sum(sizes[:2]) + 1)
    Reader().table(never)
    assert opened == ["r0.msgpack", "r1.msgpack"]


def test_reading_stops_when_it_is_told_to(folder: Path, opened: list[str]) -> None:
    for n in range(3):
        write(folder, f"r{n}", started(told([RUNC]), 9_000 - n))
    reader = Reader()
    reader.table(lambda: len(opened) > 1)
    assert opened == ["r0.msgpack", "r1.msgpack"]
    assert words(plan(), reader.table(never)) == "~12 s, estimated from 1 recording"
    assert opened[2:] == ["r1.msgpack", "r2.msgpack"]


@pytest.mark.parametrize("damage", [lambda data: data[:-40], lambda data: data[:-40] + b"x" * 40 + data[:50]])
def test_what_comes_before_the_damage_counts(folder: Path, damage: Callable[[bytes], bytes]) -> None:
    path = write(folder, "a", told([RUNC], trials=40))
    path.write_bytes(damage(path.read_bytes()))
    (folder / "b.msgpack").write_bytes(b"no recording at all")
    (folder / "c.msgpack").write_bytes(b"")
    assert words(plan(), Reader().table(never)) == "~12 s, estimated from 1 recording"


def test_a_shipped_recording_is_said_to_be_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(folder, "a", told([RUNC]))
    monkeypatch.setattr(library, "bundled", lambda name: path)
    monkeypatch.setattr(library, "SHIPPED", ("a",))
    assert words(plan(), Reader().table(never)) == "~12 s, estimated from 1 shipped recording"


# ------------------------------------------------------------------------------------------------------------- money

ECS = Answer(
    name="ecs", ok=True, variant="fargate", detail="ready …: --prices aws-fargate", capabilities={"paid": True}
)
ANSWERS = {
    "docker": Answer(name="docker", ok=True, variant="runc"),
    "ecs": ECS,
    "daytona": Answer(name="daytona", ok=True, variant="", capabilities={"paid": True}),
    "kubernetes": Answer(name="kubernetes", ok=False, detail="kubernetes is not installed"),
}
HOUR_USD = 0.04048 + 0.004445
"""Of 1 vCPU and 1 GiB by the shipped sheet."""


def cost(block: Mapping[str, Any], table: Table | None = None, sheet: str = "", most: str = "", **more: Any) -> Expense:
    asked = plan({"warmup": 1, **block}, **more)
    return expense(asked, expect(asked, table or Table(), {}), ANSWERS, sheet, most)


@pytest.fixture
def measured(folder: Path) -> Table:
    """ecs:fargate takes two minutes a trial, and docker what it takes."""
    write(folder, "a", told([RUNC]))
    write(folder, "b", told([story.cell(0, "ecs", "fargate")], create_ns=2 * 60 * S - TRIAL_NS + 40 * MS))
    return Reader().table(never)


def test_what_is_free_costs_nothing_and_needs_no_limit() -> None:
    assert cost({"substrates": ["docker"]}) == Expense("docker $0")


def test_what_is_not_known_to_be_free_is_not_said_to_be() -> None:
    assert cost({"substrates": ["kubernetes", "local"]}).words == (
        "kubernetes: unknown, it cannot be used · local: not checked yet"
    )


def test_a_measured_substrate_costs_its_time_and_is_held_to_half_as_much_again(measured: Table) -> None:
    found = cost({"substrates": ["docker", "ecs"]}, measured)
    usd = 101 * HOUR_USD * 120 / 3600
    assert found.words == f"docker $0 · ecs ~${usd:.2f} (max $0.23)"
    assert found.options == ("--max-sandboxes", "202", "--max-cost", "0.23", "--prices", "aws-fargate")
    assert found.questions == {"ecs": f"ecs: up to 101 sandboxes, about ${usd:.2f}, stops at $0.23."}
    assert (found.obstacle, found.sheet, found.paid) == ("", "aws-fargate", True)
    assert 1.5 * usd <= 0.23 < 1.5 * usd + 0.01


def test_the_least_that_is_billed_counts_where_nothing_was_measured() -> None:
    found = cost({"substrates": ["ecs"], "trials": 1000})
    least = 1001 * HOUR_USD * 60 / 3600
    assert found.words == f"ecs from ${least:.2f} (max $1.50)"
    assert 2 * least <= 1.50 < 2 * least + 0.01
    assert f"at least ${least:.2f} (not measured yet), stops at $1.50." in found.questions["ecs"]


def test_a_short_trial_is_billed_its_minimum(folder: Path) -> None:
    write(folder, "a", told([story.cell(0, "ecs", "fargate")]))
    usd = 1001 * HOUR_USD * 60 / 3600
    found = cost({"substrates": ["ecs"], "trials": 1000}, Reader().table(never))
    assert found.words.startswith(f"ecs ~${usd:.2f} (max")


def test_a_budget_makes_it_cheaper(measured: Table) -> None:
    whole, part = (cost({"substrates": ["ecs"]}, measured, budget=text) for text in ("", "20m"))
    assert whole.words == "ecs ~$0.15 (max $0.23)"
    assert part.words == "ecs ~$0.01 (max $0.03)"  # 10 of 101 trials of two minutes


def test_without_a_price_only_the_number_is_limited() -> None:
    found = cost({"substrates": ["daytona"]})
    assert found.words == "daytona: price unknown; without a price sheet, no limit in dollars"
    assert found.options == ("--max-sandboxes", "101")
    assert "price is not known" in found.questions["daytona"]
    assert found.obstacle == ""


def test_a_run_is_counted_by_one_sheet_or_by_none(measured: Table, tmp_path: Path) -> None:
    both = {"substrates": ["ecs", "daytona"]}
    found = cost(both, measured)
    assert found.words == "ecs ~$0.15 · daytona: price unknown; without a price sheet, no limit in dollars"
    assert found.options == ("--max-sandboxes", "202")
    sheet = tmp_path / "mine.toml"
    stanza = '[[sandbox]]\nsubstrate="{}"\nusd_per_hour={}\nminimum_s=3600\nincrement_s=1\nsource="s"\n'
    sheet.write_text("date=2026-01-01\n" + stanza.format("ecs", 1) + stanza.format("daytona", 2))
    found = cost(both, measured, str(sheet))
    assert found.words == "ecs ~$101.00 · daytona from $202.00 (max $555.50 in all)"
    assert found.options[2:] == ("--max-cost", "555.50", "--prices", str(sheet))
    assert found.questions["ecs"].endswith("the whole run stops at $555.50.")


def test_the_variant_decides_the_price(measured: Table, tmp_path: Path) -> None:
    sheet = tmp_path / "mine.toml"
    stanza = '[[sandbox]]\nsubstrate="ecs"\n{}usd_per_hour={}\nminimum_s=3600\nincrement_s=1\nsource="s"\n'
    sheet.write_text("date=2026-01-01\n" + stanza.format("", 9) + stanza.format('variant="fargate"\n', 1))
    assert cost({"substrates": ["ecs"]}, measured, str(sheet)).words.startswith("ecs ~$101.00")


@pytest.mark.parametrize(
    ("most", "limit"), [("2.6", "2.60"), ("$3", "3.00"), ("0.01", "0.01"), ("1000", "1000.00"), ("2.605", "2.60")]
)
def test_a_person_may_set_the_limit(most: str, limit: str) -> None:
    found = cost({"substrates": ["ecs"]}, most=most)
    assert found.options[2:4] == ("--max-cost", limit)


@pytest.mark.parametrize(
    ("block", "sheet", "most", "more", "obstacle"),
    [
        ({"substrates": ["ecs"]}, "nowhere.toml", "", {}, "no price sheet 'nowhere.toml'; give the path of one, or a"),
        ({"substrates": ["daytona"]}, "aws-fargate", "", {}, "has no price for daytona; add a [[sandbox]] for it"),
        ({"substrates": ["daytona"]}, "", "3", {}, "a limit in dollars needs one price sheet"),
        ({"substrates": ["daytona"]}, "", "", {"max_cost_usd": 3.0}, "a limit in dollars needs one price sheet"),
        ({"substrates": ["ecs"]}, "", "0", {}, "the limit in dollars must be a number from 0.01 up, not '0'"),
        ({"substrates": ["ecs"]}, "", "1.2.3", {}, "the limit in dollars must be a number from 0.01 up"),
        ({"substrates": ["ecs"]}, "/dev/null", "", {}, "no price sheet '/dev/null'"),
    ],
)
def test_a_limit_that_cannot_be_kept_is_refused(
    block: Mapping[str, Any], sheet: str, most: str, more: Mapping[str, Any], obstacle: str
) -> None:
    found = cost(block, None, sheet, most, **more)
    assert obstacle in found.obstacle
    assert "\n" not in found.obstacle
    assert found.options == ()


def test_a_broken_sheet_is_refused(tmp_path: Path) -> None:
    sheet = tmp_path / "mine.toml"
    sheet.write_text("date = soon")
    assert str(sheet) in cost({"substrates": ["ecs"]}, None, str(sheet)).obstacle


def test_a_scenario_keeps_its_own_limits() -> None:
    found = cost({"substrates": ["ecs"]}, max_sandboxes=7, max_cost_usd=0.5)
    assert found.options == ("--max-sandboxes", "7", "--max-cost", "0.50", "--prices", "aws-fargate")


@pytest.mark.parametrize("sandboxes", ["--prices FILE", "--prices no-such-sheet"])
def test_only_a_sheet_that_ships_is_taken_unasked(sandboxes: str) -> None:
    answer = msgspec.structs.replace(ECS, detail=f"billed by the second: {sandboxes}")
    asked = plan({"substrates": ["ecs"]})
    assert "price unknown" in expense(asked, expect(asked, Table(), {}), {"ecs": answer}).words


def test_the_shipped_sheet_is_the_one_that_these_numbers_are_from() -> None:
    [price] = load_prices("aws-fargate").sandboxes
    assert price.usd_per_vcpu_hour + price.usd_per_gib_hour == HOUR_USD


@pytest.mark.parametrize(
    ("usd", "said"), [(0, "$0"), (0.004, "<$0.01"), (0.01, "~$0.01"), (1.836, "~$1.84"), (12_345.6, "~$12,346")]
)
def test_dollars_are_readable(usd: float, said: str) -> None:
    assert dollars(usd, about="~") == said
