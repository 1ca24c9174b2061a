"""``taxtui replay``: the Live screen on a recording."""

from __future__ import annotations

import math

import click

from taxtui.errors import UsageError


@click.command("replay")
@click.argument("recording")
@click.option(
    "--speed",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    help="Times real time; 0 = as fast as it can be read.",
)
@click.pass_context
def command(ctx: click.Context, recording: str, speed: float) -> None:
    """Watch a recording again, as it was.

    P pauses and continues. ? lists all keys.
    """
    if not math.isfinite(speed):
        raise UsageError(f"--speed {speed} is no speed", fix="0 is as fast as it can be read")
    from taxtui.commands.opening import located
    from taxtui.tui.launch import launch

    ctx.exit(launch(located(recording), speed))
