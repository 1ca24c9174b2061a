"""Values of a training run, each with its source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from costmodel import Assumption
from taxtui.options.training import OPTIONS, asked_at, asked_of, is_typed, value_of
from taxtui.options.training_file import TrainingFile, field_of

if TYPE_CHECKING:
    from costmodel import Profile

COMMAND_LINE: Final = "the command line"
DEFAULT: Final = "taxtui's default"
NO_VALUES: Final = ("file", "changes", "tiers", "modes")
"""Options that set other options, or choose rows."""
LIMITS: Final = ("quota", "create_rate", "create_burst")


def input_values(context: click.Context, spec: str = "") -> list[Assumption]:
    """Return the values of a training run; ``spec``: of one substrate."""
    file: TrainingFile | None = context.params["file"]
    tables = {} if file is None else file.at.get(spec, {})
    results = []
    for option in asked_of(context, OPTIONS):
        name = str(option.name)
        if name in NO_VALUES:
            continue
        typed, value = is_typed(context, name), value_of(context, option)
        value = value if typed else tables.get(name, value)
        if value in (None, False, ()):
            continue
        field = field_of(option)
        in_file = file is not None and (name in tables or name in file.values)
        source = COMMAND_LINE if typed else DEFAULT
        if in_file and not typed and file is not None:
            source = file.sources.get(field, file.path)
        results.append(Assumption(field, _typed(value), source))
        if name == "profile":
            from costmodel import load_profile

            results += _from_profile(load_profile(value), asked_at(spec, context))
    return results


def sourced(assumptions: Iterable[Assumption], sources: Iterable[Assumption]) -> tuple[Assumption, ...]:
    """Return the assumptions of an attribution, with the source of the value in the training run, if any."""
    by_name = {item.name: item.source for item in sources}
    return tuple(item._replace(source=by_name.get(item.name, item.source)) for item in assumptions)


def _from_profile(profile: Profile, values: Mapping[str, Any]) -> list[Assumption]:
    filled = profile.filled(values)
    source = f"{profile.title}, {profile.date}: {profile.source}"
    return [
        Assumption(limit, _typed(filled[limit]), source)
        for limit in LIMITS
        if values.get(limit) is None and filled.get(limit) is not None
    ]


def _typed(value: object) -> str:
    """Return a value as on the command line."""
    if isinstance(value, bool):
        return "yes"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:g}"
    return " ".join(value) if isinstance(value, tuple) else str(value)
