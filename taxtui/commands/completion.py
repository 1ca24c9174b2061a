"""Shell completion of files, substrates, tiers, modes, providers and price sheets.

Imported only when a shell asks for completions: the options themselves do not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

FILES: Final = frozenset({"--training", "--reference", "--pool-before", "--pool-after"})
ALSO_FILES: Final = frozenset({"--tier", "--compose", "--prices"})
"""Options with names or files as values."""


class _Completed(click.ParamType[Any]):
    """Completes names, and with ``files`` also file names."""

    name = "text"

    def __init__(self, names: Sequence[str], *, files: bool) -> None:
        self._names, self._files = names, files

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the file item first, then names: bash drops names before the file item.

        The value of the file item is never empty, because zsh would read the next line as the value.
        """
        files = [CompletionItem(incomplete or "./", type="file")] if self._files else []
        return [*files, *(CompletionItem(name) for name in self._names if name.startswith(incomplete))]


def complete(command: click.Command) -> None:
    """Replace the types of a command's arguments and options by completing types."""
    for parameter in command.params:
        if isinstance(parameter, click.Argument) and isinstance(parameter.type, click.types.StringParamType):
            parameter.type = _Completed(_names(str(parameter.name)), files=True)
        elif isinstance(parameter.type, click.types.StringParamType | click.Path):
            flag = parameter.opts[-1]
            if flag in FILES:
                parameter.type = click.Path()
            elif names := _names(flag):
                parameter.type = _Completed(names, files=flag in ALSO_FILES)
    if isinstance(command, click.Group):
        for member in command.commands.values():
            complete(member)


def _names(parameter: str) -> Sequence[str]:
    """Return the known values of an option or an argument."""
    from costmodel import SHIPPED_PRICES, known_providers
    from taxtui.importers import registry as importers
    from taxtui.plan import scenario
    from taxtui.sandboxes import registry
    from taxtui.tui.setup.form import shipped_tiers

    match parameter:
        case "--substrate" | "--from" | "--to":
            return registry.names()
        case "--tier":
            return shipped_tiers()
        case "--mode":
            return ["exec", "session"]
        case "--compose":
            return known_providers()
        case "--prices":
            return sorted(path.stem for path in SHIPPED_PRICES.glob("*.toml"))
        case "scenario":
            return scenario.shipped_names()
        case "words":  # of import
            return importers.names()
    return ()
