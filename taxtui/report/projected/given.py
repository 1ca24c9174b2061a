"""What was asked of a projection, value by value, each with where it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from costmodel.workload.scenario_range import Assumption
from taxtui.report.projected.demand_file import DemandFile, field_of
from taxtui.report.projected.options import OPTIONS, asked_of

if TYPE_CHECKING:
    from costmodel.providers.limits import Profile

COMMAND_LINE: Final = "the command line"
LIMITS: Final = ("quota", "create_rate", "create_burst")


def given(context: click.Context, spec: str = "") -> list[Assumption]:
    """What the options of a command say, of one substrate where ``spec`` is one; without the demand file's own name."""
    file: DemandFile | None = context.params["file"]
    own = {} if file is None else file.at.get(spec, {})
    found = []
    for option in asked_of(context, OPTIONS):
        name = str(option.name)
        by_hand = context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE
        value = context.params[name] if by_hand else own.get(name, context.params[name])
        if name == "file" or value in (None, False, ()):
            continue
        field = field_of(option)
        source = COMMAND_LINE if by_hand or file is None else file.sources.get(field, file.path)
        found.append(Assumption(field, _shown(value), source))
        if name == "profile":
            from costmodel.providers.limits import load_profile

            found += _filled(load_profile(value), context.params)
    return found


def sourced(assumptions: Iterable[Assumption], sources: Iterable[Assumption]) -> tuple[Assumption, ...]:
    """The assumptions of an attribution, each with the source of the value that was given, where one was."""
    known = {one.name: one.source for one in sources}
    return tuple(one._replace(source=known.get(one.name, one.source)) for one in assumptions)


def _filled(profile: Profile, asked: Mapping[str, Any]) -> list[Assumption]:
    """The limits that come from a profile."""
    filled = profile.filled(asked)
    source = f"{profile.title}, {profile.date}: {profile.source}"
    return [
        Assumption(limit, _shown(filled[limit]), source)
        for limit in LIMITS
        if asked.get(limit) is None and filled.get(limit) is not None
    ]


def _shown(value: object) -> str:
    """As it can be typed again."""
    if isinstance(value, bool):
        return "yes"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:g}"
    return " ".join(value) if isinstance(value, tuple) else str(value)
