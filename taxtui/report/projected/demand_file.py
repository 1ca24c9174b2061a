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

What holds for one substrate only, its nodes or its limits, stands in tables of its own: ``[at.docker.nodes]``.
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
SOURCES, AT = "sources", "at"

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
    "instant_claim": "true",
    "compose": '["e2b"]',
    "prices": '"aws-fargate"',
}
"""What may stand behind a key's equals sign: what a refusal shows."""


def field_of(option: click.Parameter) -> str:
    """The key of a demand file, and the field of ``Demand``: ``train_s`` of ``--train-seconds``."""
    name = str(option.name)
    return f"{name.removesuffix('_seconds')}_s" if name.endswith("_seconds") else name


class DemandFile(NamedTuple):
    """What a file says. Values are as the options take them, by the options' names."""

    path: str
    values: dict[str, Any]
    at: dict[str, dict[str, Any]]  # by SUBSTRATE[:key=value], what holds there instead
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
    from costmodel.toml import Document, MalformedDocument

    try:
        document = Document(Path(path)).data
    except OSError as error:
        raise UsageError(f"cannot read the demand {path}: {error.strerror}") from error
    except MalformedDocument as error:
        raise UsageError(error.problem, fix=error.fix) from error
    reader = _Reader(path, tables)
    sources, at = document.pop(SOURCES, {}), document.pop(AT, {})
    if not isinstance(at, dict) or not all(isinstance(groups, dict) for groups in at.values()):
        raise UsageError(
            f"{path}: [{AT}] holds tables of one substrate each",
            fix=f"write [{AT}.docker.nodes] nodes = {EXAMPLES['nodes']}",
        )
    return DemandFile(
        path,
        reader.values(document, ""),
        {name: reader.values(groups, f"{AT}.{name}.") for name, groups in at.items()},
        reader.sources(sources),
        {option.opts[-1]: reader.stanza(field) for field, (_, option) in reader.fields.items()},
    )


class _Reader:
    """Checks and takes what a file says, option by option."""

    def __init__(self, path: str, tables: Tables) -> None:
        self.path, self.tables = path, tables
        self.fields = {field_of(option): (table, option) for table, options in tables.items() for option in options}

    def stanza(self, field: str, within: str = "") -> str:
        """How a key is written."""
        return f"[{within}{self.fields[field][0]}] {field} = {EXAMPLES[field]}"

    def values(self, document: dict[str, Any], within: str) -> dict[str, Any]:
        """Of all tables; ``within`` is what stands before their names."""
        found: dict[str, Any] = {}
        for table, content in document.items():
            if not isinstance(content, dict) or table not in self.tables:
                raise self._unknown(table, within)
            for key, value in content.items():
                if key not in self.fields or self.fields[key][0] != table:
                    raise self._misplaced(table, key, within)
                option = self.fields[key][1]
                found[str(option.name)] = self._taken(f"[{within}{table}] {key}", value, option, within)
        return found

    def sources(self, found: object) -> dict[str, str]:
        """Where values come from, by key."""
        fix = f'write [{SOURCES}] workers = "our cluster"'
        if not isinstance(found, dict):
            raise UsageError(f"{self.path}: {SOURCES} must be a table", fix=fix)
        for key, source in found.items():
            if key not in self.fields or not isinstance(source, str):
                told = f"{self.path}: [{SOURCES}] {key} = {source!r}"
                raise UsageError(f"{told} is not the source of a key of this file as text", fix=fix)
        return dict(found)

    def _unknown(self, table: str, within: str) -> UsageError:
        """Of something where a table is expected."""
        if table in self.fields:
            return UsageError(
                f"{self.path}: {table} stands outside its table", fix=f"write {self.stanza(table, within)}"
            )
        known = (*self.tables, *((AT, SOURCES) if not within else ()))
        return UsageError(
            f"{self.path}: there is no [{within}{table}] in a demand; known: {', '.join(known)}",
            fix=f"write {self.stanza('workers', within)}",
        )

    def _misplaced(self, table: str, key: str, within: str) -> UsageError:
        """Of a key that its table does not have."""
        known = [field_of(option) for option in self.tables[table]]
        where = f"{self.path}: [{within}{table}] {key}"
        if key in self.fields:
            return UsageError(f"{where} is not in this table", fix=f"write {self.stanza(key, within)}")
        near = difflib.get_close_matches(key, self.fields, 1) or known[:1]
        return UsageError(
            f"{where} is unknown; [{table}] knows {', '.join(known)}", fix=f"write {self.stanza(near[0], within)}"
        )

    def _taken(self, where: str, value: object, option: click.Option, within: str) -> object:
        """The value as the option takes it."""
        fix = f"write {self.stanza(field_of(option), within)}"
        allowed = bool if option.is_flag else list if option.multiple else (int, float, str)
        if not isinstance(value, allowed) or (isinstance(value, bool) and not option.is_flag):
            kind = "true or false" if option.is_flag else "a list of texts" if option.multiple else "a number or a text"
            raise UsageError(f"{self.path}: {where} must be {kind}, not {value!r}", fix=fix)
        if option.is_flag:
            return value
        texts = [str(one) for one in value] if isinstance(value, list) else self._beside(str(value))
        try:
            return option.type_cast_value(click.Context(click.Command("demand")), texts)
        except click.UsageError as error:
            raise UsageError(f"{self.path}: {where}: {error.message}", fix=fix) from error

    def _beside(self, text: str) -> str:
        """A file beside the demand by the path that leads to it from here."""
        path = Path(self.path).parent / text
        return str(path) if path.suffix and path.is_file() else text
