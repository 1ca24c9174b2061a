"""``taxtui tui``: open the terminal user interface, as ``taxtui`` without a command."""

from __future__ import annotations

import click


@click.command("tui")
@click.pass_context
def command(context: click.Context) -> None:
    """Open the terminal user interface."""
    from taxtui.tui.launch import launch

    context.exit(launch())
