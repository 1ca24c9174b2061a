"""A demand as a TOML file: the options of a projection in groups, each with where its value comes from.

::

    [run]
    trajectories = "1M"
    workers = 2000

    [trainer]
    gpus = 512
    gpu_usd_hour = 2.5

    [sources]
    gpu_usd_hour = "our contract of 2026"

A key is a field of ``costmodel.Demand``, so that its name ends with its unit. Its value is what the option takes, as a
number or as a text in the option's own notation, and stands for the option where that is not given.
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
"""Table of the file → the options in it."""
SOURCES: Final = "sources"

EXAMPLES: Final[Mapping[str, str]] = {
    "trajectories": '"1M"',
    "workers": "2000",
    "baseline": '"docker"',
    "full_speed": '"local"',
    "include_cleanup": "true",
    "run_sd": '"5%"',
    "deltas": '["250ms/action"]',
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
    "partial_rollouts": "true",
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
    "failure_hazard": "0.1",
    "on_failure": '"retry"',
    "max_attempts": "3",
    "backoff_s": "5",
    "timeout_s": "3600",
    "quota": "1000",
    "create_rate": "10",
    "create_burst": "100",
    "warm_pool": "50",
    "refill_s": "3",
    "refill_rate": "10",
    "instant_claim": "true",
    "prices": '"aws-fargate"',
}
"""What may stand behind a key's equals sign: what a refusal shows."""


def field_of(option: click.Parameter) -> str:
    """The key of a demand file, and the field of ``Demand``: ``train_s`` of ``--train-seconds``."""
    name = str(option.name)
    return f"{name.removesuffix('_seconds')}_s" if name.endswith("_seconds") else name


class DemandFile(NamedTuple):
    """What a file says."""

    path: str
    values: dict[str, Any]  # by the options' names, as these take them
    sources: dict[str, str]  # of fields, where they are given
    stanzas: dict[str, str]  # of every option, ``--gpus`` and the like: how to write it in a file

    def contradicted(self, error: Exception) -> UsageError:
        """A refusal of the whole demand in terms of the file: the options that it names, as they are written there."""
        wanted = [self.stanzas[flag] for flag in re.findall(r"--[a-z][a-z-]+", str(error)) if flag in self.stanzas]
        return UsageError(f"{self.path}: {error}", fix=f"in the file: {' or '.join(wanted)}" if wanted else "")


def load(path: str, tables: Tables) -> DemandFile:
    """Read a demand file.

    Raises:
        UsageError: it cannot be read; a table or a key is unknown, or of the wrong type. One line with the file, the
            key, what is allowed, and what to write.
    """
    import tomllib

    try:
        document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the demand {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}") from error
    fields = {field_of(option): (table, option) for table, options in tables.items() for option in options}
    stanzas = {option.opts[-1]: _stanza(table, field) for field, (table, option) in fields.items()}
    values: dict[str, Any] = {}
    for table, content in document.items():
        if table == SOURCES:
            continue
        if not isinstance(content, dict) or table not in tables:
            raise _unknown(path, table, tables, fields)
        for key, value in content.items():
            if key not in fields or fields[key][0] != table:
                raise _misplaced(path, table, key, tables[table], fields)
            option = fields[key][1]
            values[str(option.name)] = _taken(path, table, key, _resolved(value, Path(path).parent), option)
    return DemandFile(path, values, _sources(path, document.get(SOURCES, {}), fields), stanzas)


def _stanza(table: str, field: str) -> str:
    return f"[{table}] {field} = {EXAMPLES[field]}"


def _unknown(path: str, table: str, tables: Tables, fields: Mapping[str, Any]) -> UsageError:
    """Of something at the top level of the file."""
    problem = f"{path}: there is no [{table}] in a demand; known: {', '.join((*tables, SOURCES))}"
    if table in fields:
        return UsageError(f"{path}: {table} stands outside its table", fix=f"write {_stanza(fields[table][0], table)}")
    return UsageError(problem, fix=f"write {_stanza('run', 'workers')}")


def _misplaced(
    path: str, table: str, key: str, options: Sequence[click.Option], fields: Mapping[str, tuple[str, Any]]
) -> UsageError:
    """Of a key that its table does not have."""
    known = [field_of(option) for option in options]
    where = f"{path}: [{table}] {key}"
    if key in fields:
        return UsageError(f"{where} is not in this table", fix=f"write {_stanza(fields[key][0], key)}")
    near = difflib.get_close_matches(key, fields, 1) or known[:1]
    return UsageError(
        f"{where} is unknown; [{table}] knows {', '.join(known)}", fix=f"write {_stanza(fields[near[0]][0], near[0])}"
    )


def _taken(path: str, table: str, key: str, value: object, option: click.Option) -> object:
    """The value as the option takes it."""
    allowed = bool if option.is_flag else list if option.multiple else (int, float, str)
    if not isinstance(value, allowed) or (isinstance(value, bool) and not option.is_flag):
        kind = "true or false" if option.is_flag else "a list of texts" if option.multiple else "a number or a text"
        raise UsageError(f"{path}: [{table}] {key} must be {kind}, not {value!r}", fix=f"write {_stanza(table, key)}")
    if option.is_flag:
        return value
    texts = [str(one) for one in value] if isinstance(value, list) else str(value)
    try:
        option.type_cast_value(click.Context(click.Command("demand")), texts)
    except click.UsageError as error:
        problem = f"{path}: [{table}] {key}: {error.message}"
        raise UsageError(problem, fix=f"write {_stanza(table, key)}") from error
    return texts


def _resolved(value: object, folder: Path) -> object:
    """A file beside the demand by the path that leads to it from here."""
    if isinstance(value, str) and value.endswith(".toml") and (folder / value).is_file():
        return str(folder / value)
    return value


def _sources(path: str, found: object, fields: Mapping[str, Any]) -> dict[str, str]:
    if not isinstance(found, dict):
        raise UsageError(f"{path}: {SOURCES} must be a table", fix=f'write [{SOURCES}] workers = "our cluster"')
    for key, source in found.items():
        if key not in fields or not isinstance(source, str):
            raise UsageError(
                f"{path}: [{SOURCES}] {key} = {source!r} is not the source of a key of this file as text",
                fix=f'write [{SOURCES}] workers = "our cluster"',
            )
    return dict(found)
