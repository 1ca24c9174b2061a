"""``taxtui doctor -s``: checks the substrates that are named, with their options."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from taxtui.commands.doctor import command
from taxtui.errors import UsageError


def rows(*args: str, exit_code: int = 0) -> list[dict[str, object]]:
    done = CliRunner().invoke(command, [*args, "--format", "json"], catch_exceptions=False)
    assert done.exit_code == exit_code
    found: list[dict[str, object]] = json.loads(done.stdout)
    return found


def test_a_substrate_is_checked_with_its_options_under_the_name_that_was_given() -> None:
    [row] = rows("-s", "local:isolation=plain")
    assert (row["name"], row["ok"], row["variant"]) == ("local:isolation=plain", True, "plain")


@pytest.mark.parametrize(
    ("ref", "detail"), [("local:isolated=plain", "no option 'isolated'"), ("local:isolation=no", "isolation")]
)
def test_an_option_that_it_does_not_take_is_its_answer(ref: str, detail: str) -> None:
    [row] = rows("-s", ref, exit_code=3)
    assert row["ok"] is False
    assert detail in str(row["detail"])


def test_a_problem_is_never_cut_apart() -> None:
    [row] = rows("-s", "local:iso; lation=plain", exit_code=3)
    assert (row["detail"], row["fix"]) == ("local has no option 'iso; lation'", "did you mean 'isolation'?")


@pytest.mark.parametrize(("ref", "words"), [("docer", "unknown substrate 'docer'"), ("docker:runsc", "not an option")])
def test_what_is_no_substrate_is_refused(ref: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        CliRunner().invoke(command, ["-s", ref], catch_exceptions=False)


@pytest.mark.parametrize(
    ("args", "exit_code"),
    [
        (["-s", "local:isolation=plain"], 0),
        (["-s", "local:isolation=plain", "-s", "docker:host=unix:///nonexistent"], 3),
    ],
)
def test_what_was_named_and_cannot_be_used_is_the_exit_code(args: list[str], exit_code: int) -> None:
    done = CliRunner().invoke(command, args, catch_exceptions=False)
    assert done.exit_code == exit_code
    assert done.stdout.count("\n") == args.count("-s")  # the table is complete all the same


def test_a_usable_substrate_says_which_process_holds_its_deadline() -> None:
    done = CliRunner().invoke(command, ["-s", "local:isolation=plain"], catch_exceptions=False)
    assert done.stdout.rstrip().endswith("; deadline: none")
    unusable = CliRunner().invoke(command, ["-s", "local:isolation=no"], catch_exceptions=False)
    assert "deadline" not in unusable.stdout
