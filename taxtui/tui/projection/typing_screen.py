"""The half of the Projection screen that is typed into: the form, what its lines are for, and a field for a value."""

from __future__ import annotations

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.widgets import Input, Static

from taxtui.tui.answer.arranged_screen import ArrangedScreen
from taxtui.tui.projection import form
from taxtui.tui.projection.form_panel import FormPanel


class TypingScreen(ArrangedScreen):
    """Every change of a value is a ``FormPanel.Changed``."""

    def __init__(self) -> None:
        """Nothing is typed yet."""
        super().__init__()
        self._typing = ""  # the option whose value is typed
        self._before = ""  # its value until then

    def form_fields(self) -> ComposeResult:
        """The form, what the line under its cursor is for, the field."""
        yield FormPanel(id="form")
        yield Static("", id="hint", markup=False)
        yield Input(id="exact", compact=True, select_on_focus=True)

    def explain_field(self) -> None:
        """What the line under the form's cursor is for."""
        self.query_one("#hint", Static).update(Text(self.query_one("#form", FormPanel).help, "dim"))

    def action_adjust(self, step: int) -> None:
        """The option's next value; a group is opened or folded."""
        self.query_one("#form", FormPanel).adjust(step)

    def action_reset(self) -> None:
        """The option as it usually is."""
        self.query_one("#form", FormPanel).reset()

    def action_exact(self) -> None:
        """Type a value of the option under the cursor; a switch is turned, a group opened or folded."""
        panel, field = self.query_one("#form", FormPanel), self.query_one("#exact", Input)
        option = panel.field
        if option is None:
            panel.turn()
            return
        if option.flag:
            panel.set(option.name, "" if panel.values.get(option.name) else form.ON)
            return
        field.display = True
        with self.prevent(Input.Changed):
            field.value = panel.values.get(option.name, "")
        field.placeholder = f"{option.label}: not asked for"
        self._typing, self._before = option.name, field.value
        self.set_focus(field)  # at once: what is typed next goes there

    @on(Input.Changed, "#exact")
    def typed(self, event: Input.Changed) -> None:
        """The answer follows while a person types."""
        self.query_one("#form", FormPanel).set(self._typing, event.value)

    @on(Input.Submitted, "#exact")
    def typed_all(self) -> None:
        """Back to the list."""
        self.query_one("#exact", Input).display = False
        self.set_focus(self.query_one("#form"))

    def key_escape(self) -> None:
        """Take back what was typed; else drop the filter."""
        if self.query_one("#exact", Input).display:
            self.query_one("#form", FormPanel).set(self._typing, self._before)
            self.typed_all()
        else:
            super().key_escape()
