"""Setup: choose what to measure; availability, time and cost of the plan.

The lists appear with the first frame. Fields and plan follow, then the check of the substrates and earlier recordings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Input, OptionList, Static

from taxtui.tui import actions, colours
from taxtui.tui.numbered_screen import NumberedScreen
from taxtui.tui.setup.panels import PickList, SubstrateList

if TYPE_CHECKING:
    from textual.worker import Worker

    from taxtui.plan.spec import Plan
    from taxtui.report.plan_cost import CheckedSubstrate, Expense
    from taxtui.report.plan_time import PastTrial
    from taxtui.tui.background import Newest
    from taxtui.tui.setup.form import Choices

FREE_HERE = ("local", "docker")
"""Substrates of this machine without cost; like ``taxtui run``, the form picks the working substrates among these."""
MODES = {
    "exec": "exec  one dispatch through the substrate's command path per action",
    "session": "session  one persistent shell that all actions of a trial go through",
}


class SetupScreen(NumberedScreen):
    """The form: ``choices`` has the values, ``expense`` the cost."""

    scope = "setup"
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("setup")]
    AUTO_FOCUS = "#substrates"

    def __init__(self) -> None:
        super().__init__()
        self.history: list[PastTrial] | None = None  # durations of earlier trials; None: not read yet
        self._reading: Newest[None, list[PastTrial]] | None = None
        self._whole = asyncio.Event()  # set after the parts below the first frame exist
        self._checked = asyncio.Event()  # no check of the substrates is in progress
        self._touched = False  # a person has picked or dropped an item
        self.expense: Expense | None = None  # None: the form is not a valid plan

    def contents(self) -> ComposeResult:
        with Horizontal(id="picks"):
            yield SubstrateList()
            yield PickList(id="tiers", title="Tiers")
            yield PickList(id="modes", title="Mode")
        yield Vertical(id="below")

    def foot(self) -> ComposeResult:
        yield from ()

    def on_mount(self) -> None:
        for name in sorted(colours.SUBSTRATES):
            self.substrates.offer(name, picked=name == "local")
        for mode in MODES:
            self._list("modes").offer(mode, picked=True)
        # Not before the app has started: until then a refresh draws nothing.
        self.app.call_later(self.call_after_refresh, self._complete)

    async def _complete(self) -> None:
        """Add the parts after the first frame."""
        from taxtui.sandboxes import registry
        from taxtui.tui.setup.form import Choices, shipped_tiers
        from taxtui.tui.setup.run_fields import RunFields

        self.substrates.only(registry.names())
        for name in shipped_tiers():
            self._list("tiers").offer(name, picked=name in Choices().tiers)
        for picks in self.query(PickList):
            picks.highlighted = 0
        plan = VerticalScroll(Static(id="words", markup=False), id="plan")
        plan.border_title = "Plan · ctrl+r launches · a adds a substrate"
        await self.query_one("#below").mount(RunFields(id="fields"), plan, *super().foot())
        self.refresh_bindings()  # else the footer would wait for another change of the keys
        self._whole.set()
        self.call_after_refresh(self._look_around)

    def _look_around(self) -> None:
        """Start the check of the substrates and the reading of earlier recordings."""
        from taxtui.report.plan_time import HistoryReader
        from taxtui.tui.background import Newest

        reader = HistoryReader()  # a measurement stops the reading: it needs the machine
        self._reading = Newest(
            lambda _: [reader.read(lambda: self.taxtui.running)], self._show_history, self._show_no_history, on=self
        )
        self._reading.ask(None)
        self.action_renew()

    def _show_history(self, history: list[PastTrial]) -> None:
        if not self.taxtui.running:  # else the reading was stopped: a part of the history
            self.history = history
            self.refresh_plan()

    def _show_no_history(self, reason: str) -> None:
        self.history = []
        self.refresh_plan()
        self.notify(f"no estimate of the time: {reason}", severity="warning")

    @property
    def substrates(self) -> SubstrateList:
        return self.query_one(SubstrateList)

    def _list(self, key: str) -> PickList:
        return self.query_one(f"#{key}", PickList)

    @property
    def choices(self) -> Choices:
        from taxtui.tui.setup.form import Choices
        from taxtui.tui.setup.run_fields import RunFields

        typed = self.query_one(RunFields).typed() if self._whole.is_set() else {}
        return Choices(
            substrates=tuple(self.substrates.picked),
            tiers=tuple(self._list("tiers").picked),
            modes=tuple(self._list("modes").picked),
            **typed,
        )

    @property
    def obstacle(self) -> str:
        """The reason that the form cannot be launched, or ""."""
        return self.choices.missing or (self.expense.obstacle if self.expense else "")

    @on(PickList.Changed)
    def touch(self) -> None:
        self._touched = True

    @on(PickList.Changed)
    @on(Input.Changed, "RunFields Input")
    @on(OptionList.OptionHighlighted, "#substrates")
    def refresh_plan(self) -> None:
        from taxtui.tui.setup.form import about_tier

        if not self._whole.is_set():
            return
        choices = self.choices
        self.expense = None
        facts, command = [], Text()
        if not choices.missing:
            words = self._outlook(choices.plan())
            facts.append(Text(choices.summary()))
            facts += [Text.assemble((f"{name:<6}", "dim"), text) for name, text in words.items()]
            command.append(f"$ {self._command()}", "dim")
        if obstacle := self.obstacle:
            facts.append(Text(f"Not ready: {obstacle}", colours.themed(self.app.theme_variables, "text-warning")))
        about = [about_tier(name) for name in choices.tiers] + [MODES[mode] for mode in choices.modes]
        # the command may be cut at the end of the plan: y copies the whole command
        text = Text("\n").join(filter(None, [*facts, self.substrates.advice(), command]))
        self.query_one("#words", Static).update(text.append("\n\n").append("\n".join(about), "dim"))

    def _outlook(self, plan: Plan) -> dict[str, str]:
        """Time and cost in words; sets ``expense``."""
        from taxtui.plan import crowding
        from taxtui.report import plan_time
        from taxtui.report.plan_cost import expense

        answers = self.substrates.answers
        variants = {key: answer.variant for key, answer in answers.items() if answer.variant is not None}
        expected = plan_time.expect(plan, self.history or [], variants)
        self.expense = expense(plan, expected, answers)
        crowded = crowding.crowding_warning(plan)
        return {
            "Time": plan_time.time_words(plan, expected) if self.history is not None else "reading earlier recordings…",
            "Cost": self.expense.words,
            **({"Load": crowded} if crowded else {}),
        }

    def _command(self) -> str:
        return self.choices.command(self.expense.options if self.expense else ())

    def action_renew(self) -> None:
        offered = self.substrates.offered
        self._check([key for key in offered if ":" not in key], ())
        self._check_options(offered)

    def _check_options(self, keys: Sequence[str]) -> None:
        if refs := [key for key in keys if ":" in key]:
            self._check(refs, refs)

    def _check(self, keys: Sequence[str], refs: Sequence[str]) -> None:
        """Check substrates in a process; a newer check of the same substrates replaces this check."""
        # a function, not a coroutine: a replaced coroutine would never be awaited
        _: Worker[None] = self.run_worker(partial(self._ask, keys, refs), group=f"check {tuple(refs)}", exclusive=True)

    async def _ask(self, keys: Sequence[str], refs: Sequence[str]) -> None:
        from taxtui.errors import TaxtuiError
        from taxtui.tui.setup import lookups

        self.substrates.ask(keys)
        self._checked.clear()
        self.refresh_plan()
        answers: Mapping[str, CheckedSubstrate] = {}
        try:
            answers = await (self.taxtui.checker or lookups.check)(refs)
        except (TaxtuiError, OSError) as error:
            self.notify(str(error), title="Could not check the substrates", severity="error", timeout=10)
        self.substrates.hear(keys, answers)
        if not self._touched and (usable := [name for name in FREE_HERE if name in answers and answers[name].ok]):
            self.substrates.pick(usable)
        if not self.substrates.awaited:
            self._checked.set()
        self.refresh_plan()

    def on_screen_resume(self) -> None:
        if self._reading and not self.taxtui.running:
            self._reading.ask(None)

    def on_unmount(self) -> None:
        if self._reading:
            self._reading.close()

    async def _refused(self) -> bool:
        """Return whether the form cannot be launched, and notify the reason; a check would disturb a measurement."""
        if not self._checked.is_set():
            self.notify("checking which substrates work here …", timeout=3)
            await self._checked.wait()
        if obstacle := self.obstacle:
            self.notify(obstacle, title="Not ready", severity="warning")
        return bool(obstacle)

    @work
    async def action_copy(self) -> None:
        from taxtui.tui.dialogs import copy

        if not await self._refused():
            command = self._command()
            copy(self.app, command, command)

    @work
    async def action_add(self) -> None:
        from taxtui.errors import UsageError
        from taxtui.plan.notation import parse_substrate
        from taxtui.sandboxes import registry
        from taxtui.tui.dialogs import Ask

        await self._whole.wait()
        text = await self.app.push_screen_wait(
            Ask("Add a substrate", "NAME:key=value,key=value", placeholder="docker:runtime=runsc")
        )
        if text is None:
            return
        try:
            ref = parse_substrate(text)
        except UsageError as error:
            self.notify(str(error), severity="error")
            return
        if ref.name not in registry.names():
            self.notify(f"no substrate {ref.name!r}; {', '.join(registry.names())}", severity="error")
            return
        self._touched = True
        self.substrates.offer(str(ref), picked=True)
        self._check_options([str(ref)])

    @work
    async def action_launch(self) -> None:
        """Start the run; a paid substrate needs its name typed first."""
        from taxtui.tui.dialogs import Ask

        if await self._refused():
            return
        scenario, expense = self.choices.scenario(), self.expense
        for name, question in (expense.questions if expense else {}).items():
            body = f'{question}\nType "{name}" to launch.'
            if await self.app.push_screen_wait(Ask("Confirm paid run", body, wanted=name)) is None:
                return
        await self.taxtui.launch_run(scenario, ["--yes", *expense.options] if expense and expense.paid else [])
