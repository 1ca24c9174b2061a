"""Everything that is known of one recording without reading all of it, and what reading all of it has shown."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from rich.table import Table
from rich.text import Text
from textual.widgets import Static

from taxtui.live.catalogue import HOPELESS, CatalogueEntry, shown
from taxtui.tui import units
from taxtui.tui.colours import themed
from taxtui.tui.lists.line_list import MUTED
from taxtui.tui.recordings.list import STATES, labels
from taxtui.tui.recordings.verification import Verdict, Verification, Verifier

BAR_COLUMNS = 20


class RecordingFacts(Static):
    """Labels on the left, facts on the right; long ones go on in the next line."""

    def __init__(self, *, id: str | None = None) -> None:
        """Begin empty."""
        super().__init__("", id=id, markup=False)

    def present(self, entry: CatalogueEntry, verifier: Verifier) -> None:
        """Show an entry and what ``verifier`` knows of it."""
        verdict = verifier.verdict(entry)
        table = Table.grid(padding=(0, 1), expand=True)
        table.add_column(width=9, style=MUTED)
        table.add_column(ratio=1, overflow="fold")
        table.add_row("path", Text(shown(entry.path)))
        if entry.state not in HOPELESS:
            table.add_row("run", self._fate(entry))
        table.add_row("file", self._state(entry, verdict))
        if entry.state not in HOPELESS:
            for label, fact in self._facts(entry):
                table.add_row(label, Text(fact) if isinstance(fact, str) else fact)
            table.add_row("verified", self._verified(verdict, verifier.reads(entry)))
            table.add_row("software", Text(software(entry.software)))
        self.update(table)

    def _fate(self, entry: CatalogueEntry) -> Text:
        """``■ cancelled after 34 of 40 trials: 31 ok, 3 cancelled``."""
        fate = entry.fate or "not known"
        glyph, variable = STATES.get(fate, ("?", "foreground"))
        line = Text.assemble((f"{glyph} {fate}", themed(self.app.theme_variables, variable)))
        planned = "an unknown number of trials" if entry.trials is None else _many(entry.trials, "trial")
        if entry.done is None:
            return line.append(f" · how many of {planned} ended is not told at its end")
        what = {"finished": "", "budget": " is used up,"}.get(fate, "")
        of = "all of" if entry.done == entry.trials else f"{entry.done:,} of"
        counts = ", ".join(f"{n:,} {name}" for name, n in entry.counts.items())
        return line.append(f"{what} after {of} {planned}: {counts or 'none'}")

    def _state(self, entry: CatalogueEntry, verdict: Verdict | None) -> Text:
        state = verdict.state if verdict else "incomplete" if entry.state == "running" else entry.state
        glyph, variable = STATES[state]
        word, detail = (entry.detail, "") if entry.detail.startswith(state) else (state, entry.detail)
        line = Text.assemble((f"{glyph} {word}", themed(self.app.theme_variables, variable)))
        facts = [detail]
        if state == "incomplete":
            facts.append("still being written" if entry.state == "running" else "the end of the run is missing")
        facts.append(units.size(entry.size_bytes))
        if entry.shipped:
            facts.append("came with taxtui")
        return line.append(" · " + " · ".join(filter(None, facts)))

    def _facts(self, entry: CatalogueEntry) -> Iterator[tuple[str, Text | str]]:
        started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.started_unix_ns // 10**9))
        lasted = units.clock(entry.elapsed_ns)
        lasted = f", {lasted} so far" if entry.state == "running" else f", lasted {lasted}"
        lasted = lasted if entry.elapsed_ns else ""
        yield "started", f"{started}{lasted}" if entry.started_unix_ns else "not known"
        yield "id", " · ".join(filter(None, [entry.run_id, f"scenario {entry.scenario}" if entry.scenario else ""]))
        where = labels(entry.substrates, "labels", dark=self.app.current_theme.dark)
        if entry.stand_in:
            where.append(" STAND-IN, not the provider", "bold")
        if entry.imported:
            where.append(" IMPORTED, not measured", "bold")
        yield "on", where
        yield "plan", f"{_many(entry.cells, 'cell')}: {' '.join(entry.workloads)} · {' '.join(entry.modes)}"

    def _verified(self, verdict: Verdict | None, job: Verification | None) -> Text:
        if job:
            full = round(job.share * BAR_COLUMNS)
            bar = Text.assemble("█" * full, ("░" * (BAR_COLUMNS - full), MUTED))
            done = f" {job.share:.0%} of {units.size(job.size_bytes)} · esc stops"
            return bar.append(done)
        if verdict is None:
            return Text("not yet: v reads every byte", MUTED)
        glyph, variable = STATES[verdict.state]
        line = Text.assemble((f"{glyph} {verdict.text}", themed(self.app.theme_variables, variable)))
        return line.append(f"\n$ {verdict.advice}" if verdict.advice else "")


def software(facts: Mapping[str, str]) -> str:
    """``taxtui 0.1.0 · python 3.11.7 · …``, what says most of the machine first."""
    first: Sequence[str] = ("cpu", "cores", "kernel", "taxtui", "python")
    order = [*(key for key in first if key in facts), *(key for key in facts if key not in first)]
    return " · ".join(f"{key} {facts[key]}" for key in order)


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
