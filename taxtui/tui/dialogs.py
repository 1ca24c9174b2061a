"""Dialogs: questions, choices, texts; and the clipboard."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeVar

from rich.table import Table
from rich.text import Text
from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import ScrollableContainer, Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from taxtui import folders
from taxtui.errors import UsageError
from taxtui.terminal_text import fit, widest
from taxtui.tui import actions

COPIED: Final = "copied.txt"
"""File in the cache with the last copied text."""


def copy(app: App[Any], text: str, message: str) -> None:
    """Put ``text`` on the clipboard and into a file; show ``message`` and the path of the file.

    Some terminals ignore the clipboard without a report, and tmux needs a setting.
    """
    app.copy_to_clipboard(text)
    try:
        folder = folders.cache()
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / COPIED
        path.write_text(text, encoding="utf-8", errors="replace")
    except (OSError, UsageError):
        advice = "select it with the mouse and shift held"
    else:
        advice = f"cat {shlex.quote(str(path))}"
    app.notify(f"{message}\nNot on the clipboard? {advice}", title="Copied")


Value = TypeVar("Value")

CLOSE = Binding("escape", "dismiss(None)", "Close", show=False)


class Confirm(ModalScreen[bool | None]):
    """Yes or no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss(True)", "Yes", show=False),
        Binding("n,enter,escape", "dismiss(False)", "No", show=False),
    ]

    def __init__(self, title: str, body: str, yes: str, no: str) -> None:
        """Ask ``body``; ``yes`` and ``no`` are the answers in words."""
        super().__init__()
        self._title, self._body, self._yes, self._no = title, body, yes, no

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as box:
            box.border_title = Text(self._title)
            yield Static(self._body, markup=False)
            keys = Text.assemble(("\ny", "bold"), f"  {self._yes}", ("\nn", "bold"), f"  {self._no}")
            yield Static(keys, markup=False)


class Ask(ModalScreen[str | None]):
    """Asks for a line of text; None after escape."""

    BINDINGS: ClassVar[list[BindingType]] = [CLOSE]

    def __init__(
        self, title: str, body: str, *, wanted: str | None = None, placeholder: str = "", value: str | None = None
    ) -> None:
        """Ask for a text; only ``wanted`` is accepted if given. A ``value`` can be changed, or emptied."""
        super().__init__()
        self._title, self._body, self._wanted = title, body, wanted
        self._placeholder, self._value = placeholder, value

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as box:
            box.border_title = Text(self._title)
            box.border_subtitle = "enter to go on · esc to go back"
            yield Static(self._body, markup=False)
            yield Input(self._value, placeholder=self._placeholder, compact=True, select_on_focus=True)
            yield Static("", id="refusal", markup=False)

    @on(Input.Submitted)
    def submit(self, event: Input.Submitted) -> None:
        text = event.value.strip()
        if not self.is_current:  # a second enter was in the queue
            return
        if self._wanted is not None and text != self._wanted:
            self.query_one("#refusal", Static).update(f'that is not "{self._wanted}"')
        elif text or self._value is not None:
            self.dismiss(text)


class Choice(NamedTuple, Generic[Value]):
    """A line of a ``Choose``."""

    label: str
    note: str
    value: Value


class Choose(ModalScreen[Value | None]):
    """Asks for one of a few values."""

    BINDINGS: ClassVar[list[BindingType]] = [CLOSE]

    def __init__(self, title: str, choices: Sequence[Choice[Value]]) -> None:
        super().__init__()
        self._title, self._choices = title, choices

    def compose(self) -> ComposeResult:
        width = widest(choice.label for choice in self._choices)
        with Vertical(classes="dialog wide") as box:
            box.border_title = Text(self._title)
            box.border_subtitle = "enter to use · esc to go back"
            yield OptionList(
                *(
                    Option(Text.assemble((f"{fit(choice.label, width)}  ", "bold"), choice.note))
                    for choice in self._choices
                ),
                compact=True,
                markup=False,
            )

    @on(OptionList.OptionSelected)
    def choose(self, event: OptionList.OptionSelected) -> None:
        if self.is_current:  # else a second enter was in the queue
            self.dismiss(self._choices[event.option_index].value)


def columns(app: App[Any]) -> int:
    """Return the columns of a text in a wide dialog."""
    return min(92, app.size.width * 95 // 100 - 7)


class Tell(ModalScreen[None]):
    """A text to read."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,question_mark", "dismiss(None)", "Close", show=False),
        Binding("y", "copy", "Copy", show=False),
    ]

    def __init__(self, title: str, body: Text | Table, *, copyable: str = "") -> None:
        """Show ``body``; ``y`` copies ``copyable``."""
        super().__init__()
        self._title, self._body, self._copyable = title, body, copyable

    def compose(self) -> ComposeResult:
        with ScrollableContainer(classes="dialog wide") as box:
            box.border_title = Text(self._title)
            box.border_subtitle = "y copies the command · esc closes" if self._copyable else "esc closes"
            yield Static(self._body, id="told", markup=False)

    def action_copy(self) -> None:
        if self._copyable:
            copy(self.app, self._copyable, self._copyable)


def help_dialog(scope: actions.Scope) -> Tell:
    """Return the dialog with every key of a screen and of the app."""
    table = Table.grid(padding=(0, 2))
    for action in actions.actions_in(scope, "app"):
        table.add_row(Text(action.shown, "bold"), Text(action.label), Text(action.help, "dim"))
    table.add_row(Text("tab", "bold"), Text("Next part"), Text("Move between lists, fields and buttons", "dim"))
    table.add_row(Text("↑ ↓", "bold"), Text("Move"), Text("Move in the list that has the focus", "dim"))
    return Tell("Keys", table)
