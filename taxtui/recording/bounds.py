"""Holds what is written to what a reader takes: text of others may be of any length."""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from taxtui.errors import UsageError
from taxtui.recording.causality import check_scenario
from taxtui.recording.events import (
    MAX_CAPABILITIES,
    MAX_FACTS,
    MAX_LABEL,
    MAX_TEXT,
    Cell,
    Event,
    Header,
    Mark,
    Notice,
    RunFinished,
    TrialEnded,
    TrialStarted,
)

_E = TypeVar("_E", bound=Event)

_WITH_TEXT: Final = (Header, Cell, TrialStarted, Mark, TrialEnded, Notice, RunFinished)


def bounded(event: _E) -> _E:
    """The event, what is too long in it cut.

    Raises:
        UsageError: the plan in a header is too large, which no cutting mends.
    """
    if not isinstance(event, _WITH_TEXT):
        return event
    if isinstance(event, Header):
        try:
            check_scenario(event.scenario)
        except ValueError as error:
            raise UsageError(f"a recording cannot hold this plan: {error}", fix="plan fewer cells") from error
    changes: dict[str, object] = {}
    longest = MAX_LABEL if isinstance(event, Cell) else MAX_TEXT
    for name in event.__struct_fields__:
        value = getattr(event, name)
        if isinstance(value, str) and len(value) > longest:
            changes[name] = cut(value, longest)
        elif name == "software":
            changes[name] = {cut(key): cut(fact) for key, fact in list(value.items())[:MAX_FACTS]}
        elif name == "capabilities" and value:
            changes[name] = tuple(cut(one, longest) for one in value[:MAX_CAPABILITIES])
    return msgspec.structs.replace(event, **changes) if changes else event


def cut(text: str, longest: int = MAX_TEXT) -> str:
    """A text that a recording holds: the whole, or its beginning and an ellipsis."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
