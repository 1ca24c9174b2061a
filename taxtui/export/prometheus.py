"""The text format of Prometheus: a summary per duration and cell, and the number of trials."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from costmodel import Pool, RecordedTrial, Recording, SourceError, breakdown, load, pools, quantile
from taxtui.terminal_text import clean

QUANTILES: Final = (0.5, 0.9, 0.95, 0.99)
RESPONSE: Final = "response"
SUMMARIES: Final[dict[str, tuple[str, Callable[[RecordedTrial], Iterable[int]]]]] = {
    "cold_start": ("Create request to the first command's result", lambda t: [t.measures.cold_start_ns]),
    "fresh_episode": ("Create request to the first action", lambda t: [t.measures.fresh_episode_ns]),
    "trajectory": ("Occupied time without throttles and model time", lambda t: [t.measures.trajectory_ns]),
    "held": ("Occupied time of a trial", lambda t: [t.measures.held_ns]),
    RESPONSE: ("Scheduled start to the end of the last action", lambda t: [t.measures.response_ns]),
    "cleanup": ("Delete requested to gone", lambda t: [ns for ns in [t.measures.cleanup_ns] if ns is not None]),
    "action": ("An action, submission to result", lambda t: t.durations_ns),
    "action_wrapper": ("taxtui's shell wrapper around an action", lambda t: [ns for ns in t.wrappers_ns if ns]),
    "action_run": ("In-sandbox time of an action", lambda t: [ns for ns in t.runs_ns if ns >= 0]),
}
"""Name of a summary over successful trials → description, and a trial's samples in ns. docs/measurement.md."""


def pieces(paths: Sequence[Path], table: str) -> Iterator[bytes]:
    """Yield metrics in seconds. Raises ``SourceError``."""
    sources = [load(path) for path in paths]
    recordings = [recording for recording in sources if isinstance(recording, Recording)]
    if len(recordings) < len(sources):
        raise SourceError("published latencies hold no trials; give recordings")
    cells = pools(recordings)
    yield _family("taxtui_trials", "gauge", "Counted trials by outcome.", _trials(cells))
    for name, (about, samples) in SUMMARIES.items():
        yield _family(f"taxtui_{name}_seconds", "summary", f"{about}.", _summaries(name, cells, samples))
    distorted = [
        (f'taxtui_runner_distorted{{run_id="{_text(recording.run_id)}"}}', int(recording.distorted))
        for recording in recordings
    ]
    yield _family("taxtui_runner_distorted", "gauge", "1 if the measuring process distorted durations.", distorted)


def _family(name: str, kind: str, about: str, lines: Iterable[tuple[str, float]]) -> bytes:
    values = "".join(f"{series} {value}\n" for series, value in lines)
    return f"# HELP {name} {about}\n# TYPE {name} {kind}\n{values}".encode() if values else b""


def _trials(cells: Sequence[Pool]) -> Iterator[tuple[str, float]]:
    for cell in cells:
        good = sum(trial.ok for trial in cell.trials)
        yield f'taxtui_trials{{{_labels(cell)},outcome="ok"}}', good
        yield f'taxtui_trials{{{_labels(cell)},outcome="failed"}}', len(cell.trials) - good


def _summaries(
    name: str, cells: Sequence[Pool], samples: Callable[[RecordedTrial], Iterable[int]]
) -> Iterator[tuple[str, float]]:
    for cell in cells:
        if name == RESPONSE and not breakdown.has_schedule(cell.identity.arrival):
            continue
        ascending = sorted(ns for trial in cell.trials if trial.ok for ns in samples(trial))
        if not ascending:
            continue
        labels, series = _labels(cell), f"taxtui_{name}_seconds"
        for q in QUANTILES:
            yield f'{series}{{{labels},quantile="{q}"}}', quantile(ascending, q) / 1e9
        yield f"{series}_sum{{{labels}}}", sum(ascending) / 1e9
        yield f"{series}_count{{{labels}}}", len(ascending)


def _labels(cell: Pool) -> str:
    identity = cell.identity
    labels = {
        "cell": identity.cell_id,
        "substrate": identity.substrate,
        "variant": identity.variant,
        "tier": identity.tier,
        "actions": str(identity.actions),
        "mode": identity.mode,
        "concurrency": str(identity.concurrency),
        "provenance": cell.provenance,
    }
    return ",".join(f'{name}="{_text(value)}"' for name, value in labels.items())


def _text(value: str) -> str:
    return clean(value).replace("\\", "\\\\").replace('"', '\\"')
