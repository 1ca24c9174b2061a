"""A training run as a TOML file: the options of a projection in tables, with the sources of their values.

::

    [run]
    trajectories = "1M"
    workers = 2000

    [trainer]
    gpus = 512
    gpu_usd_hour = 2.5

    [sources]
    gpu_usd_hour = "our contract of 2026"

A key is a field of ``costmodel.TrainingRun``, with its unit. Its value is a number, or a text in the
notation of the option. An option on the command line replaces the value.

Values of a single substrate, such as nodes or limits, are in separate tables: ``[at.docker.nodes]``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from taxtui.errors import UsageError

Tables = Mapping[str, Sequence[click.Option]]
"""Table of the file → its options."""
SOURCES, AT, WORKLOAD = "sources", "at", "workload"

EXAMPLES: Final[Mapping[str, str]] = {
    "tier": '"T1"',
    "mode": '"exec"',
    "trajectories": '"1M"',
    "workers": "2000",
    "baseline": '"docker"',
    "full_speed": '"local"',
    "include_cleanup": "true",
    "run_sd": '"5%"',
    "seed": "1",
    "actions": '"80-120"',
    "think": '"lognormal:8s,1.2"',
    "think_correlation": "0.3",
    "prompts": "64",
    "group_size": "16",
    "batch": "1024",
    "policy": '"sync"',
    "staleness": "2",
    "over_provision": "0.2",
    "train_s": "120",
    "gpus": "512",
    "gpu_usd_hour": "2.5",
    "images": '"500:2-8"',
    "placement": '"spread"',
    "nodes": "125",
    "pods_per_node": "16",
    "node_usd_hour": "1.5",
    "node_disk_gib": "200",
    "pull_gb_s": "0.5",
    "failure_rate": '"5%"',
    "failure_burst": "6",
    "failure_hazard": "0.1",
    "on_failure": '"retry"',
    "max_attempts": "3",
    "backoff_s": "5",
    "timeout_s": "3600",
    "profile": '"e2b-pro"',
    "quota": "1000",
    "create_rate": "10",
    "create_burst": "100",
    "warm_pool": "50",
    "refill_s": "3",
    "refill_rate": "10",
    "suspend_after_s": "10",
    "suspend_s": "4",
    "resume_s": "1",
    "suspended_usd_hour": "0.01",
    "fork_s": "1",
    "recycle_s": "0.5",
    "build_s": "600",
    "builders": "20",
    "built_images": "100",
    "compose": '["e2b"]',
    "prices": '"aws-fargate"',
}
"""Example of each key's value, for error messages."""


def field_of(option: click.Parameter) -> str:
    """Return the key in a training file, a field of ``TrainingRun``: ``train_s`` for ``--train-seconds``."""
    name = {"tiers": "tier", "modes": "mode"}.get(str(option.name), str(option.name))
    return f"{name.removesuffix('_seconds')}_s" if name.endswith("_seconds") else name


class TrainingFile(NamedTuple):
    """The content of a training file: values by the names of their options."""

    path: str
    values: dict[str, Any]
    at: dict[str, dict[str, Any]]  # values of a single substrate, by SUBSTRATE[:key=value]
    sources: dict[str, str]  # by key
    examples: dict[str, str]  # by option, such as ``--gpus``: a line of the file

    def contradicted(self, error: Exception) -> UsageError:
        """Return the refusal of a training run with the lines of the file for the options in the message."""
        lines = [self.examples[flag] for flag in re.findall(r"--[a-z][a-z-]+", str(error)) if flag in self.examples]
        return UsageError(f"{self.path}: {error}", fix=f"in the file: {' or '.join(lines)}" if lines else "")


def load(path: str, tables: Tables) -> TrainingFile:
    """Read a training file.

    Raises:
        UsageError: the file cannot be read, or a table or a key is unknown or of the wrong type. The message has the
            file, the key, the known keys and an example.
    """
    from costmodel import toml

    try:
        document = toml.Document(Path(path)).data
    except OSError as error:
        raise UsageError(f"cannot read the training file {path}: {error.strerror}") from error
    except toml.MalformedDocument as error:
        raise UsageError(error.problem, fix=error.fix) from error
    reader = _Reader(path, tables)
    within_at = {table: options for table, options in tables.items() if table != WORKLOAD}
    sources, at = document.pop(SOURCES, {}), document.pop(AT, {})
    if not isinstance(at, dict) or not all(isinstance(groups, dict) for groups in at.values()):
        raise UsageError(
            f"{path}: [{AT}] holds tables of one substrate each",
            fix=f"write [{AT}.docker.nodes] nodes = {EXAMPLES['nodes']}",
        )
    return TrainingFile(
        path,
        reader.values(document, ""),
        {name: _Reader(path, within_at).values(groups, f"{AT}.{name}.") for name, groups in at.items()},
        reader.sources(sources),
        {option.opts[-1]: reader.example(field) for field, (_, option) in reader.fields.items()},
    )


def changes(words: Sequence[str], tables: Tables) -> dict[str, Any]:
    """Return the values of ``KEY=VALUE`` words by the names of their options; KEY is a key of a training file.

    Raises:
        UsageError: a key is unknown, or its value cannot be read.
    """
    reader = _Reader("--set", tables)
    values: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals:
            raise UsageError(f"--set {word}: a value is missing", fix="write --set nodes=125")
        if key not in reader.fields:
            near = difflib.get_close_matches(key, reader.fields, 1)
            fix = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(reader.fields)}"
            raise UsageError(f"--set {word}: unknown key {key!r}", fix=fix)
        option = reader.fields[key][1]
        value: object = [text] if option.multiple else text
        if option.is_flag:
            if text not in ("true", "false"):
                raise UsageError(f"--set {word}: {key} is true or false", fix=f"write --set {key}=true")
            value = text == "true"
        converted = reader.converted(key, value, option)
        name = str(option.name)
        values[name] = (*values.get(name, ()), *converted) if isinstance(converted, tuple) else converted
    return values


TEMPLATE: Final = """\
# A training run, for `taxtui project FILE --training lab.toml` and `taxtui decide`.
# Replace each value with your own. A line that you delete takes the recorded value, or none.
# All other keys (nodes, images, failures, limits, pools, prices): docs/command-line.md

[workload]
tier = "T1"                   # the recorded tier that is closest to the commands of your agent

[run]
trajectories = "1M"           # trajectories of the whole training run
workers = 512                 # trajectories in progress at a time

[length]
actions = "40-90"             # commands per trajectory: 50, 40-90, or 10:3,50:1 by weight

[think]
think = "lognormal:8s,0.6"    # the model's time per command: 8s, or a median and the sigma of its log

[policy]
prompts = 32                  # prompts per training step
group_size = 16               # rollouts per prompt

[trainer]
train_s = 120                 # seconds of training per step
gpus = 64                     # GPUs that wait while rollouts run
gpu_usd_hour = 2.5            # price of one GPU, in dollars per hour

# [at.docker.nodes]           # `taxtui decide` needs the price of the substrate that you have: here of docker
# nodes = 8
# pods_per_node = 64
# node_usd_hour = 1.5

# [sources]                   # the source of each value, for the page that `taxtui decide` prints
# gpu_usd_hour = "our contract of 2026"
"""
"""Output of ``taxtui project --init``."""


class _Reader:
    """Checks and converts the values of a file or of ``--set``."""

    def __init__(self, path: str, tables: Tables) -> None:
        self.path, self.tables = path, tables
        self.fields = {field_of(option): (table, option) for table, options in tables.items() for option in options}

    def example(self, field: str, within: str = "") -> str:
        """Return a line with a valid value; ``within`` is the prefix of the table's name."""
        if self.path == "--set":
            return f"--set {field}={EXAMPLES[field].strip(chr(34))}"
        return f"[{within}{self.fields[field][0]}] {field} = {EXAMPLES[field]}"

    def values(self, document: dict[str, Any], within: str) -> dict[str, Any]:
        """Return the values of all tables; ``within`` is the prefix of their names."""
        result: dict[str, Any] = {}
        for table, content in document.items():
            if not isinstance(content, dict) or table not in self.tables:
                raise self._unknown(table, within)
            for key, value in content.items():
                if key not in self.fields or self.fields[key][0] != table:
                    raise self._misplaced(table, key, within)
                option = self.fields[key][1]
                result[str(option.name)] = self.converted(f"[{within}{table}] {key}", value, option, within)
        return result

    def sources(self, table: object) -> dict[str, str]:
        """Return the source of each key. Raises ``UsageError``: a key is unknown, or a source is no text."""
        fix = f'write [{SOURCES}] workers = "our cluster"'
        if not isinstance(table, dict):
            raise UsageError(f"{self.path}: {SOURCES} must be a table", fix=fix)
        for key, source in table.items():
            if key not in self.fields or not isinstance(source, str):
                text = f"{self.path}: [{SOURCES}] {key} = {source!r}"
                raise UsageError(f"{text} is not the source of a key of this file as text", fix=fix)
        return dict(table)

    def _unknown(self, table: str, within: str) -> UsageError:
        if table in self.fields:
            return UsageError(
                f"{self.path}: {table} stands outside its table", fix=f"write {self.example(table, within)}"
            )
        names = (*self.tables, *((AT, SOURCES) if not within else ()))
        return UsageError(
            f"{self.path}: there is no [{within}{table}] in a training file; known: {', '.join(names)}",
            fix=f"write {self.example('workers', within)}",
        )

    def _misplaced(self, table: str, key: str, within: str) -> UsageError:
        keys = [field_of(option) for option in self.tables[table]]
        where = f"{self.path}: [{within}{table}] {key}"
        if key in self.fields:
            return UsageError(f"{where} is not in this table", fix=f"write {self.example(key, within)}")
        near = difflib.get_close_matches(key, self.fields, 1) or keys[:1]
        return UsageError(
            f"{where} is unknown; [{table}] knows {', '.join(keys)}", fix=f"write {self.example(near[0], within)}"
        )

    def converted(self, where: str, value: object, option: click.Option, within: str = "") -> object:
        """Return a value as the option has it. Raises ``UsageError``: the type or the notation is wrong."""
        fix = f"write {self.example(field_of(option), within)}"
        if option.name in ("tiers", "modes") and isinstance(value, str):
            value = [value]
        allowed = bool if option.is_flag else list if option.multiple else (int, float, str)
        if not isinstance(value, allowed) or (isinstance(value, bool) and not option.is_flag):
            kind = "true or false" if option.is_flag else "a list of texts" if option.multiple else "a number or a text"
            raise UsageError(f"{self.path}: {where} must be {kind}, not {value!r}", fix=fix)
        if option.is_flag:
            return value
        texts = [str(item) for item in value] if isinstance(value, list) else self._resolved(str(value))
        try:
            return option.type_cast_value(click.Context(click.Command("training")), texts)
        except click.UsageError as error:
            raise UsageError(f"{self.path}: {where}: {error.message}", fix=fix) from error

    def _resolved(self, text: str) -> str:
        """Return the path of a file in the training file's folder; further texts stay."""
        path = Path(self.path).parent / text
        return str(path) if path.suffix and path.is_file() else text
