"""Shipped substrates agree with project and pages, recordings of removed ones are read, and no label is trusted."""

from __future__ import annotations

import json
import re
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import costmodel as cm
from costmodel.pricing.sheet import load_prices
from taxtui import shipped
from taxtui.cli import app
from taxtui.commands.doctor import PACKAGES
from taxtui.errors import SubstrateUnavailable, UsageError
from taxtui.plan.spec import SubstrateRef
from taxtui.sandboxes import registry
from taxtui.sandboxes.kit.labels import END_OF_TIME_S, LABEL_DEADLINE, LABEL_RUN, found
from taxtui.substrates.aws.connection import labelled as aws_found
from taxtui.substrates.docker.containers import entry_of as docker_found
from taxtui.tui import colours
from tests.support.command_line import printed

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
def test_a_row_has_an_extra_a_page_a_price_sheet_and_a_class(row: shipped.ShippedSubstrate) -> None:
    assert bool(row.extra) == bool(row.packages)
    assert set(row.packages) <= set(requirement_names(row.extra) if row.extra else ())
    assert set(row.packages) <= set(PACKAGES), "doctor prints their versions"
    titles = [page.read_text(encoding="utf-8").partition("\n")[0] for page in (ROOT / "docs/substrates").glob("*.md")]
    assert any(row.name in re.split(r"[ ,]+", title) for title in titles)
    if row.price_sheet:
        assert row.name in {price.substrate for price in load_prices(row.price_sheet).sandboxes}
    try:
        kind = registry.load(row.name)
    except SubstrateUnavailable:
        pytest.skip(f"the SDK of {row.name} is not installed")
    assert (kind.name, f"{kind.__module__}:{kind.__name__}") == (row.name, row.entry_point)


def test_a_substrate_without_a_row_gets_the_defaults() -> None:
    row = shipped.row_of("mine")
    assert (row.name, row.extra, row.price_sheet, row.here) == ("mine", "", "", False)
    assert (colours.glyph("mine:x"), colours.colour("mine")) == ("•", "#999999")


@pytest.mark.parametrize(
    ("name", "sheet"),
    [
        ("daytona", "daytona"),
        ("ecs", "aws-fargate"),
        ("local", "SHEET, as in"),
        ("harbor:environment=e2b", "e2b"),
        ("harbor:environment=islo", "SHEET, as in"),
    ],
)
def test_a_limit_in_dollars_names_the_price_sheet_of_the_substrate(name: str, sheet: str) -> None:
    words = ["run", "-s", name, "-t", "T0", "-n", "1", "--max-cost", "1"]
    done = CliRunner().invoke(app, words, standalone_mode=False)
    assert isinstance(done.exception, UsageError)
    assert done.exception.fix.startswith(f"add --prices {sheet}")


HELD_BY = {
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
    deadline, flag = HELD_BY[name]
    assert capabilities.deadline == deadline
    assert {"server_side_deadline", "guest_deadline"} & set(capabilities.flags()) == {flag} - {""}


DEADLINES = {
    "1700000000": 1_700_000_000,
    "0": 0,
    "": None,
    "soon": None,
    "-1": None,
    "1_000": None,
    " 7": None,
    "7\n": None,
    "²": None,
    "٣": None,
    "9" * 5000: END_OF_TIME_S,
    str(END_OF_TIME_S + 1): END_OF_TIME_S,
}


@pytest.mark.parametrize(("text", "deadline"), DEADLINES.items(), ids=lambda value: repr(value)[:12])
def test_a_deadline_in_a_label_is_whole_seconds_or_nothing(text: str, deadline: int | None) -> None:
    labels = {LABEL_RUN: "r1", LABEL_DEADLINE: text}
    got = found(labels, name="n", handle="h", age_s=-0.5)
    assert (got.run_id, got.deadline_unix_s, got.age_s) == ("r1", deadline, 0.0)
    of_docker = docker_found({"Names": ["/n"], "Id": "h", "Created": time.time(), "Labels": labels})
    of_aws = aws_found([{"Key": key, "Value": value} for key, value in labels.items()], "h", time.time())
    for entry in (of_docker, of_aws):
        assert entry is not None
        assert entry.deadline_unix_s == deadline


RECORDING = ROOT / "recordings/layers.msgpack"
REMOVED = ("nspawn", "runsc:ptrace", "uml")


@pytest.mark.parametrize("label", REMOVED)
def test_rows_of_a_removed_substrate_are_reported(label: str) -> None:
    assert label.partition(":")[0] not in registry.names()
    rows = json.loads(printed("report", RECORDING, "--substrate", label, "--format", "json"))
    assert len(rows) == 5
    assert {row["answer"]["place"] for row in rows} == {label}
    assert all(row["trajectory_ns"]["p50"]["value"] > 0 for row in rows)


def test_a_removed_substrate_is_projected_exported_and_loaded_but_cannot_be_measured(tmp_path: Path) -> None:
    words = ("--trajectories", "1000", "--workers", "10", "--tier", "T1", "--format", "json")
    rows = json.loads(printed("project", RECORDING, *words))
    assert {row["substrate"] for row in rows} == {"local", "ssh", "nspawn", "docker", "runsc", "uml"}
    assert all(row["worker_hours"] is not None for row in rows)
    printed("export", RECORDING, "--format", "csv", "-o", tmp_path / "rows.csv")
    assert "nspawn" in (tmp_path / "rows.csv").read_text()
    assert {"nspawn", "runsc", "uml"} <= {cell.identity.substrate for cell in cm.load(RECORDING).cells}
    assert "unknown substrate 'nspawn'" in printed("run", "-s", "nspawn", "-t", "T0", "-n", "1", code=2)
