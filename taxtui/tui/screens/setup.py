"""Setup: what to measure, whether it can be measured here, how large the plan is, and what it takes.

The lists are there with the first frame. All else follows right behind it: the fields and the plan, which import the
scenario's machinery; then, in the background, whether each substrate can be used and what earlier recordings say.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import OptionList

from taxtui.tui import actions, colours
from taxtui.tui.screens.numbered import NumberedScreen
from taxtui.tui.widgets.pick_list import PickList
from taxtui.tui.widgets.substrate_list import SubstrateList

if TYPE_CHECKING:
    from textual.widgets import Button

    from taxtui.spec import Plan
    from taxtui.tui.background import Newest
    from taxtui.tui.estimate import Table
    from taxtui.tui.expense import Expense
    from taxtui.tui.form import Choices, Preset
    from taxtui.tui.widgets.run_fields import RunFields

LENGTHS = ("10", "50", "150")
MODES = {
    "exec": "exec  one dispatch through the substrate's command path per action",
    "session": "session  one persistent shell that all actions of a trial go through",
}
BUTTONS = {"launch": "Launch", "copy": "Copy as CLI", "preset": "Preset", "add": "Add substrate"}


class SetupScreen(NumberedScreen):
    """The form; everything it says is in ``choices``, and what that would cost in ``expense``."""

    scope = "setup"
    CSS_PATH = None  # the app's own holds it
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("setup")]
    AUTO_FOCUS = "#substrates"

    def __init__(self) -> None:
        """Nothing is known of any substrate or recording yet."""
        super().__init__()
        self.preset: Preset | None = None  # one that the form cannot say, to be run as it stands
        self.recorded: Table | None = None  # None: not read yet
        self.expense: Expense | None = None  # None: what the form says cannot be run
        self._reader: Newest[bool, Table] | None = None
        self._away = False

    def contents(self) -> ComposeResult:
        """Four lists, and room for the rest."""
        with Horizontal(id="picks"):
            yield SubstrateList()
            yield PickList(id="tiers", title="Tiers")
            yield PickList(id="actions", title="Actions")
            yield PickList(id="modes", title="Mode")
        yield Vertical(id="below")

    def foot(self) -> ComposeResult:
        """Nothing yet: it follows with the rest."""
        yield from ()

    def on_mount(self) -> None:
        """Offer what ships with taxtui, at once."""
        for name in sorted(colours.SUBSTRATES):
            self.substrates.add(name, picked=name == "local")
        for length in LENGTHS:
            self._list("actions").offer(length, picked=length == "10")
        for mode in MODES:
            self._list("modes").offer(mode, picked=mode == "exec")
        # Not before the app has started: until then a refresh draws nothing.
        self.app.call_later(self.call_after_refresh, self._complete)

    async def _complete(self) -> None:
        """Everything that the first frame does not wait for."""
        from textual.widgets import Button

        from taxtui import registry
        from taxtui.tui.form import shipped_tiers
        from taxtui.tui.widgets.plan_panel import PlanPanel
        from taxtui.tui.widgets.run_fields import RunFields

        self.substrates.only(registry.names())
        for name in shipped_tiers():
            self._list("tiers").offer(name, picked=name == "T0")
        for picks in self.query(PickList):
            picks.highlighted = 0
        buttons = [Button(label, id=name, compact=True) for name, label in BUTTONS.items()]
        buttons[0].variant = "success"
        parts = RunFields(id="fields"), PlanPanel(id="plan"), Horizontal(*buttons, id="buttons")
        await self.query_one("#below").mount(*parts, *super().foot())
        self.refresh_bindings()  # else the footer would wait for another change of the keys
        self.refresh_plan()
        self.action_recheck()
        self._read_recordings()

    # -------------------------------------------------------------------------------------------- what the form says

    @property
    def substrates(self) -> SubstrateList:
        """The list of substrates, which knows what the check said."""
        return self.query_one(SubstrateList)

    def _list(self, key: str) -> PickList:
        return self.query_one(f"#{key}", PickList)

    @property
    def choices(self) -> Choices:
        """What the form says."""
        from taxtui.tui.form import Choices
        from taxtui.tui.widgets.run_fields import RunFields

        fields = self.query(RunFields)
        return Choices(
            substrates=tuple(self.substrates.picked),
            tiers=tuple(self._list("tiers").picked),
            actions=tuple(int(text) for text in self._list("actions").picked),
            modes=tuple(self._list("modes").picked),
            **(fields.first().typed() if fields else {}),
        )

    @property
    def obstacle(self) -> str:
        """Why what the form says cannot be launched; "" where it can."""
        missing = "" if self.preset else self.choices.missing
        return missing or (self.expense.obstacle if self.expense else "")

    @on(PickList.Changed)
    def edited(self) -> None:
        """The form was changed, so it is what counts again."""
        self.preset = None
        self.refresh_plan()

    def on_run_fields_changed(self, event: RunFields.Changed) -> None:
        """As ``edited``; but money is not a part of what is measured."""
        if event.money:
            self.refresh_plan()
        else:
            self.edited()

    @on(OptionList.OptionHighlighted, "#substrates")
    def explain(self) -> None:
        """The fix of the substrate under the cursor."""
        self.refresh_plan()

    def restyle(self) -> None:
        """As ``NumberedScreen.restyle``."""
        self.substrates.redraw()
        self.refresh_plan()

    def refresh_plan(self) -> None:
        """Say what would run, how large that is, what it takes, and what stands in the way."""
        from taxtui.tui.form import about_tier
        from taxtui.tui.widgets.plan_panel import PlanPanel

        panels = self.query(PlanPanel)
        if not panels:
            return
        choices, preset = self.choices, self.preset
        plan = preset.plan if preset else None if choices.missing else choices.plan()
        self.expense = None
        facts, command = [], Text()
        if plan:
            words = self._outlook(plan)
            facts.append(Text(f"preset {preset.name}: {preset.title}" if preset else choices.summary()))
            facts += [Text.assemble((f"{name:<6}", "dim"), said) for name, said in words.items()]
            command.append(f"$ {self._command()}", "dim")
        if obstacle := self.obstacle:
            facts.append(Text(f"Not ready: {obstacle}", colours.themed(self.app.theme_variables, "text-warning")))
        about = [about_tier(name) for name in choices.tiers] + [MODES[mode] for mode in choices.modes]
        panels.first().show(facts, command, self.substrates.advice(), Text("\n".join(about), "dim"))
        self.query_one("#launch").disabled = bool(obstacle)

    def _outlook(self, plan: Plan) -> dict[str, str]:
        """Time and cost in words; sets ``expense``."""
        from taxtui.tui import estimate
        from taxtui.tui.expense import expense
        from taxtui.tui.widgets.run_fields import RunFields

        fields, answers = self.query_one(RunFields), self.substrates.answers
        variants = {name: answer.variant for name, answer in answers.items() if answer.variant is not None}
        expected = estimate.expect(plan, self.recorded or estimate.Table(), variants)
        self.expense = expense(plan, expected, answers, fields.sheet, fields.most)
        fields.show_money(self.expense.sheet, needed=self.expense.paid)
        reading = self.recorded is None
        return {
            "Time": "reading earlier recordings…" if reading else estimate.time_words(plan, expected),
            "Cost": self.expense.words,
        }

    def _command(self) -> str:
        """The command line that makes exactly this run."""
        limits = self.expense.options if self.expense else ()
        return self.preset.command(limits) if self.preset else self.choices.command(limits)

    # --------------------------------------------------------------------------------------------- in the background

    @work(exclusive=True, group="check")
    async def action_recheck(self) -> None:
        """Ask every substrate, in a process of its own."""
        from taxtui.errors import TaxtuiError
        from taxtui.tui import availability

        self.substrates.hear({}, checking=True)
        answers = {}
        try:
            answers = dict(await (self.taxtui.checker or availability.check)())
        except TaxtuiError as error:
            self.notify(str(error), title="Could not check the substrates", severity="error", timeout=10, markup=False)
        self.substrates.hear(answers, checking=False)
        self.refresh_plan()

    def _read_recordings(self) -> None:
        """Look for recordings, and read those that are new; not while a person looks at something else."""
        from taxtui.tui.background import Newest
        from taxtui.tui.estimate import Reader

        if self._reader is None:
            reader = Reader()
            self._reader = Newest(
                lambda _: reader.table(lambda: self._away), self._recordings_read, self._unreadable, on=self
            )
        self._reader.ask(True)

    def _recordings_read(self, _: bool, table: Table) -> None:
        if not self._away:
            self.recorded = table
            self.refresh_plan()

    def _unreadable(self, _: bool, why: str) -> None:
        self.notify(f"no estimate of the time: {why}", severity="warning", markup=False)

    def on_screen_suspend(self) -> None:
        """What is measured comes before what is estimated."""
        self._away = True

    def on_screen_resume(self) -> None:
        """There may be a new recording."""
        self._away = False
        if self._reader:
            self._read_recordings()

    def on_unmount(self) -> None:
        """Let the thread go."""
        self._away = True
        if self._reader:
            self._reader.close()

    # -------------------------------------------------------------------------------------------- what a person does

    async def on_button_pressed(self, event: Button.Pressed) -> None:
        """The buttons are the actions of the same name."""
        await self.run_action(str(event.button.id))

    def _refused(self) -> bool:
        """Say what stands in the way, if anything does."""
        if obstacle := self.obstacle:
            self.notify(obstacle, title="Not ready", severity="warning", markup=False)
        return bool(obstacle)

    def action_copy(self) -> None:
        """Put the command line on the clipboard."""
        if not self._refused():
            command = self._command()
            self.app.copy_to_clipboard(command)
            self.notify(command, title="Copied", markup=False)

    @work
    async def action_add(self) -> None:
        """Offer a substrate with options."""
        from taxtui import registry
        from taxtui.errors import UsageError
        from taxtui.notation import parse_substrate
        from taxtui.tui.screens.dialogs import Ask

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
        self.substrates.add(str(ref), picked=True)
        self.edited()

    @work
    async def action_preset(self) -> None:
        """Fill the form from a scenario; one that the form cannot say is run as it stands."""
        from taxtui.tui.form import presets
        from taxtui.tui.screens.dialogs import Choice, Choose

        found = await asyncio.to_thread(presets, Path.cwd())  # reads every scenario and tier
        choices = [Choice(one.name, one.title, one, one.plan is not None) for one in found]
        preset = await self.app.push_screen_wait(Choose("Presets", choices))
        if preset is not None:
            self.use(preset)

    def use(self, preset: Preset) -> None:
        """Show a preset in the form, or instead of it."""
        from taxtui.tui.widgets.run_fields import RunFields

        said = preset.choices
        if said is not None:
            for name in said.substrates:
                self.substrates.add(name)
            for key, values in (
                ("substrates", said.substrates),
                ("tiers", said.tiers),
                ("actions", [str(n) for n in said.actions]),
                ("modes", said.modes),
            ):
                picks = self._list(key)
                for value in values:
                    if value not in picks.offered:
                        picks.offer(value)
                picks.pick(values)
            self.query_one(RunFields).fill(said)
        self.preset = None if said else preset
        self.refresh_plan()

    @work
    async def action_launch(self) -> None:
        """Start the run; where it costs money, the substrate's name has to be typed first."""
        from taxtui.tui.screens.dialogs import Ask

        if self._refused():
            return
        scenario = self.preset.argument if self.preset else self.choices.scenario()
        expense = self.expense
        for name, question in (expense.questions if expense else {}).items():
            body = f'{question}\nType "{name}" to launch.'
            if await self.app.push_screen_wait(Ask("Confirm paid run", body, wanted=name)) is None:
                return
        await self.taxtui.launch_run(scenario, ["--yes", *expense.options] if expense and expense.paid else [])
