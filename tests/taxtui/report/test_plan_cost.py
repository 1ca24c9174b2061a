"""What a plan is said to cost, and the limits that it is launched with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from taxtui.report.plan_cost import CheckedSubstrate, Expense, expense
from taxtui.report.plan_time import HistoryReader, PastTrial, expect
from tests.taxtui.tui import story
from tests.taxtui.tui.earlier import RUNC, TRIAL_NS, never, only_here, plan, told, write
from tests.taxtui.tui.story import MS, S

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


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the recordings are."""
    only_here(tmp_path, monkeypatch)
    return tmp_path


def cost(block: Mapping[str, Any], trials: list[PastTrial] | None = None, sheet: str = "", **more: Any) -> Expense:
    asked = plan({"warmup": 1, **block}, **more)
    return expense(asked, expect(asked, trials or [], VARIANTS), ANSWERS, sheet)


@pytest.fixture
def measured(folder: Path) -> list[PastTrial]:
    """ecs:fargate takes two minutes a trial, and docker what it takes."""
    write(folder, "a", told([RUNC]))
    write(folder, "b", told([story.cell(0, "ecs", "fargate")], create_ns=2 * 60 * S - TRIAL_NS + 40 * MS))
    return HistoryReader().read(never)


def test_what_is_free_costs_nothing_and_needs_no_limit() -> None:
    assert cost({"substrates": ["docker"]}) == Expense("docker $0")


def test_what_is_not_known_to_be_free_is_not_said_to_be() -> None:
    assert cost({"substrates": ["kubernetes", "local"]}).words == (
        "kubernetes: unknown, not available · local: not checked yet"
    )


def test_a_measured_substrate_costs_its_time_and_is_held_to_half_as_much_again(measured: list[PastTrial]) -> None:
    found = cost({"substrates": ["docker", "ecs"]}, measured)
    usd = 101 * HOUR_USD * 120 / 3600
    assert found.words == f"docker $0 · ecs ~${usd:.2f} (max $0.28)"
    assert found.options == ("--max-sandboxes", "202", "--max-cost", "0.28", "--prices", "aws-fargate")
    assert found.questions == {"ecs": f"ecs: up to 101 sandboxes, about ${usd:.2f}, stops at $0.28."}
    assert (found.obstacle, found.paid) == ("", True)
    assert 1.5 * usd <= 0.28 < 1.5 * usd + 0.01


def test_the_least_that_is_billed_counts_where_nothing_was_measured() -> None:
    found = cost({"substrates": ["ecs"], "trials": 1000})
    least = 1001 * HOUR_USD * 60 / 3600
    assert found.words == f"ecs from ${least:.2f} (max $1.82)"
    assert 2 * least <= 1.82 < 2 * least + 0.01
    assert f"at least ${least:.2f} (not measured yet), stops at $1.82." in found.questions["ecs"]


def test_without_a_price_only_the_number_is_limited() -> None:
    found = cost({"substrates": ["daytona"]})
    assert found.words == "daytona: price unknown; without a price sheet, no limit in dollars"
    assert found.options == ("--max-sandboxes", "101")
    assert "price is unknown" in found.questions["daytona"]
    assert found.obstacle == ""


def test_a_run_is_counted_by_one_sheet_or_by_none(measured: list[PastTrial], tmp_path: Path) -> None:
    both = {"substrates": ["ecs", "daytona"]}
    found = cost(both, measured)
    assert found.words == "ecs ~$0.18 · daytona: price unknown; without a price sheet, no limit in dollars"
    assert found.options == ("--max-sandboxes", "202")
    sheet = tmp_path / "mine.toml"
    stanza = '[[sandbox]]\nsubstrate="{}"\nusd_per_hour={}\nminimum_s=3600\nincrement_s=1\nsource="s"\n'
    sheet.write_text("date=2026-01-01\n" + stanza.format("ecs", 1) + stanza.format("daytona", 2))
    found = cost(both, measured, str(sheet))
    assert found.words == "ecs ~$101.00 · daytona from $202.00 (max $555.50 in all)"
    assert found.options[2:] == ("--max-cost", "555.50", "--prices", str(sheet))
    assert found.questions["ecs"].endswith("the whole run stops at $555.50.")


@pytest.mark.parametrize(
    ("block", "sheet", "more", "obstacle"),
    [
        ({"substrates": ["ecs"]}, "nowhere.toml", {}, "cannot read nowhere.toml: No such file or directory; shipped"),
        ({"substrates": ["ecs"]}, "pyproject.toml", {}, "pyproject.toml:"),  # no price sheet
        ({"substrates": ["ecs"]}, "x" * 5000, {}, "File name too long"),
        ({"substrates": ["daytona"]}, "aws-fargate", {}, "has no price for daytona; add a [[sandbox]] for it"),
        ({"substrates": ["daytona"]}, "", {"max_cost_usd": 3.0}, "a limit in dollars needs one price sheet"),
        ({"substrates": ["ecs"]}, "/dev/null", {}, "cannot read /dev/null: not a regular file"),
    ],
)
def test_a_limit_that_cannot_be_kept_is_refused(
    block: Mapping[str, Any], sheet: str, more: Mapping[str, Any], obstacle: str
) -> None:
    found = cost(block, None, sheet, **more)
    assert obstacle in found.obstacle
    assert "\n" not in found.obstacle
    assert found.options == ()


@pytest.mark.parametrize("sheet", ["", "no-such-sheet", "../prices/aws-fargate"])
def test_only_a_sheet_that_ships_is_taken_unasked(sheet: str) -> None:
    answer = msgspec.structs.replace(ECS, prices=sheet, detail="billed by the second: --prices aws-fargate")
    asked = plan({"substrates": ["ecs"]})
    assert "price unknown" in expense(asked, expect(asked, [], {}), {"ecs": answer}).words
