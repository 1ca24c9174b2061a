"""Everything a person can do, once: the key bindings, the palette, the footer and the help screen come from here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from textual.binding import Binding

Scope = str
"""``app``, or that of a screen."""


class NumberedTab(NamedTuple):
    """A screen that a digit leads to: the class in ``<scope>/screen.py``, its style in ``<scope>/screen.tcss``."""

    key: str
    scope: Scope
    title: str
    help: str
    status: int  # columns that its status wants; what is left decides whether the other tabs have names or digits alone
    screen: str  # the class, imported when a person goes there


SCREENS: Final = (
    NumberedTab("1", "setup", "Setup", "What to measure, and whether it can be measured here", 0, "SetupScreen"),
    NumberedTab("2", "live", "Live", "The run as it happens, or a recording again", 90, "LiveScreen"),
    NumberedTab("3", "results", "Results", "Tables of what was measured", 46, "ResultsScreen"),
    NumberedTab("4", "projection", "Projection", "What any number of trajectories would cost", 46, "ProjectionScreen"),
    NumberedTab("5", "recordings", "Recordings", "What has been recorded on this machine", 26, "RecordingsScreen"),
)
"""Every screen; the first is the one that is there at once."""


class Action(NamedTuple):
    """One thing to do: ``action_<name>`` on the app or on the screen of its scope."""

    scope: Scope
    name: str  # with arguments as Textual writes them: facet(1)
    keys: str  # comma-separated, as Textual names them
    shown: str  # the key as a person reads it
    label: str  # for the footer and the palette
    help: str
    footer: bool = True


def _arranging(scope: Scope) -> tuple[Action, ...]:
    """How a table is arranged, wherever there is one; its border says so, the footer need not."""
    return (
        Action(scope, "sort", "o", "o", "Sort", "Sort by the next column; behind the last as it comes", False),
        Action(scope, "reverse", "O", "O", "Reverse", "Sort the other way round", False),
        Action(scope, "group", "b", "b", "Group", "Group by work, by substrate, or not", False),
        Action(scope, "filter", "slash", "/", "Filter", "Show only rows that contain a text", False),
    )


ACTIONS: Final = (
    *(Action("app", f"go('{tab.scope}')", tab.key, tab.key, tab.title, tab.help, False) for tab in SCREENS),
    Action("app", "help", "question_mark", "?", "Help", "All keys of this screen"),
    Action("app", "command_palette", "ctrl+p", "^p", "Palette", "Find any action by name"),
    Action("app", "next_theme", "t", "t", "Theme", "Next colour theme", False),
    Action("app", "quit", "q", "q", "Quit", "Leave; asks first while a run goes on, and cleans up"),
    Action("setup", "launch", "ctrl+r", "^r", "Launch", "Start the run that the form describes"),
    Action("setup", "recheck", "r", "r", "Recheck", "Ask every substrate again whether it can be used"),
    Action("setup", "preset", "p", "p", "Preset", "Fill the form from a scenario file"),
    Action("setup", "add", "a", "a", "Add", "Add a substrate with options, such as docker:runtime=runsc"),
    Action("setup", "copy", "y", "y", "Copy as CLI", "Copy the command line that makes exactly this run"),
    Action("live", "freeze", "space", "space", "Freeze", "Hold the view still; the run goes on"),
    Action("live", "pause", "P", "P", "Pause", "Start no more trials until pressed again; a replay stops its clock"),
    Action("live", "cancel", "c", "c", "Cancel", "Stop the run; asks first, and still cleans up"),
    Action("live", "facet(-1)", "left_square_bracket", "[", "Previous facet", "The previous duration", False),
    Action(
        "live", "facet(1)", "right_square_bracket", "]", "Facet", "The next duration: cold start, trajectory …", False
    ),
    Action("live", "overlay", "v", "v", "All", "All substrates of the workload on one chart, or one", False),
    Action("live", "ladder", "l", "l", "Ladder", "Throughput and p95 over concurrency, or one level's chart", False),
    Action("live", "zoom(-1)", "minus", "-", "Zoom out", "Show a wider range around the median", False),
    Action("live", "zoom(1)", "plus,equals_sign", "+", "Zoom", "Show a narrower range around the median", False),
    Action("live", "zoom(0)", "a", "a", "Whole range", "Show everything from the least to the greatest", False),
    Action("live", "open", "enter", "enter", "Trials", "The slowest trials of the cell; on a log line its timeline"),
    Action("live", "filter", "slash", "/", "Filter", "Show only log lines that contain a text", False),
    Action("live", "errors_only", "exclamation_mark", "!", "Errors", "Show only errors and warnings in the log", False),
    Action("live", "project", "p", "p", "Project", "Project the recording to any number of trajectories"),
    Action("live", "seek_by(-5)", "left", "←", "Back", "Replay: go back by 5 % of the recording", False),
    Action("live", "seek_by(5)", "right", "→", "On", "Replay: go on by 5 % of the recording", False),
    Action("live", "seek_by(-1)", "shift+left", "shift ←", "Back a little", "Replay: go back by 1 %", False),
    Action("live", "seek_by(1)", "shift+right", "shift →", "On a little", "Replay: go on by 1 %", False),
    Action("live", "seek(0)", "home", "home", "To the start", "Replay: go to the start", False),
    Action("live", "seek(1)", "end", "end", "To the end", "Replay: go to the end", False),
    Action("live", "go_to", "g", "g", "Go to", "Replay: go to 2:10, 1:02:10, 50% or the end of trial #158"),
    Action("live", "faster(-1)", "comma", ",", "Slower", "Replay: the next lower speed", False),
    Action("live", "faster(1)", "full_stop", ".", "Faster", "Replay: the next higher speed", False),
    Action("live", "full_speed", "0", "0", "Full speed", "Replay: as fast as it can be read, or 1× again", False),
    Action("live", "step", "s", "s", "Step", "Replay: stop the clock and go on to the next finished trial", False),
    Action(
        "live", "step_back", "S,backspace", "S", "Step back", "Replay: stop, and go back by one finished trial", False
    ),
    Action("live", "copy", "y", "y", "Copy", "Copy the table of percentiles as Markdown"),
    Action("live", "export", "e", "e", "Export", "Write this screen to an SVG file"),
    Action("results", "table(-1)", "left_square_bracket", "[", "Previous table", "The table before", False),
    Action("results", "table(1)", "right_square_bracket", "]", "Table", "The next table: fresh, completion …"),
    Action("results", "open", "enter", "enter", "All of it", "The long table; from there the slowest trials of a row"),
    *_arranging("results"),
    Action("results", "diff", "d", "d", "Diff with", "Show what changed from another recording"),
    Action("results", "project", "p", "p", "Project", "Project what is shown to any number of trajectories"),
    Action("results", "reload", "r", "r", "Reload", "Read what a recording has grown by"),
    Action("results", "copy", "y", "y", "Copy", "Copy the table, a row, or the command that prints it"),
    Action("results", "page", "h", "h", "HTML page", "Write a page to send: answer, figures, tables, data"),
    Action("results", "export", "e", "e", "Export", "Write this screen to an SVG file", False),
    Action("projection", "adjust(-1)", "left", "←", "Less", "The option's value before, or take it back", False),
    Action("projection", "adjust(1)", "right", "→", "More", "The option's next value", False),
    Action("projection", "exact", "enter", "enter", "Type", "Type a value; the answer follows"),
    Action("projection", "reset", "delete,backspace", "del", "Reset", "The option as it usually is", False),
    Action("projection", "why", "w", "w", "Why", "Every input, formula and intermediate value of the row"),
    Action("projection", "details", "d", "d", "Details", "All tables, as the command line prints them"),
    Action(
        "projection",
        "picture",
        "x",
        "x",
        "Picture",
        "Costs by cause; completion over actions, wall-clock over workers",
    ),
    Action("projection", "all_rows", "f", "f", "All rows", "Every row with all its numbers, or the answer again"),
    *_arranging("projection"),
    Action("projection", "copy", "y", "y", "Copy as CLI", "Copy the command line that prints the same"),
    Action("projection", "page", "h", "h", "HTML page", "Write a page to send, of this question"),
    Action("projection", "export", "e", "e", "Export", "Write this screen to an SVG file", False),
    Action("recordings", "replay", "enter", "enter", "Replay", "Play the recording back on Live; so do two clicks"),
    Action(
        "recordings", "mark", "space", "space", "Mark", "Mark several, so that Project and Results pool them", False
    ),
    Action("recordings", "project", "p", "p", "Project", "Project what is marked, else the recording under the cursor"),
    Action("recordings", "results", "s", "s", "Results", "Tables of what is marked, else of the one under the cursor"),
    Action("recordings", "diff", "d", "d", "Diff", "Compare the recording with another, which is asked for", False),
    Action("recordings", "verify", "v", "v", "Verify", "Read every byte: is it complete and intact?"),
    Action("recordings", "delete", "x", "x", "Delete", "Move the recording to the trash; asks first"),
    Action("recordings", "filter", "slash", "/", "Filter", "Show only recordings that contain a text", False),
    Action("recordings", "rescan", "r", "r", "Look again", "List the folder anew", False),
    Action("recordings", "copy", "y", "y", "Copy as CLI", "Copy the command line that replays the recording", False),
)


def of(*scopes: Scope) -> list[Action]:
    """The actions of these scopes, in the order of the table."""
    return [action for action in ACTIONS if action.scope in scopes]


def bindings(scope: Scope) -> list[Binding]:
    """What a screen or the app puts into ``BINDINGS``."""
    return [
        Binding(
            action.keys,
            action.name,
            action.label,
            show=action.footer,
            key_display=action.shown,
            tooltip=action.help,
            priority=action.name == "command_palette",
        )
        for action in of(scope)
    ]


def help_lines(scopes: Iterable[Scope]) -> list[tuple[str, str, str]]:
    """(key, label, help) of every action in these scopes."""
    return [(action.shown, action.label, action.help) for action in of(*scopes)]
