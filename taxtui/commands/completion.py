"""Shell completion of files, substrates, tiers, modes, providers and price sheets.

Imported only when a shell asks for completions: the options themselves do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, get_args

import click
from click.shell_completion import CompletionItem


class _Completed(click.ParamType[Any]):
    """Completes names, and with ``files`` also file names."""

    name = "text"

    def __init__(self, names: Callable[[], Sequence[str]], *, files: bool) -> None:
        self._names, self._files = names, files

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the file item first, then names: bash drops names before the file item.

        The value of the file item is never empty, because zsh would read the next line as the value.
        """
        files = [CompletionItem(incomplete or "./", type="file")] if self._files else []
        return [*files, *(CompletionItem(name) for name in self._names() if name.startswith(incomplete))]


def complete(command: click.Command) -> None:
    """Replace the types of a command's arguments and options by completing types."""
    for parameter in command.params:
        if isinstance(parameter.type, click.types.StringParamType | click.Path):
            parameter.type = _type_of(parameter)
    if isinstance(command, click.Group):
        for member in command.commands.values():
            complete(member)


def _type_of(parameter: click.Parameter) -> click.ParamType[Any]:
    if isinstance(parameter, click.Argument):
        names = _ARGUMENTS.get(str(parameter.name), list)
        return parameter.type if isinstance(parameter.type, click.Path) else _Completed(names, files=True)
    for flag in parameter.opts:
        if flag in _NAMES:
            return _Completed(_NAMES[flag], files=flag in _ALSO_FILES)
        if flag in _FILES:
            return click.Path()
    return parameter.type


def _substrates() -> Sequence[str]:
    from taxtui.sandboxes.registry import names

    return names()


def _tiers() -> Sequence[str]:
    from taxtui.plan.scenario import bundled

    first = bundled("tiers/T0.toml")
    return [] if first is None else sorted(path.stem for path in first.parent.glob("*.toml"))


def _modes() -> Sequence[str]:
    from taxtui.plan.spec import Mode

    return get_args(Mode)


def _scenarios() -> Sequence[str]:
    from taxtui.plan.scenario import shipped_names

    return shipped_names()


def _formats() -> Sequence[str]:
    from taxtui.importers.registry import names

    return names()


def _providers() -> Sequence[str]:
    from costmodel import known_providers

    return known_providers()


def _sheets() -> Sequence[str]:
    from costmodel import SHIPPED_PRICES

    return sorted(path.stem for path in SHIPPED_PRICES.glob("*.toml"))


_NAMES: Final[Mapping[str, Callable[[], Sequence[str]]]] = {
    **dict.fromkeys(("--substrate", "--from", "--to"), _substrates),
    "--tier": _tiers,
    "--mode": _modes,
    "--compose": _providers,
    "--prices": _sheets,
}
_ALSO_FILES: Final = frozenset({"--tier", "--compose", "--prices"})
_FILES: Final = frozenset({"--training", "--reference", "--pool-before", "--pool-after"})
_ARGUMENTS: Final[Mapping[str, Callable[[], Sequence[str]]]] = {"scenario": _scenarios, "words": _formats}
