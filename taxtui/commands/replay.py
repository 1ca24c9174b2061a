"""``taxtui replay``: the Live screen with a recording."""

from __future__ import annotations

import click


@click.command("replay")
@click.argument("recording")
@click.pass_context
def command(ctx: click.Context, recording: str) -> None:
    """Open the Live screen on a recording. ? lists all keys."""
    from taxtui.commands.files import find_recording
    from taxtui.tui.launch import launch

    ctx.exit(launch(find_recording(recording)))
