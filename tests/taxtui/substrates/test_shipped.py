"""The table of shipped substrates agrees with pyproject.toml, the pages, the price sheets and the adapters."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from costmodel.pricing.sheet import load_prices
from taxtui import shipped
from taxtui.cli import app
from taxtui.commands.doctor import PACKAGES
from taxtui.errors import SubstrateUnavailable, UsageError
from taxtui.plan.spec import SubstrateRef
from taxtui.sandboxes import registry
from taxtui.tui import colours

ROOT = Path(__file__).parents[3]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ROWS = list(shipped.SUBSTRATES.values())


def requirement_names(extra: str) -> list[str]:
    found = (re.match(r"[\w.-]+", line) for line in PROJECT["optional-dependencies"][extra])
    return [match[0] for match in found if match]


def test_entry_points_are_those_of_the_project() -> None:
    assert {row.name: row.entry_point for row in ROWS} == PROJECT["entry-points"]["taxtui.substrates"]
    assert set(shipped.SUBSTRATES) <= set(registry.names())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_an_extra_installs_the_packages_whose_versions_doctor_prints(row: shipped.ShippedSubstrate) -> None:
    assert bool(row.extra) == bool(row.packages)
    if row.extra:
        assert set(row.packages) <= set(requirement_names(row.extra))
    assert set(row.packages) <= set(PACKAGES)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_has_a_page_and_its_price_sheet_has_its_prices(row: shipped.ShippedSubstrate) -> None:
    titles = [page.read_text(encoding="utf-8").partition("\n")[0] for page in (ROOT / "docs/substrates").glob("*.md")]
    assert any(row.name in re.split(r"[ ,]+", title) for title in titles)
    if row.price_sheet:
        assert row.name in {price.substrate for price in load_prices(row.price_sheet).sandboxes}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_class_behind_a_row_has_its_name(row: shipped.ShippedSubstrate) -> None:
    try:
        kind = registry.load(row.name)
    except SubstrateUnavailable:
        pytest.skip(f"the SDK of {row.name} is not installed")
    assert kind.name == row.name
    assert f"{kind.__module__}:{kind.__name__}" == row.entry_point


def test_a_substrate_without_a_row_gets_the_defaults() -> None:
    row = shipped.row_of("mine")
    assert (row.name, row.extra, row.price_sheet, row.here) == ("mine", "", "", False)
    assert (colours.glyph("mine:x"), colours.colour("mine")) == ("•", "#999999")


SHEETS = [
    ("daytona", "daytona"),
    ("ecs", "aws-fargate"),
    ("local", "SHEET, as in"),
    ("harbor:environment=e2b", "e2b"),
    ("harbor:environment=islo", "SHEET, as in"),
]


@pytest.mark.parametrize(("name", "sheet"), SHEETS)
def test_a_limit_in_dollars_names_the_price_sheet_of_the_substrate(name: str, sheet: str) -> None:
    words = ["run", "-s", name, "-t", "T0", "-n", "1", "--max-cost", "1"]
    done = CliRunner().invoke(app, words, standalone_mode=False)
    assert isinstance(done.exception, UsageError)
    assert done.exception.fix.startswith(f"add --prices {sheet}")


DEADLINES = {
    **dict.fromkeys(("kubernetes", "daytona"), ("provider", "server_side_deadline")),
    **dict.fromkeys(("docker", "ssh", "ec2", "ecs"), ("guest", "guest_deadline")),
    **dict.fromkeys(("local", "swerex", "inspect", "harbor"), ("none", "")),
}


@pytest.mark.parametrize("name", shipped.SUBSTRATES)
def test_a_substrate_declares_and_records_which_process_holds_its_deadline(name: str) -> None:
    try:
        capabilities = registry.build(SubstrateRef(name=name)).capabilities
    except SubstrateUnavailable:
        pytest.skip(f"the SDK of {name} is not installed")
    deadline, flag = DEADLINES[name]
    assert capabilities.deadline == deadline
    assert {"server_side_deadline", "guest_deadline"} & set(capabilities.flags()) == {flag} - {""}
