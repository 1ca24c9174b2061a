"""``taxtui check``: a gate for CI."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from taxtui.errors import Regressed, TooLittleData, UsageError, WriteFailed
from taxtui.options.run_spread import LIMIT, run_sd_option
from taxtui.report.formats import BY_NAME, NAMES

if TYPE_CHECKING:
    from costmodel.analysis.regression import Metric
    from costmodel.recording.reader import Recording


class _Against(click.Command):
    """``--against`` takes all that follows up to the next option, as a shell makes it of base/*.msgpack."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Name the option before each of its values: else the second would be what is checked."""
        spread: list[str] = []
        taking = False
        for place, argument in enumerate(args):
            if argument == "--":
                spread += args[place:]
                break
            if argument.startswith("-"):
                taking = argument == "--against"
            spread += [] if taking and argument == "--against" else ["--against", argument] if taking else [argument]
        return super().parse_args(ctx, spread)


@click.command("check", cls=_Against)
@click.argument("recordings", nargs=-1, required=True, metavar="RECORDING...")
@click.option("--against", multiple=True, required=True, metavar="BASE...", help="What it was before; several pool.")
@click.option(
    "--max-regression",
    "limit",
    type=LIMIT,
    default="10%",
    show_default=True,
    metavar="SHARE",
    help="How much a metric may grow.",
)
@click.option(
    "--metric",
    "names",
    multiple=True,
    metavar="METRIC[=SHARE]",
    help="mean:trajectory, p50:action, p95:cold_start, failure_rate …, with a limit of its own; several times. "
    "[default: mean:trajectory, p50:action, failure_rate]",
)
@run_sd_option
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write JUnit XML.")
@click.option(
    "--summary",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Append the table as Markdown, as to $GITHUB_STEP_SUMMARY.",
)
@click.option("--format", "form", type=click.Choice(NAMES), default=NAMES[0], show_default=True)
def command(
    recordings: tuple[str, ...],
    against: tuple[str, ...],
    limit: float,
    names: tuple[str, ...],
    run_sd: float | None,
    junit: Path | None,
    summary: Path | None,
    form: str,
) -> None:
    """A gate for CI: fail if cells got worse than in BASE by more than a limit.

    Exit 0: no metric of any cell did, for sure. 5: at least one did, for sure. 6: none did for sure, but the data do
    not show that all stayed within their limits. Intervals are 95 % and include how much runs differ: record both
    sides with --repeat 3 or more. Cells are compared where the same was asked for.
    """
    from costmodel.analysis import regression
    from taxtui.report.gate.verdicts import Verdicts

    metrics = _metrics(names or regression.DEFAULT, limit)
    before, after = _read(against), _read(recordings)
    told = Verdicts(regression.check(after, before, metrics, run_sd), before, after)
    if junit is not None:
        from taxtui.report.gate.junit import render

        _replace(junit, render(told))
    if summary is not None:
        _append(summary, f"## taxtui check\n\n{BY_NAME['markdown'].render(told.report)}\n")
    click.echo(BY_NAME[form].render(told.report))
    if told.gate.verdict == regression.REGRESSED:
        raise Regressed(told.summary(regression.REGRESSED))
    if told.gate.verdict == regression.TOO_LITTLE:
        raise TooLittleData(told.summary(regression.TOO_LITTLE), fix="record more runs: taxtui run --repeat 3")


def _metrics(names: Sequence[str], limit: float) -> list[Metric]:
    from costmodel.analysis.regression import metric

    found = []
    for text in names:
        name, has_own, own = text.partition("=")
        found.append(metric(name, LIMIT.convert(own, None, None) if has_own else limit))
    twice = [one.name for one in found if [other.name for other in found].count(one.name) > 1]
    if twice:
        raise UsageError(f"--metric {twice[0]} is given twice", fix="give it once, with one limit")
    return found


def _read(names: Sequence[str]) -> list[Recording]:
    from costmodel.recording.load import read_recordings
    from taxtui.commands.opening import located

    return read_recordings([located(name) for name in names])


def _replace(path: Path, text: str) -> None:
    """Write a file anew where there was none, or XML."""
    try:
        if path.exists() and (there := path.read_bytes()) and not there.startswith(b"<?xml"):
            raise UsageError(f"--junit {path}: there is a file that is no XML", fix="name another, or remove it")
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise WriteFailed(f"cannot write {path}: {error.strerror}", fix="choose another with --junit") from error


def _append(path: Path, text: str) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise WriteFailed(f"cannot write {path}: {error.strerror}", fix="choose another with --summary") from error
