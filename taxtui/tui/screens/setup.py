"""Setup: what to measure, whether it can be measured here, and how large the plan is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Input, Label, OptionList, Static

from taxtui import registry
from taxtui.errors import TaxtuiError, UsageError
from taxtui.notation import parse_substrate
from taxtui.tui import actions
from taxtui.tui.availability import Answer
from taxtui.tui.colours import glyph, substrate_style, themed
from taxtui.tui.form import Choices, Preset, about_tier, presets, shipped_tiers
from taxtui.tui.screens.dialogs import Ask, Choice, Choose
from taxtui.tui.screens.numbered import NumberedScreen
from taxtui.tui.widgets.pick_list import PickList

LENGTHS = ("10", "50", "150")
MODES = {
    "exec": "exec  one dispatch through the substrate's command path per action",
    "session": "session  one persistent shell that all actions of a trial go through",
}
FIELDS = (("trials", "Trials", "100"), ("warmup", "Warm-up", "1"), ("concurrency", "Concurrency", "1"))


class SetupScreen(NumberedScreen):
    """The form; everything it says is in ``choices``."""

    scope = "setup"
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("setup")]
    AUTO_FOCUS = "#substrates"

    def __init__(self) -> None:
        """Nothing is known of any substrate yet."""
        super().__init__()
        self.answers: dict[str, Answer] = {}
        self.checking = False
        self.preset: Preset | None = None  # one that the form cannot say, to be run as it stands

    def contents(self) -> ComposeResult:
        """Four lists, a row of fields, the plan and the buttons."""
        with Horizontal(id="picks"):
            yield PickList(id="substrates", title="Substrates")
            yield PickList(id="tiers", title="Tiers")
            yield PickList(id="actions", title="Actions")
            yield PickList(id="modes", title="Mode")
        with Horizontal(id="fields"):
            for key, label, value in FIELDS:
                yield Label(label)
                yield Input(value, id=key, compact=True, restrict=r"[0-9]*", max_length=7, select_on_focus=True)
            yield Label("Budget")
            yield Input("", id="budget", compact=True, placeholder="none", max_length=7)
        with Vertical(id="plan") as plan:
            plan.border_title = "Plan"
            yield Static("", id="size", markup=False)
            yield Static("", id="command", markup=False)
            yield Static("", id="advice", markup=False)
            yield Static("", id="about", markup=False)
        with Horizontal(id="buttons"):
            yield Button("Launch", id="launch", variant="success", compact=True)
            yield Button("Copy as CLI", id="copy", compact=True)
            yield Button("Preset", id="preset", compact=True)
            yield Button("Add substrate", id="add", compact=True)

    def on_mount(self) -> None:
        """Offer what is installed, at once; whether it works is asked in the background."""
        for name in registry.names():
            self._offer_substrate(name, picked=name == "local")
        tiers = self.query_one("#tiers", PickList)
        for name in shipped_tiers():
            tiers.offer(name, picked=name == "T0")
        lengths = self.query_one("#actions", PickList)
        for length in LENGTHS:
            lengths.offer(length, picked=length == "10")
        modes = self.query_one("#modes", PickList)
        for mode in MODES:
            modes.offer(mode, picked=mode == "exec")
        for picks in self.query(PickList):
            picks.highlighted = 0
        self.refresh_plan()
        self.action_recheck()

    @property
    def choices(self) -> Choices:
        """What the form says."""
        return Choices(
            substrates=tuple(self.query_one("#substrates", PickList).picked),
            tiers=tuple(self.query_one("#tiers", PickList).picked),
            actions=tuple(int(text) for text in self.query_one("#actions", PickList).picked),
            modes=tuple(self.query_one("#modes", PickList).picked),
            trials=self.query_one("#trials", Input).value,
            warmup=self.query_one("#warmup", Input).value,
            concurrency=self.query_one("#concurrency", Input).value,
            budget=self.query_one("#budget", Input).value.strip(),
        )

    def _offer_substrate(self, key: str, *, picked: bool) -> None:
        self.query_one("#substrates", PickList).offer(key, picked=picked, label=lambda: self._substrate_label(key))

    def _substrate_label(self, key: str) -> Text:
        """``● docker   27.1, runc``, ``✗ ec2   credentials expired``."""
        answer = self.answers.get(key.partition(":")[0])
        dark = self.app.current_theme.dark
        if answer is None or answer.ok is None:
            note = "checking…" if self.checking else "not checked"
            return Text.assemble((f"{glyph(key)} {key:<11}", substrate_style(key, dark=dark)), (note, "dim"))
        if not answer.ok:
            error = themed(self.app.theme_variables, "text-error")
            return Text.assemble(("✗ ", error), (f"{key:<11}", "dim"), (answer.detail, error))
        return Text.assemble(
            (f"{glyph(key)} {key:<11}", substrate_style(key, dark=dark)),
            ("PAID · " if answer.paid else "", "bold"),
            answer.detail.removeprefix("ready, ") or "ready",
        )

    @on(PickList.Changed)
    @on(Input.Changed)
    def edited(self) -> None:
        """The form was changed, so it is what counts again."""
        self.preset = None
        self.refresh_plan()

    @on(OptionList.OptionHighlighted, "#substrates")
    def explain(self) -> None:
        """The fix of the substrate under the cursor."""
        self.refresh_plan()

    def restyle(self) -> None:
        """As ``NumberedScreen.restyle``."""
        self.query_one("#substrates", PickList).redraw()
        self.refresh_plan()

    def refresh_plan(self) -> None:
        """Say what would run, how large that is, and what stands in the way."""
        choices = self.choices
        size, command, advice = Text(), Text(), Text()
        if self.preset:
            size.append(f"preset {self.preset.name}: {self.preset.title}")
            command.append(f"$ taxtui run {self.preset.argument}", "dim")
        elif missing := choices.missing:
            size.append(f"Not ready: {missing}", themed(self.app.theme_variables, "text-warning"))
        else:
            size.append(choices.summary())
            command.append(f"$ {choices.command()}", "dim")
        substrates = self.query_one("#substrates", PickList)
        if substrates.highlighted is not None:
            key = substrates.offered[substrates.highlighted]
            answer = self.answers.get(key.partition(":")[0])
            if answer and answer.ok is not None:
                mark, style = ("✓", "text-success") if answer.ok else ("✗", "text-error")
                latency = f" · {answer.latency_ns / 1e6:.0f} ms away" if answer.latency_ns else ""
                advice.append(f"{mark} {key}: {answer.detail}{latency}", themed(self.app.theme_variables, style))
                advice.append(f"\n  {answer.fix}" if answer.fix else "")
        self.query_one("#size", Static).update(size)
        self.query_one("#command", Static).update(command)
        self.query_one("#advice", Static).update(advice)
        about = [about_tier(name) for name in choices.tiers] + [MODES[mode] for mode in choices.modes]
        self.query_one("#about", Static).update(Text("\n".join(about), "dim"))
        self.query_one("#launch", Button).disabled = bool(choices.missing) and not self.preset

    @on(Button.Pressed)
    async def pressed(self, event: Button.Pressed) -> None:
        """The buttons are the actions of the same name."""
        await self.run_action(str(event.button.id))

    @work(exclusive=True, group="check")
    async def action_recheck(self) -> None:
        """Ask every substrate, in a process of its own."""
        self.checking = True
        self.answers = {}
        self.query_one("#substrates", PickList).redraw()
        try:
            self.answers = dict(await self.taxtui.checker())
        except TaxtuiError as error:
            self.notify(str(error), title="Could not check the substrates", severity="error", timeout=10, markup=False)
        self.checking = False
        offered = self.query_one("#substrates", PickList).offered
        for name in self.answers:
            if name not in offered:
                self._offer_substrate(name, picked=False)
        self.query_one("#substrates", PickList).redraw()
        self.refresh_plan()

    def action_copy(self) -> None:
        """Put the command line on the clipboard."""
        if self.preset is None and self.choices.missing:
            self.notify(self.choices.missing, title="Not ready", severity="warning", markup=False)
            return
        command = f"taxtui run {self.preset.argument}" if self.preset else self.choices.command()
        self.app.copy_to_clipboard(command)
        self.notify(command, title="Copied", markup=False)

    @work
    async def action_add(self) -> None:
        """Offer a substrate with options."""
        text = await self.app.push_screen_wait(
            Ask("Add a substrate", "NAME:key=value,key=value", placeholder="docker:runtime=runsc")
        )
        if text is None:
            return
        try:
            ref = parse_substrate(text)
        except UsageError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        if ref.name not in registry.names():
            self.notify(f"no substrate {ref.name!r}; {', '.join(registry.names())}", severity="error", markup=False)
            return
        substrates = self.query_one("#substrates", PickList)
        if str(ref) not in substrates.offered:
            self._offer_substrate(str(ref), picked=True)
        self.edited()

    @work
    async def action_preset(self) -> None:
        """Fill the form from a scenario; one that the form cannot say is run as it stands."""
        found = await asyncio.to_thread(presets, Path.cwd())  # reads every scenario and tier
        choices = [Choice(one.name, one.title, one, one.ok) for one in found]
        preset = await self.app.push_screen_wait(Choose("Presets", choices))
        if preset is not None:
            self.use(preset)

    def use(self, preset: Preset) -> None:
        """Show a preset in the form, or instead of it."""
        said = preset.choices
        if said is not None:
            for name in said.substrates:
                if name not in self.query_one("#substrates", PickList).offered:
                    self._offer_substrate(name, picked=False)
            for key, values in (
                ("substrates", said.substrates),
                ("tiers", said.tiers),
                ("actions", [str(n) for n in said.actions]),
                ("modes", said.modes),
            ):
                picks = self.query_one(f"#{key}", PickList)
                for value in values:
                    if value not in picks.offered:
                        picks.offer(value)
                picks.pick(values)
            with self.prevent(Input.Changed):
                for key in ("trials", "warmup", "concurrency", "budget"):
                    self.query_one(f"#{key}", Input).value = getattr(said, key)
        self.preset = None if said else preset
        self.refresh_plan()

    @work
    async def action_launch(self) -> None:
        """Start the run; where it costs money, the substrate's name has to be typed first."""
        choices, preset = self.choices, self.preset
        if preset is None and choices.missing:
            self.notify(choices.missing, title="Not ready", severity="warning", markup=False)
            return
        sandboxes = preset.sandboxes if preset else choices.sandboxes
        paid = {name: count for name, count in sandboxes.items() if self._is_paid(name)}
        for name, count in paid.items():
            body = f'{name}: up to {count:,} sandboxes that cost money.\nType "{name}" to launch.'
            if await self.app.push_screen_wait(Ask("Confirm paid run", body, wanted=name)) is None:
                return
        options = ["--yes", "--max-sandboxes", str(sum(sandboxes.values()))] if paid else []
        await self.taxtui.launch_run(preset.argument if preset else choices.scenario(), options)

    def _is_paid(self, key: str) -> bool:
        answer = self.answers.get(key.partition(":")[0])
        return answer is not None and answer.paid
