"""``taxtui replay``: the Live screen on a recording."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("replay")
@click.argument("recording", type=click.Path(path_type=Path))
@click.option(
    "--speed", type=click.FloatRange(min=0), default=1.0, show_default=True, help="Times real time; 0 = at once."
)
@click.pass_context
def command(ctx: click.Context, recording: Path, speed: float) -> None:
    """Watch a recording again, as it was: P stops the clock, , and . change the speed, s goes to the next trial."""
    from taxtui.tui.app import launch

    ctx.exit(launch(recording, speed))
