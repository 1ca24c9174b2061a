"""``taxtui compare``: two recordings, or the substrates of one; with ``--fail-above`` an exit code for CI."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taxtui.errors import Regressed, TooLittleData, UsageError, WriteFailed
from taxtui.options.rows import MODE, SUBSTRATE, TIER, choosing, taken
from taxtui.options.run_spread import LIMIT, run_sd_option
from taxtui.report.formats import BY_NAME, NAMES

if TYPE_CHECKING:
    from costmodel import Metric, Recording
    from taxtui.options.rows import RowChoice


@click.command("compare")
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="[AFTER]", required=False)
@click.option(
    "--fail-above",
    "limit",
    type=LIMIT,
    metavar="SHARE",
    help="Exit 5 if a metric is worse by more than this, 6 if the data are too few: 10%.",
)
@click.option(
    "--metric",
    "names",
    multiple=True,
    metavar="METRIC[=SHARE]",
    help="Metric to compare, with or without a separate limit, repeatable: p95:cold_start=25%.  "
    "[mean:trajectory, p50:action, failure_rate]",
)
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write JUnit XML.")
@click.option(
    "--summary",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Append the table as Markdown, for $GITHUB_STEP_SUMMARY.",
)
@click.option("--pool-before", multiple=True, metavar="RECORDING", help="Pool this recording with BEFORE, repeatable.")
@click.option("--pool-after", multiple=True, metavar="RECORDING", help="Pool this recording with AFTER, repeatable.")
@choosing(SUBSTRATE, TIER, MODE)
@click.option("--pair-all", is_flag=True, help="Pair cells of equal tier and length, whatever else differs.")
@run_sd_option
@click.option("--format", "form", type=click.Choice(NAMES), default=NAMES[0], show_default=True, help="Output format.")
@click.pass_context
def command(
    context: click.Context,
    /,
    before: str,
    after: str | None,
    limit: float | None,
    names: Sequence[str],
    junit: Path | None,
    summary: Path | None,
    pool_before: Sequence[str],
    pool_after: Sequence[str],
    pair_all: bool,
    run_sd: float | None,
    form: str,
    **chosen: Any,
) -> None:
    """Compare AFTER with BEFORE, cell by cell: better, worse, no difference, or inconclusive.

    With one recording: compare the substrates in the recording, as taxtui report does. Cells are paired where
    substrate, variant, tier, length, mode and concurrency are equal. Intervals are 95 % and include how much
    repetitions differ: record both sides with --repeat 5 or more.

    Exit codes with --fail-above: 0 every metric stayed within its limit; 5 a metric is worse, and by more than its
    limit; 6 the data are too few.
    """
    choice = taken(chosen)
    if after is None:
        options = {"--fail-above": limit is not None, "--metric": names, "--junit": junit, "--summary": summary}
        options |= {"--pool-before": pool_before, "--pool-after": pool_after, "--pair-all": pair_all}
        if flags := [flag for flag, value in options.items() if value]:
            raise UsageError(f"{flags[0]} compares two recordings", fix="give BEFORE and AFTER")
        _one_recording(context, before, choice, run_sd, form)
        return
    if junit is not None and limit is None:
        raise UsageError("--junit needs --fail-above", fix="add --fail-above 10%")
    _two_recordings(
        (before, *pool_before),
        (after, *pool_after),
        _metrics(names, limit),
        choice,
        run_sd,
        form,
        pair_all=pair_all,
        junit=junit,
        summary=summary,
        checked=limit is not None,
    )


def _one_recording(context: click.Context, recording: str, choice: RowChoice, run_sd: float | None, form: str) -> None:
    from taxtui.commands.report import command as report

    rows = {"substrates": choice.substrates, "tiers": choice.tiers, "modes": choice.modes}
    context.invoke(report, recordings=(recording,), form=form, run_sd=run_sd, **rows)


def _two_recordings(
    before: Sequence[str],
    after: Sequence[str],
    metrics: Sequence[Metric],
    choice: RowChoice,
    run_sd: float | None,
    form: str,
    *,
    pair_all: bool,
    junit: Path | None,
    summary: Path | None,
    checked: bool,
) -> None:
    """Print the table, write the files, and exit by the limits if they are ``checked``.

    Raises:
        Regressed: a metric is worse by more than its limit.
        TooLittleData: none is, and the data do not show that all stayed within their limits.
        WriteFailed: a file cannot be written.
    """
    from costmodel import compare, pools
    from taxtui.commands.opening import located
    from taxtui.report.comparison.sections import ComparisonTable
    from taxtui.report.row_limits import ANSWER

    then, now = _read(before), _read(after)
    identities = [cell.identity for recording in (*then, *now) for cell in recording.cells]
    matches = sum(map(choice.means, identities))
    if matches < len(identities):
        choice.of([*pools(then), *pools(now)])
    ANSWER.check(matches, [located(name) for name in (*before, *after)], "--tier, --mode or --substrate")
    result = compare(then, now, metrics, run_sd, wanted=choice.means, pair_all=pair_all)
    table = ComparisonTable(result, then, now)
    if junit is not None:
        from taxtui.report.comparison.junit import render

        _replace(junit, render(table))
    if summary is not None:
        _append(summary, f"## taxtui compare\n\n{BY_NAME['markdown'].render(table.report)}\n")
    click.echo(BY_NAME[form].render(table.report))
    if not BY_NAME[form].people:
        for note in table.unpaired():
            click.echo(f"taxtui: {note}", err=True)
    if checked and result.beyond:
        raise Regressed(table.summary(beyond=True))
    if checked and result.beyond is None:
        raise TooLittleData(table.summary(beyond=None), fix="record more repetitions: taxtui run --repeat 5")


def _metrics(names: Sequence[str], limit: float | None) -> list[Metric]:
    from costmodel import DEFAULT_METRICS, parse_metric
    from costmodel import METRIC_LIMIT as USUAL

    metrics = []
    for text in names or DEFAULT_METRICS:
        name, has_limit, share = text.partition("=")
        usual = USUAL if limit is None else limit
        metrics.append(parse_metric(name, LIMIT.convert(share, None, None) if has_limit else usual))
    listed = [metric.name for metric in metrics]
    if twice := [name for name in listed if listed.count(name) > 1]:
        raise UsageError(f"--metric {twice[0]} is given twice", fix="give it once, with one limit")
    return metrics


def _read(names: Sequence[str]) -> list[Recording]:
    from costmodel import read_recordings
    from taxtui.commands.opening import located

    return read_recordings([located(name) for name in names])


def _replace(path: Path, text: str) -> None:
    """Write XML to a new file, or over other XML."""
    try:
        if path.exists() and (content := path.read_bytes()) and not content.startswith(b"<?xml"):
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
