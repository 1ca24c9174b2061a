"""``taxtui compare --fail-above``: metrics of two recordings against limits, for CI."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from taxtui.errors import Regressed, TooLittleData, UsageError, WriteFailed
from taxtui.options.run_spread import LIMIT
from taxtui.report.formats import BY_NAME

if TYPE_CHECKING:
    from costmodel.analysis.regression import Metric
    from costmodel.recording.reader import Recording


def check(
    before: Sequence[str],
    after: Sequence[str],
    limit: float,
    names: Sequence[str],
    run_sd: float | None,
    form: str,
    junit: Path | None,
    summary: Path | None,
) -> None:
    """Print a verdict for each metric of each cell, and write JUnit XML and Markdown where they are asked for.

    Raises:
        Regressed: a metric got worse by more than its limit.
        TooLittleData: none did for sure, and the data do not show that all stayed within their limits.
        WriteFailed: a file cannot be written.
    """
    from costmodel.analysis import regression
    from taxtui.report.gate.verdicts import Verdicts

    metrics = _metrics(names or regression.DEFAULT, limit)
    then, now = _read(before), _read(after)
    told = Verdicts(regression.check(now, then, metrics, run_sd), then, now)
    if junit is not None:
        from taxtui.report.gate.junit import render

        _replace(junit, render(told))
    if summary is not None:
        _append(summary, f"## taxtui compare\n\n{BY_NAME['markdown'].render(told.report)}\n")
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
