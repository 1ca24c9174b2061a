"""Options of a training run: on the command line, by ``--set``, and in a training file; each reaches its field."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import click
import pytest

from costmodel import Images, Length, Think, TrainingRun, TrainingRunError
from costmodel import load as load_recording
from costmodel.projection.diagnostics import option, used_by
from taxtui.errors import UsageError
from taxtui.options.training import GROUPS, OPTIONS, TYPED, as_typed, asked_at, training_run_of
from taxtui.options.training_file import EXAMPLES, TEMPLATE, field_of, load
from taxtui.options.training_runs import name_sections
from tests.docs.pages import blocks
from tests.support.command_line import printed
from tests.support.cost_model.asked_training_runs import ASKED, STEP_MODEL_ASKED

TABLES = {field_of(option): table for table, group in GROUPS.items() for option in group.options}


def parsed(*words: str, **how: Any) -> click.Context:
    return click.Command("project", params=list(OPTIONS)).make_context("project", list(words), **how)


def asked(*words: str) -> TrainingRun:
    params = parsed(*words).params
    del params["prices"]
    return training_run_of(params)


def written(folder: Path, text: str) -> str:
    path = folder / "lab.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


WHOLE = """
[run]
trajectories = "1M"
workers = 2_000
[length]
actions = "80-120"
[think]
think = "lognormal:8s,1.2"
[policy]
batch = "1,024"
over_provision = 0.2
[trainer]
train_s = 60
gpus = 512
gpu_usd_hour = 2
"""


def test_a_file_is_the_options_that_it_stands_for_and_an_option_beside_it_wins(tmp_path: Path) -> None:
    options = """
        --trajectories 1000000 --workers 2000 --length 80-120 --think lognormal:8s,1.2
        --batch 1024 --over-provision 0.2 --train-seconds 60 --gpus 512
        --set gpu_usd_hour=2""".split()  # noqa: SIM905
    training_run = asked("--training", written(tmp_path, WHOLE))
    assert training_run == asked(*options)
    assert (training_run.trajectories, training_run.batch, training_run.train_s) == (1_000_000, 1024, 60)
    assert training_run.think == Think(8_000_000_000, 1.2)
    assert training_run.length == Length.weighted(dict.fromkeys(range(80, 121), 1))
    changed = asked("--workers", "7k", "--training", written(tmp_path, WHOLE), "--gpus", "8")
    assert (changed.workers, changed.gpus, changed.trajectories) == (7_000, 8, 1_000_000)


def test_the_example_of_every_key_is_valid(tmp_path: Path) -> None:
    assert set(EXAMPLES) == set(TABLES)
    tables = {table: "" for table in TABLES.values()}
    for field, example in EXAMPLES.items():
        tables[TABLES[field]] += f"{field} = {example}\n"
    text = "".join(f"[{table}]\n{lines}" for table, lines in tables.items())
    parsed("--training", written(tmp_path, text), resilient_parsing=True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[run]\nworker = 3", "[run] worker is unknown; [run] knows trajectories, workers,.*[run] workers = 2000"),
        ("[run]\ngpus = 3", "[run] gpus is not in this table; write [trainer] gpus = 512"),
        ("gpus = 3", "gpus stands outside its table; write [trainer] gpus = 512"),
        ("[gpu]\ngpus = 3", "there is no [gpu] in a training file; known: workload, run, length,.*sources"),
        ("[run]\nworkers = true", "[run] workers must be a number or a text, not True; write [run] workers = 2000"),
        ("[run]\nworkers = 'many'", "[run] workers: 'many' is no count.*; write [run] workers = 2000"),
        ("[run]\ninclude_cleanup = 'yes'", "[run] include_cleanup must be true or false, not 'yes'"),
        ("[policy]\npolicy = 'chaos'", "[policy] policy: 'chaos' is not one of.*; write [policy] policy = \"sync\""),
        ("[sources]\nworker = 'x'", "[sources] worker = 'x' is not the source of a key"),
        ("sources = 3", "sources must be a table"),
        ("[at.docker.limits]\nquotas = 1", "[at.docker.limits] quotas is unknown"),
        ("[at.docker]\nquota = 1", "quota stands outside its table; write [at.docker.limits] quota = 1000"),
        ("at = 3", "[at] holds tables of one substrate each; write [at.docker.nodes] nodes = 125"),
        ("[run]\nworkers = nan", ":2: run.workers: must be a finite number, not nan"),
    ],
)
def test_a_bad_file_is_one_line_with_an_example(tmp_path: Path, text: str, words: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        asked("--training", path)
    line = str(caught.value)
    assert line.startswith(path)
    assert "\n" not in line
    for part in words.split(".*"):
        assert part in line


def test_a_contradiction_is_reported_with_keys_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "[run]\ntrajectories = 9\nworkers = 3\n[trainer]\ngpu_usd_hour = 2\n")
    with pytest.raises(UsageError) as caught:
        asked("--training", path)
    assert str(caught.value).startswith(f"{path}: a GPU price needs a number of GPUs")
    assert str(caught.value).endswith("in the file: [trainer] gpus = 512")
    with pytest.raises(TrainingRunError):
        asked("--trajectories", "9", "--workers", "3", "--set", "gpu_usd_hour=2")


def test_the_printed_template_is_a_training_file(tmp_path: Path) -> None:
    training_run = asked("--training", written(tmp_path, TEMPLATE))
    assert (training_run.trajectories, training_run.workers, training_run.gpus) == (1_000_000, 512, 64)
    commented = re.sub(r"^# (?=\[|\w+ = )", "", TEMPLATE, flags=re.MULTILINE)
    there = asked_at("docker", parsed("--training", written(tmp_path, commented)))
    assert (there["nodes"], there["pods_per_node"]) == (8, 64)
    assert there["file"].sources == {"gpu_usd_hour": "our contract of 2026"}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("--set quota", "--set quota: a value is missing; write --set nodes=125"),
        ("--set quotas=1", "--set quotas=1: unknown key 'quotas'; did you mean 'quota'?"),
        ("--set quota=x", "--set: quota: 'x' is no count"),
        ("--set include_cleanup=1", "--set include_cleanup=1: include_cleanup is true or false"),
        ("--gpu-usd-hour 2", "--gpu-usd-hour is no option here; write --set gpu_usd_hour=VALUE"),
    ],
)
def test_a_change_that_cannot_be_read_is_one_line(words: str, line: str) -> None:
    assert printed("project", "x", *words.split(), code=2).startswith(line)


def test_the_keys_of_the_page_are_keys(tmp_path: Path) -> None:
    [page] = blocks("decide.md", "toml")
    file = load(written(tmp_path, page), {table: group.options for table, group in GROUPS.items()})
    assert (file.values["gpus"], set(file.at)) == (512, {"docker", "daytona"})


def test_values_of_one_substrate_have_tables_of_their_own(tmp_path: Path) -> None:
    path = written(tmp_path, f"\ufeff{WHOLE}[at.docker.limits]\nquota = 100\n[at.docker.run]\nworkers = 50\n")

    def at(spec: str, *words: str) -> tuple[object, object]:
        there = asked_at(spec, parsed(*words))
        return there["quota"], there["workers"]

    file = ("--training", path)
    assert (at("docker", *file), at("local", *file)) == ((100, 50), (None, 2_000))
    assert at("docker", *file, "--workers", "7") == (100, 7), "the command line's holds everywhere"
    for words in ((*file, "--set", "quota=7"), ("--set", "quota=7", *file)):
        assert (at("docker", *words), at("local", *words)) == ((7, 50), (7, 2_000))


def test_a_section_holds_for_other_names_of_its_cells(tmp_path: Path) -> None:
    context = parsed("--training", written(tmp_path, f"{WHOLE}[at.'docker:runc'.limits]\nquota = 100\n"))
    cells = [cell.identity for cell in load_recording(Path("recordings/run.msgpack")).cells]
    name_sections(context, ("docker", "local"), cells)
    assert [asked_at(spec, context)["quota"] for spec in ("docker", "local")] == [100, None]


ALL = ASKED | STEP_MODEL_ASKED
BY_FIELD = {field_of(one): one for one in OPTIONS}
SIZE = {"trajectories": 2000, "workers": 7}
NO_FIELDS = {"file", "changes", "tier", "mode", "profile", "compose", "prices", "seed"}
NO_OPTIONS = {"precision"}
"""Its seed has an option; tolerance and effort have none."""


def words(values: dict[str, Any]) -> list[str]:
    """The options of a command line, with ``--set`` for options that a command lacks."""
    result = []
    for name, value in values.items():
        flag, text = BY_FIELD[name], "true" if value is True else _typed(value)
        result += [flag.opts[-1], text] if flag in TYPED else ["--set", f"{name}={text}"]
    return result


def _typed(value: object) -> str:
    if isinstance(value, Think):
        return f"lognormal:{value.median_ns}ns,{value.sigma}" if value.sigma else f"{value.median_ns}ns"
    return "50:2-8" if isinstance(value, Images) else str(value)


def test_every_field_has_an_option_and_every_option_a_field() -> None:
    assert {field.name for field in fields(TrainingRun)} - NO_OPTIONS == set(BY_FIELD) - NO_FIELDS


@pytest.mark.parametrize("name", sorted(set(ALL) - NO_OPTIONS))
def test_an_option_reaches_its_field_and_a_published_row_uses_or_refuses_it_by_name(name: str) -> None:
    values = SIZE | ALL[name]
    params = asked_at("", click.Command("project", params=list(TYPED)).make_context("project", words(values)))
    del params["prices"]
    run, expected = training_run_of(params), TrainingRun(**values)
    assert replace(run, actions=None) == replace(expected, actions=None)
    assert run.length == expected.length  # a number is a distribution too
    assert option(name) in BY_FIELD[name].opts

    values |= {"baseline": "docker"} if name == "baseline" else {}
    refused = [field for field in ALL[name] if field not in used_by("published")]
    told = printed("project", "essay", *words(values), "--format", "json", code=2 if refused else 0)
    assert all(as_typed(BY_FIELD[field].opts[-1]) in told for field in refused)
