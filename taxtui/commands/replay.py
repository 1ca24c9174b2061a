"""``taxtui replay``: the Live screen with a recording."""

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
    help="Factor of real time; 0: as fast as possible.",
)
@click.pass_context
def command(ctx: click.Context, recording: str, speed: float) -> None:
    """Watch a measurement again, from its recording.

    P pauses and continues. ? lists all keys.
    """
    if not math.isfinite(speed):
        raise UsageError(f"--speed {speed} is not finite", fix="0 is as fast as possible")
    from taxtui.commands.files import find_recording
    from taxtui.tui.launch import launch

    ctx.exit(launch(find_recording(recording), speed))
