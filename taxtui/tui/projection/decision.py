"""The page of ``taxtui decide``: whether to move the training run to another substrate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from textual.screen import Screen

from costmodel import FIXED_LENGTH, WorkLine, known_providers, matches_spec
from taxtui.live.catalogue import path_text
from taxtui.tui.command_dialog import show_command
from taxtui.tui.dialogs import Choice, Choose
from taxtui.tui.projection import form
from taxtui.tui.projection.model import Answered

BASELINE: Final = "local"
"""A reference, not the substrate of a training run: like ``taxtui decide``, prefer any other as the start."""
NOT_TAKEN: Final = ("baseline",)
"""Options of the form that ``taxtui decide`` lacks."""
DECIDED: Final = (0, 6)
"""Exit codes of ``taxtui decide``: MOVE or STAY, and CAN'T TELL."""


async def ask(
    screen: Screen[None], paths: Sequence[Path], answered: Answered, typed: form.Typed, line: WorkLine | None
) -> None:
    """Ask for the goal of the move, and for the start if several substrates were measured; then show the page."""
    measured = list(dict.fromkeys(row.identity.label for row in answered.rows if row.provenance == "measured"))
    # a move starts at a measured substrate, so that a single measured substrate is not a goal
    choices = [Choice(label, "measured here", label) for label in measured if len(measured) > 1]
    choices += [
        Choice(name, "estimated from published figures", name)
        for name in known_providers()
        if not any(matches_spec(row.identity, name) for row in answered.rows if row.provenance == "measured")
    ]
    goal = await screen.app.push_screen_wait(Choose("Move the training run to", choices))
    if goal is None:
        return
    starts = [label for label in measured if label != goal]
    starts = [label for label in starts if label.partition(":")[0] != BASELINE] or starts
    start = None  # a single one is chosen by ``taxtui decide``
    if len(starts) > 1:
        start = await screen.app.push_screen_wait(Choose("from", [Choice(label, "", label) for label in starts]))
        if start is None:
            return
    words = ["taxtui", "decide", *map(path_text, paths), "--to", goal, *(["--from", start] if start else [])]
    if line is not None:
        identity = line.entries[0].row.identity
        words += ["--tier", identity.tier, "--mode", identity.mode]
        if identity.length == FIXED_LENGTH and not form.value_of("actions", typed):
            words += ["-n", str(identity.actions)]
    words += form.words({name: value for name, value in typed.items() if name not in NOT_TAKEN})
    await show_command(screen, "Move?", words, DECIDED)
