"""Runs the app in the terminal and leaves nothing running."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from taxtui.terminal_text import clean
from taxtui.tui.app import TaxtuiApp


def launch(path: Path | None = None, speed: float = 1.0) -> int:
    """Run the interface, with the recording ``path`` if any; return the exit code.

    Raises:
        SourceError: the recording cannot be read.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        click.echo("taxtui: there is no terminal to draw on; `taxtui run` measures without one", err=True)
        return 2
    for exported in ("COLUMNS", "LINES"):  # Textual would ignore every later resize
        os.environ.pop(exported, None)
    replay = None
    if path:
        from taxtui.tui.live.replay import ReplayFeed

        replay = ReplayFeed(path, speed)
    app = TaxtuiApp(replay)
    try:
        app.run()
    finally:
        feed = app.feed
        if feed:
            if feed.live and not feed.over:
                click.echo("taxtui: cancelling the run and removing its sandboxes …", err=True)
            feed.close()
    if feed and feed.live and feed.state.run_id:
        from taxtui.tui.live.summary import farewell

        # After a crash of the interface its error stays in sight.
        click.echo(clean(str(feed.path)) if app.return_code else farewell(feed.state, feed.path))
    return app.return_code or 0
