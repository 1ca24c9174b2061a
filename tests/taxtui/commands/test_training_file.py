"""``--training FILE``: the options of a projection as TOML."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from costmodel import Length, Think, TrainingRun, TrainingRunError
from taxtui.errors import UsageError
from taxtui.options.training import GROUPS, OPTIONS, TYPED, as_typed, asked_at, training_run_of
from taxtui.options.training_file import EXAMPLES, TEMPLATE, field_of, load
from tests.docs.pages import blocks

TABLES = {field_of(option): table for table, group in GROUPS.items() for option in group.options}


def asked(*words: str) -> tuple[TrainingRun, str | None]:
    """The training run, and the price sheet."""
    params = click.Command("project", params=list(OPTIONS)).make_context("project", list(words)).params
    sheet = params.pop("prices")
    return training_run_of(params), sheet


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
partial_rollouts = true
over_provision = 0.2
[trainer]
train_s = 60
gpus = 512
gpu_usd_hour = 2
"""


def test_a_file_is_the_options_that_it_stands_for(tmp_path: Path) -> None:
    options = """
        --trajectories 1000000 --workers 2000 --length 80-120 --think lognormal:8s,1.2
        --batch 1024 --partial-rollouts --over-provision 0.2 --train-seconds 60 --gpus 512
        --set gpu_usd_hour=2""".split()  # noqa: SIM905
    training_run, sheet = asked("--training", written(tmp_path, WHOLE))
    assert (training_run, sheet) == asked(*options)
    assert (training_run.trajectories, training_run.batch, training_run.train_s) == (1_000_000, 1024, 60)
    assert training_run.think == Think(8_000_000_000, 1.2)
    assert training_run.length == Length.weighted(dict.fromkeys(range(80, 121), 1))


def test_an_option_beside_the_file_wins(tmp_path: Path) -> None:
    training_run, _ = asked("--workers", "7k", "--training", written(tmp_path, WHOLE), "--gpus", "8")
    assert (training_run.workers, training_run.gpus, training_run.trajectories) == (7_000, 8, 1_000_000)


def test_every_option_has_a_line_that_a_file_may_hold(tmp_path: Path) -> None:
    assert set(EXAMPLES) == set(TABLES)
    for field, example in EXAMPLES.items():
        text = f"[{TABLES[field]}]\n{field} = {example}\n"
        params = click.Command("project", params=list(OPTIONS))
        params.make_context("project", ["--training", written(tmp_path, text)], resilient_parsing=True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[run]\nworker = 3", "[run] worker is unknown; [run] knows trajectories, workers,.*[run] workers = 2000"),
        ("[run]\ngpus = 3", "[run] gpus is not in this table; write [trainer] gpus = 512"),
        ("gpus = 3", "gpus stands outside its table; write [trainer] gpus = 512"),
        ("[gpu]\ngpus = 3", "there is no [gpu] in a training file; known: workload, run, length,.*sources"),
        ("[run]\nworkers = true", "[run] workers must be a number or a text, not True; write [run] workers = 2000"),
        ("[run]\nworkers = [3]", "[run] workers must be a number or a text"),
        ("[run]\nworkers = 1979-05-27", "[run] workers must be a number or a text"),
        ("[run]\nworkers = 'many'", "[run] workers: 'many' is no count.*; write [run] workers = 2000"),
        ("[policy]\npartial_rollouts = 'yes'", "[policy] partial_rollouts must be true or false, not 'yes'"),
        ("[policy]\npolicy = 'chaos'", "[policy] policy: 'chaos' is not one of.*; write [policy] policy = \"sync\""),
        ("[sources]\nworker = 'x'", "[sources] worker = 'x' is not the source of a key"),
        ("[sources]\nworkers = 3", "[sources] workers = 3 is not the source of a key of this file as text"),
        ("sources = 3", "sources must be a table"),
        ("[run", "Expected"),
        ("[run]\nworkers = nan", ":2: run.workers: must be a finite number, not nan"),
    ],
)
def test_what_is_wrong_is_one_line_with_what_to_write(tmp_path: Path, text: str, words: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        asked("--training", path)
    line = str(caught.value)
    assert line.startswith(path)
    assert "\n" not in line
    for part in words.split(".*"):
        assert part in line


def test_what_contradicts_itself_is_said_in_the_words_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "[run]\ntrajectories = 9\nworkers = 3\n[trainer]\ngpu_usd_hour = 2\n")
    with pytest.raises(UsageError) as caught:
        asked("--training", path)
    assert str(caught.value).startswith(f"{path}: a GPU price needs a number of GPUs")
    assert str(caught.value).endswith("in the file: [trainer] gpus = 512")
    with pytest.raises(TrainingRunError):
        asked("--trajectories", "9", "--workers", "3", "--set", "gpu_usd_hour=2")


def test_the_printed_template_is_a_training_file(tmp_path: Path) -> None:
    training_run, _ = asked("--training", written(tmp_path, TEMPLATE))
    assert (training_run.trajectories, training_run.workers, training_run.group_size, training_run.gpus) == (
        1_000_000,
        512,
        16,
        64,
    )
    commented = re.sub(r"^# (?=\[|\w+ = )", "", TEMPLATE, flags=re.MULTILINE)
    command = click.Command("project", params=list(OPTIONS))
    there = asked_at("docker", command.make_context("project", ["--training", written(tmp_path, commented)]))
    assert (there["nodes"], there["pods_per_node"]) == (8, 64)
    assert there["file"].sources == {"gpu_usd_hour": "our contract of 2026"}


def test_a_change_replaces_the_value_of_the_file_and_every_table_of_a_substrate(tmp_path: Path) -> None:
    path = written(tmp_path, f"{WHOLE}[at.docker.limits]\nquota = 100\n")
    for words in (("--training", path, "--set", "quota=7"), ("--set", "quota=7", "--training", path)):
        context = click.Command("project", params=list(TYPED)).make_context("project", list(words))
        assert {asked_at(spec, context)["quota"] for spec in ("docker", "local")} == {7}
        assert asked_at("local", context)["over_provision"] == 0.2


@pytest.mark.parametrize(
    ("word", "line"),
    [
        ("quota", "--set quota: a value is missing; write --set nodes=125"),
        ("quotas=1", "--set quotas=1: unknown key 'quotas'; did you mean 'quota'?"),
        ("quota=x", "--set: quota: 'x' is no count"),
        ("partial_rollouts=1", "--set partial_rollouts=1: partial_rollouts is true or false"),
    ],
)
def test_a_change_that_cannot_be_read_is_one_line(word: str, line: str) -> None:
    with pytest.raises(UsageError) as caught:
        asked("--set", word)
    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)


def test_an_error_names_what_a_command_takes() -> None:
    assert as_typed("add --nodes N --pods-per-node P") == "add --set nodes=N --set pods_per_node=P"
    assert as_typed("leave --images out; add --gpus G") == "leave images out; add --gpus G"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read the training file .*nowhere\.toml: No such file"):
        asked("--training", str(tmp_path / "nowhere.toml"))


def test_a_sheet_is_looked_for_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "ours.toml").write_text("")
    text = '[run]\ntrajectories = 9\nworkers = 3\n[prices]\nprices = "ours.toml"\n'
    assert asked("--training", written(tmp_path, text))[1] == str(tmp_path / "ours.toml")
    text = text.replace("ours.toml", "aws-fargate")
    assert asked("--training", written(tmp_path, text))[1] == "aws-fargate"


def test_the_keys_of_the_page_are_keys(tmp_path: Path) -> None:
    [page] = blocks("decide.md", "toml")
    found = load(written(tmp_path, page), {table: group.options for table, group in GROUPS.items()})
    assert (found.values["gpus"], set(found.at)) == (512, {"docker", "daytona"})


def test_what_holds_for_one_substrate_only_stands_in_tables_of_its_own(tmp_path: Path) -> None:
    path = written(tmp_path, f"{WHOLE}[at.docker.limits]\nquota = 100\n[at.docker.run]\nworkers = 50\n")
    command = click.Command("project", params=list(OPTIONS))
    training_runs = {}
    for spec in ("docker", "local"):
        for words in ((), ("--workers", "7")):
            there = asked_at(spec, command.make_context("project", ["--training", path, *words]))
            there.pop("prices")
            training_runs[spec, *words] = training_run_of(there)
    assert (training_runs["docker",].quota, training_runs["docker",].workers) == (100, 50)
    assert (training_runs["local",].quota, training_runs["local",].workers) == (None, 2_000)
    assert training_runs["docker", "--workers", "7"].workers == 7  # the command line's holds everywhere
    for text, words in (
        ("[at.docker.limits]\nquotas = 1", "[at.docker.limits] quotas is unknown"),
        ("[at.docker]\nquota = 1", "quota stands outside its table; write [at.docker.limits] quota = 1000"),
        ("[at.docker.limits]\nquota = []", "[at.docker.limits] quota must be a number or a text"),
        ("at = 3", "[at] holds tables of one substrate each; write [at.docker.nodes] nodes = 125"),
    ):
        with pytest.raises(UsageError) as caught:
            asked("--training", written(tmp_path, text))
        assert words in str(caught.value)
