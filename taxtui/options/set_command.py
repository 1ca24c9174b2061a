"""Commands with ``--set KEY=VALUE``: an unknown option that is a key is refused with the key to write."""

from __future__ import annotations

import click

from taxtui.errors import UsageError


class SetCommand(click.Command):
    """A command with ``--set``."""

    def set_keys(self) -> dict[str, str]:
        """Return option (``--gpu-usd-hour``) → key of ``--set``, for the keys without an option."""
        return {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line. Raises ``UsageError``: an option is a key of ``--set`` only."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if key := self.set_keys().get(error.option_name):
                raise UsageError(f"{error.option_name} is no option here", fix=f"write --set {key}=VALUE") from error
            raise
