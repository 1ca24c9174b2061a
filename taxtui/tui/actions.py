"""The table of all actions: key bindings, footer and help come from here.

A key has one meaning on every screen that takes the key.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from textual.binding import Binding

Scope = str
"""``app``, or the scope of a screen."""


class NumberedTab(NamedTuple):
    """A screen with a digit: the class in ``<scope>/screen.py``, its style in ``<scope>/screen.tcss``."""

    key: str
    scope: Scope
    title: str
    help: str
    screen: str  # the class, imported on the first visit


SCREENS: Final = (
    NumberedTab("1", "setup", "Setup", "Choose what to measure, and launch it", "SetupScreen"),
    NumberedTab("2", "live", "Live", "Watch the measurement, or replay a recording", "LiveScreen"),
    NumberedTab("3", "results", "Results", "Compare what was measured", "ResultsScreen"),
    NumberedTab("4", "projection", "Projection", "Project to a training run", "ProjectionScreen"),
    NumberedTab("5", "recordings", "Recordings", "Choose among the recordings of this machine", "RecordingsScreen"),
)
"""Every screen; the app starts with the first."""


class Action(NamedTuple):
    """One action: ``action_<name>`` of the app or of each screen in ``scopes``."""

    keys: str  # names of Textual
    shown: str  # the key, for a person
    name: str  # with arguments: switch(1)
    label: str  # for the footer
    help: str
    scopes: tuple[Scope, ...]
    footer: tuple[Scope, ...] = ()  # scopes with the action in their footer


_APP: Final = ("app",)
_LIVE, _PROJECTION = ("live",), ("projection",)
_TABS: Final = ("live", "results")
_DATA: Final = ("live", "results", "projection", "recordings")
_COPIES: Final = ("setup", *_DATA)

ACTIONS: Final = (
    *(Action(tab.key, tab.key, f"go('{tab.scope}')", tab.title, tab.help, _APP) for tab in SCREENS),
    Action("ctrl+r", "^r", "launch", "Launch", "Start the measurement of the form", ("setup",), ("setup",)),
    Action("enter", "enter", "open", "Open", "Open the line under the cursor: trials, table, value", _DATA, _DATA),
    Action("y", "y", "copy", "Copy", "Copy the command line", _COPIES, _COPIES),
    Action("h", "h", "page", "HTML page", "Write an HTML page in the recording's folder", _DATA, _DATA),
    Action("left_square_bracket", "[", "switch(-1)", "Previous", "The previous table or duration", _TABS),
    Action("right_square_bracket", "]", "switch(1)", "Next", "The next table or duration", _TABS, ("results",)),
    Action("left", "←", "adjust(-1)", "Less", "Half of the option's value, or its previous choice", _PROJECTION),
    Action("right", "→", "adjust(1)", "More", "Twice the option's value, or its next choice", _PROJECTION),
    Action("m", "m", "decide", "Move?", "Decide whether to move to another substrate", _PROJECTION, _PROJECTION),
    Action("w", "w", "why", "Why", "Every input, formula and intermediate value", _PROJECTION),
    Action("l", "l", "load", "Load", "Load a training file", _PROJECTION),
    Action("a", "a", "add", "Add", "Add a substrate with options: docker:runtime=runsc", ("setup",)),
    Action("r", "r", "renew", "Renew", "Check substrates, or read files again", ("setup", "results", "recordings")),
    Action("d", "d", "diff", "Diff", "Compare with another recording", ("results", "recordings"), ("recordings",)),
    Action("p", "p", "pause", "Pause", "Start no more trials, or stop a replay; again: continue", _LIVE, _LIVE),
    Action("c", "c", "cancel", "Cancel", "Cancel the measurement; asks first, and cleans up", _LIVE),
    Action("question_mark", "?", "help", "Help", "All keys of this screen", _APP, _APP),
    Action("q", "q", "quit", "Quit", "Leave; asks during a measurement, and cleans up", _APP, _APP),
)


def actions_in(*scopes: Scope) -> list[Action]:
    """Return the actions of these scopes, in the order of the table."""
    return [action for action in ACTIONS if not set(scopes).isdisjoint(action.scopes)]


def bindings(scope: Scope) -> list[Binding]:
    """Return the ``BINDINGS`` of a screen or of the app."""
    return [
        Binding(
            action.keys,
            action.name,
            action.label,
            show=scope in action.footer,
            key_display=action.shown,
            tooltip=action.help,
        )
        for action in actions_in(scope)
    ]
