"""Every action of the interface, once: the key bindings, the palette, the footer and the help come from this table.

A key has one meaning on every screen that takes it.
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
    status: int  # columns of the screen's status; the other columns decide whether tabs show names or digits alone
    screen: str  # the class, which is imported on the first visit


SCREENS: Final = (
    NumberedTab("1", "setup", "Setup", "Choose what to measure, and launch it", 0, "SetupScreen"),
    NumberedTab("2", "live", "Live", "Watch the measurement, or replay a recording", 90, "LiveScreen"),
    NumberedTab("3", "results", "Results", "Compare what was measured", 46, "ResultsScreen"),
    NumberedTab("4", "projection", "Projection", "Project to a training run", 46, "ProjectionScreen"),
    NumberedTab("5", "recordings", "Recordings", "Choose among the recordings of this machine", 26, "RecordingsScreen"),
)
"""Every screen; the first one opens at the start."""


class Action(NamedTuple):
    """One action: ``action_<name>`` of the app or of each screen in ``scopes``."""

    keys: str  # as Textual names them
    shown: str  # the key as a person reads it
    name: str  # with arguments as Textual writes them: switch(1)
    label: str  # for the footer and the palette
    help: str
    scopes: tuple[Scope, ...]
    footer: tuple[Scope, ...] = ()  # the scopes that show it in the footer


_APP: Final = ("app",)
_LIVE, _PROJECTION, _RECORDINGS = ("live",), ("projection",), ("recordings",)
_TABLES: Final = ("results", "projection")
_DATA: Final = ("live", "results", "projection", "recordings")
_ADJUSTS: Final = ("live", "projection")
_COPIES: Final = ("setup", *_DATA)

ACTIONS: Final = (
    *(Action(tab.key, tab.key, f"go('{tab.scope}')", tab.title, tab.help, _APP) for tab in SCREENS),
    Action("ctrl+r", "^r", "launch", "Launch", "Start the measurement of the form", ("setup",), ("setup",)),
    Action(
        "enter", "enter", "open", "Open", "Open what is under the cursor: trials, table, value, replay", _DATA, _DATA
    ),
    Action("y", "y", "copy", "Copy", "Copy the command line or the table", _COPIES, _COPIES),
    Action("h", "h", "page", "HTML page", "Write an HTML page in the recording's folder", _DATA, _DATA),
    Action("slash", "/", "filter", "Filter", "Show only lines that contain a text", _DATA),
    Action("o", "o", "sort", "Sort", "Sort by the next column; twice for each column, up and down", _TABLES),
    Action("left_square_bracket", "[", "switch(-1)", "Previous", "The previous table or duration", ("live", "results")),
    Action(
        "right_square_bracket",
        "]",
        "switch(1)",
        "Next",
        "The next table or duration",
        ("live", "results"),
        ("results",),
    ),
    Action("v", "v", "view", "View", "The next picture of the same data", _ADJUSTS),
    Action("left", "←", "adjust(-1)", "Less", "The option's previous value; 5 % back in a replay", _ADJUSTS),
    Action("right", "→", "adjust(1)", "More", "The option's next value; 5 % on in a replay", _ADJUSTS),
    Action("m", "m", "decide", "Move?", "Decide whether to move to another substrate", _PROJECTION, _PROJECTION),
    Action("w", "w", "why", "Why", "Every input, formula and intermediate value", _PROJECTION),
    Action("f", "f", "full", "Full", "All tables, as the command line prints them", _PROJECTION),
    Action("l", "l", "load", "Load", "Load a scenario, or a training file", ("setup", "projection")),
    Action("a", "a", "add", "Add", "Add a substrate with options: docker:runtime=runsc", ("setup",)),
    Action("r", "r", "renew", "Renew", "Check substrates, or read files again", ("setup", "results", "recordings")),
    Action("d", "d", "diff", "Diff", "Compare with another recording", ("results", "recordings")),
    Action("space", "space", "mark", "Mark", "Mark several, so that 3 and 4 pool them", _RECORDINGS, _RECORDINGS),
    Action("x", "x", "delete", "Delete", "Move the recording to the trash; asks first", _RECORDINGS),
    Action("p", "p", "pause", "Pause", "Start no more trials, or stop the replay's clock; again: go on", _LIVE, _LIVE),
    Action("c", "c", "cancel", "Cancel", "Cancel the measurement; asks first, and cleans up", _LIVE),
    Action("g", "g", "go_to", "Go to", "Replay: go to 2:10, 1:02:10, 50% or the end of trial #158", _LIVE),
    Action("comma", ",", "faster(-1)", "Slower", "Replay: the next lower speed", _LIVE),
    Action(
        "full_stop", ".", "faster(1)", "Faster", "Replay: the next higher speed, at last as fast as possible", _LIVE
    ),
    Action("t", "t", "next_theme", "Theme", "Next colour theme", _APP),
    Action("ctrl+p", "^p", "command_palette", "Palette", "Find any action by name", _APP),
    Action("question_mark", "?", "help", "Help", "All keys of this screen", _APP, _APP),
    Action("q", "q", "quit", "Quit", "Leave; asks during a measurement, and cleans up", _APP, _APP),
)


def of(*scopes: Scope) -> list[Action]:
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
            priority=action.name == "command_palette",
        )
        for action in of(scope)
    ]
