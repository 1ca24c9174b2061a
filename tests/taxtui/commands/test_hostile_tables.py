"""Whatever a recording calls things, every table in every format shows it as text, within its columns."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, example, given, seed, settings

from taxtui.cli import app
from taxtui.commands import export, report
from taxtui.errors import TaxtuiError
from taxtui.terminal_text import UNPRINTABLE, width
from tests.support.fuzz import hostile
from tests.taxtui.tui import story

COLUMNS = 80
DEMAND = ("--trajectories", "1000", "--workers", "10")


def choices(command: click.Command, option: str) -> list[str]:
    [kind] = [each.type for each in command.params if f"--{option}" in each.opts]
    return list(kind.choices)


def commands() -> Iterator[tuple[str, ...]]:
    for each in choices(report.command, "table"):
        yield "report", "A", "--table", each
    for one in choices(report.command, "format"):
        yield "report", "A", "--full", "--format", one
        yield "compare", "A", "B", "--format", one
        yield "project", "A", *DEMAND, "--full", "--format", one
    yield "project", "A", *DEMAND, "--explain"
    for one in choices(export.command, "format"):
        for table in choices(export.command, "table"):
            yield "export", "A", "--format", one, "--table", table
    yield "recordings", "info", "A"
    yield "recordings", "verify", "A"


@pytest.mark.parametrize("words", commands(), ids=" ".join)
@seed(18)
@settings(max_examples=1, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(one=hostile.names, other=hostile.names)
@example(one="[/]", other="[red]\x1b[31m")
@example(one=hostile.WIDE, other="e\u0301" * 50)
@example(one='\u202e\u200b,"\n', other="\t=1+1|")
def test_names_are_text_in_every_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], one: str, other: str
) -> None:
    monkeypatch.chdir(tmp_path)  # its path is a person's own, and told as long as it is
    for path in tmp_path.iterdir():
        path.unlink()
    for name in "AB":
        story.record(
            tmp_path / name, [hostile.renamed(event, one, other) for event in story.run(8)], run_id=f"{one}{name}"
        )
    done = CliRunner().invoke(app, words, standalone_mode=False, terminal_width=COLUMNS)
    if isinstance(done.exception, TaxtuiError):
        assert "\n" not in str(done.exception)
        return
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    lines = done.stdout.splitlines()
    kind = words[words.index("--format") + 1] if "--format" in words else "table"
    assert not any(map(UNPRINTABLE.search, lines)), kind
    if kind == "table" and words[0] != "recordings":  # those are lines, not tables
        assert max(map(width, lines), default=0) <= COLUMNS
    elif kind == "csv":
        rows = list(csv.reader(io.StringIO(done.stdout)))
        assert len({len(row) for row in rows}) <= 1
        assert not any(cell.startswith(("=", "@", "\t")) for row in rows for cell in row)
    elif kind == "json":
        json.loads(done.stdout)
    elif kind == "jsonl":
        assert all(isinstance(json.loads(line), dict) for line in lines)
