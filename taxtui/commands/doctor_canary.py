"""``taxtui doctor --canary``: create, use and remove a sandbox, each step within a limit.

The canary is a measurement of one trial, with the signals, the watchdog and the final clean-up of ``taxtui run``. Its
recording is temporary.
"""

from __future__ import annotations

import asyncio
import signal
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

from taxtui.errors import Regressed, SubstrateUnavailable, TaxtuiError
from taxtui.report.formats import Report, Section
from taxtui.report.numbers import NOTHING, duration
from taxtui.terminal_text import clean

COMMANDS: Final = 20
"""Commands in the sandbox; their median is compared with the limit."""
FAILED_EXIT: Final = TaxtuiError.exit_code
INTERRUPTED_EXIT: Final = 130
_STATES: Final = {
    0: "ok",
    Regressed.exit_code: "SLOW",
    SubstrateUnavailable.exit_code: "unavailable",
    INTERRUPTED_EXIT: "interrupted",
}


class CanaryResult(NamedTuple):
    """The result of a canary. A time is None if the step did not end."""

    substrate: str
    start_ns: int | None = None  # first create request to the end of the first command
    exec_ns: int | None = None  # median round trip of a command
    slowest_ns: int | None = None  # slowest round trip
    release_ns: int | None = None  # removal of the sandbox
    error: str = ""
    fix: str = ""
    exit_code: int = 0

    def checked(self, limits_ns: Mapping[str, int]) -> CanaryResult:
        """Return the result with the exit code of a step above its limit; an earlier failure stays.

        ``limits_ns``: upper limits by step: start, exec, release.
        """
        times = (("start", "start", self.start_ns), ("exec", "command", self.exec_ns))
        above = [
            f"{word} {duration(value)} is above {duration(limits_ns[step])}"
            for step, word, value in (*times, ("release", "release", self.release_ns))
            if value is not None and step in limits_ns and value > limits_ns[step]
        ]
        if self.exit_code or not above:
            return self
        return self._replace(exit_code=Regressed.exit_code, error="; ".join(above))

    @property
    def state(self) -> str:
        return _STATES.get(self.exit_code, "FAILED")

    @property
    def times(self) -> list[str]:
        """Start, command, slowest command and release, as text."""
        times_ns = (self.start_ns, self.exec_ns, self.slowest_ns, self.release_ns)
        return [NOTHING if value is None else duration(value) for value in times_ns]


def canaries(names: Sequence[str], acquire: str, limits_ns: Mapping[str, int]) -> list[CanaryResult]:
    """Run a canary on each substrate in turn; an interrupted canary is the last.

    Raises:
        UsageError: a substrate is unknown, or lacks an option or this way to acquire a sandbox.
    """
    from taxtui.commands import doctor_substrates

    doctor_substrates.parsed(names)  # refuse a wrong name before any sandbox exists
    results = []
    for name in names:
        results.append(_canary(name, acquire).checked(limits_ns))
        if results[-1].exit_code == INTERRUPTED_EXIT:
            break
    return results


def exit_code(results: Sequence[CanaryResult]) -> int:
    """Return 130 after an interruption, else the exit code of the first failed canary, else 0."""
    codes = [result.exit_code for result in results if result.exit_code]
    return INTERRUPTED_EXIT if INTERRUPTED_EXIT in codes else next(iter(codes), 0)


def report(results: Sequence[CanaryResult]) -> Report:
    """Return the results for every output format."""
    return Report(
        lambda: [_section(results)],
        lambda: [{"state": result.state, "commands": COMMANDS, **result._asdict()} for result in results],
        lambda: "\n".join(map(_line, results)),
    )


def _canary(name: str, acquire: str) -> CanaryResult:
    from taxtui import folders
    from taxtui.commands.run_output import INTERRUPTED
    from taxtui.plan.scenario import CellBlock, ScenarioFile, plan
    from taxtui.runner.run import Run

    block = CellBlock(substrates=[name], tiers=["T0"], actions=[COMMANDS], acquire=acquire, trials=1, warmup=0)
    one_trial = plan(ScenarioFile(cells=[block]), Path())
    with tempfile.TemporaryDirectory(prefix="taxtui-canary-") as folder:
        path = Path(folder) / "canary.msgpack"
        run = Run(one_trial, path, folders.new_run_id(), software={"ui": "none"})
        try:
            asyncio.run(_execute(run))
        except SubstrateUnavailable as error:
            problem = error.problem.removeprefix(f"{name}: ")
            return CanaryResult(name, error=problem, fix=error.fix, exit_code=error.exit_code)
        result = _result(name, path)
    if run.outcome in INTERRUPTED:
        return result._replace(exit_code=INTERRUPTED_EXIT, error="")
    if early_end := run.control.crash or run.control.write_error:
        return result._replace(exit_code=FAILED_EXIT, error=f"the canary ended early: {early_end}")
    if run.cleanup_failed:
        check = f"taxtui clean --run {run.run_id} --force"
        return result._replace(exit_code=FAILED_EXIT, error="the sandbox may be left", fix=check)
    return result


async def _execute(run: Any) -> None:
    """Measure; a signal abandons the trial, and the sandbox is removed."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, run.control.abandon, "interrupted")
    await run.execute()


def _result(name: str, path: Path) -> CanaryResult:
    """Return the times or the failure of the trial in a recording."""
    from costmodel import events, read_events, read_recording

    ends: list[events.TrialEnded] = []
    read_events(path, lambda event: ends.append(event) if isinstance(event, events.TrialEnded) else None)
    trials = [trial for cell in read_recording(path).cells for trial in cell.trials]
    if not trials or not trials[0].ok:
        reason = f"{ends[0].phase}: {ends[0].error} {ends[0].message}".strip() if ends else "no trial has ended"
        return CanaryResult(name, error=reason, exit_code=FAILED_EXIT)
    measures, commands_ns = trials[0].measures, trials[0].durations_ns
    return CanaryResult(name, measures.cold_start_ns, round(median(commands_ns)), max(commands_ns), measures.cleanup_ns)


def _line(result: CanaryResult) -> str:
    text = f"{result.substrate}: {result.state}"
    if result.start_ns is not None:
        start, command, slowest, release = result.times
        text += f": start {start}, command {command} (median of {COMMANDS}, slowest {slowest}), release {release}"
    text += f": {result.error}" if result.error else ""
    return clean(text + (f"; {result.fix}" if result.fix else ""))


def _section(results: Sequence[CanaryResult]) -> Section:
    head = ["substrate", "state", "start", "command", "slowest", "release", "detail"]
    rows = []
    for result in results:
        detail = "; ".join(filter(None, (result.error, result.fix)))
        rows.append([result.substrate, result.state, *result.times, detail])
    return Section("", head, rows, [f"command: median round trip of {COMMANDS} commands."])
