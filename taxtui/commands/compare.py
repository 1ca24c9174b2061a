"""``taxtui compare``: two recordings, or the substrates of one; with ``--fail-above`` an exit code for CI."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taxtui.errors import Regressed, TooLittleData, UsageError, WriteFailed
from taxtui.options.numbers import GROWTH, run_sd_option
from taxtui.options.rows import MODE, SUBSTRATE, TIER, choosing, pop_choice
from taxtui.report.formats import BY_NAME, NAMES

if TYPE_CHECKING:
    from costmodel import Metric


@click.command("compare")
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="[AFTER]", required=False)
@click.option(
    "--fail-above",
    "limit",
    type=GROWTH,
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
    run_sd: float | None,
    form: str,
    **options: Any,
) -> None:
    """Compare AFTER with BEFORE, cell by cell: better, worse, no difference, or inconclusive.

    With one recording: compare the substrates in the recording, as taxtui report does. Cells are paired where
    substrate, variant, tier, length, mode and concurrency are equal. Intervals are 95 % and include the variation
    between repetitions. With --repeat 5 on both sides and an sd of 6 %, 87 % of checks find a change of 20 %.

    Exit codes with --fail-above: 0 within all limits; 5 a metric is worse, by more than its limit; 6 too few data.
    """
    choice = pop_choice(options)
    if after is None:
        for_two = {"--fail-above": limit is not None, "--metric": names, "--junit": junit, "--summary": summary}
        for_two |= {"--pool-before": pool_before, "--pool-after": pool_after}
        if flag := next((flag for flag, value in for_two.items() if value), None):
            raise UsageError(f"{flag} compares two recordings", fix="give BEFORE and AFTER")
        from taxtui.commands.report import command as report

        rows = {"substrates": choice.substrates, "tiers": choice.tiers, "modes": choice.modes}
        context.invoke(report, recordings=(before,), form=form, run_sd=run_sd, **rows)
        return
    if junit is not None and limit is None:
        raise UsageError("--junit needs --fail-above", fix="add --fail-above 10%")
    from costmodel import compare, pools, read_recording
    from taxtui.commands.files import find_recording
    from taxtui.report.comparison import ComparisonTable, junit_xml
    from taxtui.report.row_limits import ANSWER

    metrics = _metrics(names, limit)
    paths_before = [find_recording(name) for name in (before, *pool_before)]
    paths_after = [find_recording(name) for name in (after, *pool_after)]
    used = {os.path.realpath(path) for path in (*paths_before, *paths_after)}
    for path, option in ((junit, "--junit"), (summary, "--summary")):
        if path is not None:
            _require_replaceable(path, option, used)
    recordings_before = [read_recording(path) for path in paths_before]
    recordings_after = [read_recording(path) for path in paths_after]
    identities = [cell.identity for recording in (*recordings_before, *recordings_after) for cell in recording.cells]
    matches = sum(map(choice.means, identities))
    if matches < len(identities):
        choice.of([*pools(recordings_before), *pools(recordings_after)])  # refuses an option without a matching cell
    ANSWER.check(matches, [*paths_before, *paths_after], "--tier, --mode or --substrate")
    result = compare(recordings_before, recordings_after, metrics, run_sd, wanted=choice.means)
    table = ComparisonTable(result, recordings_before, recordings_after)
    if junit is not None:
        _write(junit, "--junit", junit_xml(table), "w")
    if summary is not None:
        _write(summary, "--summary", f"## taxtui compare\n\n{BY_NAME['markdown'].render(table.report)}\n", "a")
    click.echo(BY_NAME[form].render(table.report))
    if not BY_NAME[form].people:
        for note in table.unpaired():
            click.echo(f"taxtui: {note}", err=True)
    if limit is not None and result.beyond:
        raise Regressed(table.summary(beyond=True))
    if limit is not None and result.beyond is None:
        raise TooLittleData(table.summary(beyond=None), fix="record more repetitions: taxtui run --repeat 5")


def _metrics(names: Sequence[str], limit: float | None) -> list[Metric]:
    """Return the metrics of ``--metric``, each with its own limit or with ``limit``."""
    from costmodel import DEFAULT_METRICS, METRIC_LIMIT, parse_metric

    metrics: dict[str, Metric] = {}
    for text in names or DEFAULT_METRICS:
        name, equals, share = text.partition("=")
        common_limit = METRIC_LIMIT if limit is None else limit
        metric = parse_metric(name, GROWTH.convert(share, None, None) if equals else common_limit)
        if metric.name in metrics:
            raise UsageError(f"--metric {metric.name} is given twice", fix="give the metric once, with its limit")
        metrics[metric.name] = metric
    return list(metrics.values())


def _require_replaceable(path: Path, option: str, used: set[str]) -> None:
    """Refuse a file in ``used``, which gets this file, and a file with other content than ``option`` writes."""
    if (real := os.path.realpath(path)) in used:
        raise UsageError(f"{option} {path}: the command uses this file already", fix="name another")
    used.add(real)
    if path.is_file():  # reading a device may never end
        with path.open("rb") as file:
            head = file.read(4096)
        kind, right = ("XML", head.startswith(b"<?xml")) if option == "--junit" else ("text", b"\0" not in head)
        if head and not right:
            raise UsageError(f"{option} {path}: the existing file is no {kind}", fix="name another, or remove it")


def _write(path: Path, option: str, text: str, mode: str) -> None:
    try:
        with path.open(mode, encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise WriteFailed(f"cannot write {path}: {error.strerror}", fix=f"choose another with {option}") from error
