"""Everything on the pages that code can write: reference tables and outputs of commands.

``python -m tests.support.reference`` rewrites README and docs; a test checks that all is up to date.
- A block between ``<!-- generated: NAME -->`` and ``<!-- end -->`` is the text that ``BLOCKS[NAME]`` returns.
- A ``console`` block of one command, followed by a ``text`` block, shows as many paragraphs of the output as now.
"""

from __future__ import annotations

import ast
import contextlib
import csv
import doctest
import io
import os
import re
import shlex
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, get_args

import click
from click.testing import CliRunner

from costmodel import load_profile
from costmodel.pricing import sheet
from costmodel.providers.provider import known_profiles
from costmodel.recording import events
from costmodel.recording.table import COLUMNS
from taxtui.cli import app
from taxtui.options.training import GROUPS, ON_COMMAND_LINE
from taxtui.options.training_file import EXAMPLES, field_of
from taxtui.report.measured.sections import DO, WORDS
from taxtui.report.words import FAMILIES, FAMILY

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
SHEETS: Final = ROOT / "costmodel/pricing/data"
WIDTH: Final = "80"


def commands(group: click.Group = app, path: str = "taxtui") -> Iterator[tuple[str, click.Command]]:
    """Every command that the help lists, by its whole name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        elif not command.hidden:
            yield f"{path} {name}", command


def command_line() -> str:
    """A heading, the help and the options of each command; options of several commands once, at the end."""
    found = {path: list(_options(command, path)) for path, command in commands()}
    times = Counter(line for lines in found.values() for _, line in lines)
    shared = [line for line, count in times.items() if count > 1]
    parts = []
    for path, command in commands():
        context = click.Context(command, info_name=path)
        about = (command.help or "").split("\f")[0].strip().split("\n\n")[0]
        usage = " ".join(command.collect_usage_pieces(context)[1:])
        lines = [f"### {path}{f' {usage}' if usage else ''}", "", " ".join(about.split()), ""]
        lines += [line for _, line in found[path] if line not in shared]
        if names := [f"`{name}`" for name, line in found[path] if line in shared]:
            lines.append(f"- [shared options](#shared-options): {', '.join(names)}")
        if path in WITH_TRAINING:
            lines.append("- options of the [training file](#training-file)")
        parts.append("\n".join(lines).rstrip())
    return "\n\n".join([*parts, "\n".join(["### Shared options", "", *shared])])


WITH_TRAINING: Final = ("taxtui project", "taxtui decide")


def _options(command: click.Command, path: str) -> Iterator[tuple[str, str]]:
    """The last name of each option, and its line."""
    training = {id(option) for group in GROUPS.values() for option in group.options} if path in WITH_TRAINING else set()
    context = click.Context(command)
    for option in command.get_params(context):
        record = option.get_help_record(context)
        own = isinstance(option, click.Option) and "--help" not in option.opts and id(option) not in training
        if own and record is not None:
            yield option.opts[-1], f"- `{record[0]}`: {' '.join(record[1].split())}"


def training_file() -> str:
    """The tables of a training file with their keys."""
    parts = []
    for table, group in GROUPS.items():
        lines = [f"**`[{table}]`**: {group.heading.lower()}", ""]
        for option in group.options:
            key, about = field_of(option), " ".join((option.help or "").split())
            typed = f", `{option.opts[-1]}`" if option.name in ON_COMMAND_LINE else ""
            choices = f" {', '.join(option.type.choices)}." if isinstance(option.type, click.Choice) else ""
            lines.append(f"- `{key}={EXAMPLES[key]}`{typed}: {about}{choices}")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


@cache
def comments(path: Path) -> Mapping[int, str]:
    """The comments of a Python file by their lines."""
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
    return {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}


def fields(path: Path, name: str) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, default and comment of each field of a class, as the source has them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kind = next(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == name)
    for node in kind.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            about = next((comments(path)[line] for line in lines if line in comments(path)), "")
            yield node.target.id, ast.unparse(node.annotation), ast.unparse(node.value) if node.value else "", about


_TYPES: Final = (
    (r"list\[(Maybe)?.*\]", "array"),
    (r"Annotated\[dict.*|dict.*", "map"),
    (r"Annotated\[tuple.*", "array of text"),
    (r"MaybeNanoseconds", "ns or −1"),
    (r"Nanoseconds", "ns"),
    (r"MaybeCount", "integer or −1"),
    (r"Count", "integer"),
    (r"Text|Label", "text"),
    (r"bool", "boolean"),
)


_DEFAULTS: Final = {
    "UNKNOWN": "−1",
    "FIXED_LENGTH": "fixed",
    "False": "false",
    "''": "empty",
    "()": "empty",
    "msgspec.field(default_factory=list)": "empty",
}


def _type(annotation: str) -> str:
    return next(word for pattern, word in _TYPES if re.fullmatch(pattern, annotation, re.DOTALL))


def recording_events() -> str:
    """The events of a recording with their fields in the order of the wire."""
    path, parts = Path(events.__file__), []
    for kind in (*get_args(events.Event), events.Link):
        lines = [f"### {kind.__struct_config__.tag} · {kind.__name__}", "", (kind.__doc__ or "").split("\n")[0], ""]
        for name, annotation, default, about in fields(path, kind.__name__):
            optional = f", default {_DEFAULTS.get(default, default)}" if default else ""
            lines.append(f"- `{name}` ({_type(annotation)}{optional}){': ' if about else ''}{about}")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def price_sheet() -> str:
    """The keys of a ``[[sandbox]]`` of a price sheet."""
    path = Path(sheet.__file__)
    return "\n".join(
        f"- `{name}`{'' if default else ' (required)'}: {about}"
        for name, _, default, about in fields(path, "SandboxPrice")
    )


def price_sheets() -> str:
    """The price sheets that ship."""
    return ", ".join(f"`{path.stem}`" for path in sorted(SHEETS.glob("*.toml"))) + "."


def profiles() -> str:
    """The limits of providers' plans that ship."""
    rows = ["| profile | sandboxes at a time | creates per second | burst |", "|---|---:|---:|---:|"]
    for name in known_profiles():
        profile = load_profile(name)
        limits = (profile.concurrent, profile.creates_per_s, profile.burst)
        cells = ["" if one is None else f"{one:,.3g}" if one < 100 else f"{one:,}" for one in limits]
        rows.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(rows)


def export_columns() -> str:
    """The columns of ``taxtui export``."""
    parts = []
    for table, columns in COLUMNS.items():
        cells = [f"`{column.name}`{f' ({column.about})' if column.about else ''}" for column in columns]
        parts.append(f"**{table}**: {', '.join(cells)}.")
    return "\n\n".join(parts)


def csv_columns(command: str) -> str:
    """The columns that a command prints as CSV; columns with equal endings are named together."""
    endings: dict[str, list[str]] = {}
    for column in next(csv.reader(io.StringIO(output(command)))):
        first, _, rest = column.partition(".")
        endings.setdefault(first, []).append(rest)
    groups: dict[tuple[str, ...], list[str]] = {}
    for first, rests in endings.items():
        groups.setdefault(tuple(rests), []).append(first)
    plain = ", ".join(f"`{name}`" for name in groups.pop(("",)))
    lines = [
        f"- {', '.join(f'`{name}`' for name in names)} with `.{{{','.join(ends)}}}`" for ends, names in groups.items()
    ]
    return "\n".join([f"- {plain}", *lines])


def warnings() -> str:
    """Every warning, by families."""
    parts = []
    for family, meaning in FAMILIES.items():
        lines = [f"**{family}**: {meaning}.", ""]
        lines += [f"- `{key}`: {WORDS[key]}. *{DO[key]}*" for key in FAMILY if FAMILY[key] == family]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


BLOCKS: Final[Mapping[str, Callable[[], str]]] = {
    "command-line": command_line,
    "training-file": training_file,
    "price-sheet": price_sheet,
    "price-sheets": price_sheets,
    "profiles": profiles,
    "events": recording_events,
    "export-columns": export_columns,
    "report-columns": lambda: csv_columns("taxtui report recordings/small.msgpack --format csv"),
    "project-columns": lambda: csv_columns("taxtui project recordings/small.msgpack --format csv"),
    "warnings": warnings,
}


@cache
def output(command: str) -> str:
    """The standard output of a taxtui command in a checkout, 80 columns wide."""
    environment = {"COLUMNS": WIDTH, "NO_COLOR": "1"}
    with contextlib.chdir(ROOT):
        result = CliRunner().invoke(app, shlex.split(command)[1:], env=environment)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return "\n".join(line.rstrip() for line in result.stdout.strip().splitlines())


SHOWN: Final = re.compile(r"```console\n\$ (taxtui [^\n]*)\n```\n\n```text\n((?:(?!```).)*?)\n```", re.DOTALL)
LONG: Final = "--training scenarios/training/lab-question.toml"
"""What makes a projection take a minute."""
GENERATED: Final = re.compile(r"<!-- generated: ([\w-]+) -->\n.*?<!-- end -->", re.DOTALL)


def excerpt(command: str, now: str) -> str:
    """The first paragraphs of a command's output, as many as ``now`` has."""
    return "\n\n".join(output(command.partition("  #")[0]).split("\n\n")[: now.count("\n\n") + 1])


def failures(page: Path) -> int:
    """Return how many Python examples of a page print something else."""
    text = page.read_text(encoding="utf-8").replace("```", "")
    with contextlib.chdir(ROOT):
        test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
        return doctest.DocTestRunner().run(test).failed


def redrawn(text: str, *, outputs: bool = True, long: bool = True) -> str:
    """A page with everything that code can write, as code writes it today; ``long``: outputs that take a minute too."""
    text = GENERATED.sub(lambda m: f"<!-- generated: {m[1]} -->\n\n{BLOCKS[m[1]]()}\n\n<!-- end -->", text)
    if not outputs:
        return text

    def shown(match: re.Match[str]) -> str:
        if LONG in match[1] and "--quick" not in match[1] and not long:
            return match[0]
        return f"```console\n$ {match[1]}\n```\n\n```text\n{excerpt(match[1], match[2])}\n```"

    return SHOWN.sub(shown, text)


def main(pages: Sequence[Path] = PAGES) -> None:
    """Rewrite the pages."""
    os.environ.update(COLUMNS=WIDTH)
    for page in pages:
        text = page.read_text(encoding="utf-8")
        page.write_text(redrawn(text), encoding="utf-8")


if __name__ == "__main__":
    main()
