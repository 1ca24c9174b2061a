"""Substrates by name, from the entry points ``taxtui.substrates``.

Loading one imports its SDK; listing them imports nothing.
"""

from __future__ import annotations

import contextlib
import difflib
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from taxtui import installed, shipped
from taxtui.errors import SubstrateError, SubstrateUnavailable, TaxtuiError, UsageError, located

if TYPE_CHECKING:
    from taxtui.plan.spec import SubstrateRef
    from taxtui.sandboxes.protocol import Substrate

GROUP = "taxtui.substrates"


def names() -> list[str]:
    """Every installed substrate, shipped or third-party, sorted."""
    return sorted(installed.points(GROUP))


def load(name: str) -> type[Substrate]:
    """The class of a name.

    Raises:
        UsageError: no such substrate; the message has the nearest name.
        SubstrateUnavailable: the SDK is not installed; the message names the extra.
    """
    point = installed.point(GROUP, name)
    if point is None:
        close = difflib.get_close_matches(name, names(), 1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names())}"
        raise UsageError(f"unknown substrate {name!r}", fix=hint)
    try:
        cls: type[Substrate] = point.load()
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "taxtui":
            raise  # a bug in taxtui, not a missing extra
        if too_old := needs_newer_python(name):
            raise too_old from error
        extra = shipped.row_of(name).extra
        fix = installed.extra_command(extra) if extra else f"install what {point.value} imports"
        raise SubstrateUnavailable(f"{name}: the module {error.name!r} is not installed", fix=fix) from error
    return cls


def needs_newer_python(name: str) -> SubstrateUnavailable | None:
    """The error for an SDK without a release for this Python, else None."""
    row = shipped.row_of(name)
    if sys.version_info >= row.oldest_python:
        return None
    needed, ours = (".".join(map(str, numbers[:2])) for numbers in (row.oldest_python, sys.version_info))
    detail = f"{name}: needs Python {needed} or newer, and this is Python {ours}"
    return SubstrateUnavailable(detail, fix=installed.extra_command(row.extra, python=needed))


def build(ref: SubstrateRef) -> Substrate:
    """A substrate with options set and clients closed.

    Raises:
        UsageError: an unknown option, or an invalid value.
    """
    cls = load(ref.name)
    return cls(_options(ref.name, cls.Options, ref.options))  # type: ignore[call-arg]


def without_unknown_options(ref: SubstrateRef) -> SubstrateRef:
    """A reference of another version of taxtui, with the options that this version knows.

    Raises:
        UsageError: no such substrate.
        SubstrateUnavailable: the SDK is not installed.
    """
    known = {field.name for field in msgspec.structs.fields(load(ref.name).Options)}
    options = {key: value for key, value in ref.options.items() if key in known}
    return msgspec.structs.replace(ref, options=options)


@contextlib.contextmanager
def blamed(name: str) -> Iterator[None]:
    """Turn an adapter's undocumented exceptions into a one-line error with the adapter's name.

    Raises:
        SubstrateError: for every exception outside ``taxtui.errors``, with class and place.
    """
    try:
        yield
    except TaxtuiError:
        raise
    except Exception as error:
        raise SubstrateError(f"{name}: unexpected {located(error)}", fix="report it to the adapter's author") from error


def _options(name: str, kind: type[msgspec.Struct], texts: Mapping[str, str]) -> msgspec.Struct:
    names_of_options = [field.name for field in msgspec.structs.fields(kind)]
    for key in texts:
        if key not in names_of_options:
            close = difflib.get_close_matches(key, names_of_options, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"it takes: {', '.join(names_of_options) or 'none'}"
            raise UsageError(f"{name} has no option {key!r}", fix=hint)
    try:
        return msgspec.convert(dict(texts), kind, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"{name}: {error}") from error
