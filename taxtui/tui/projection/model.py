"""Answers the questions of the Projection screen with the cost model; runs in a thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Final, NamedTuple

from costmodel import (
    SHIPPED_PRICES,
    Answer,
    CellIdentity,
    Published,
    Recording,
    Row,
    SubstrateRun,
    Think,
    TrainingRun,
    answer_of,
    known_profiles,
    known_providers,
    load,
    project_per_substrate,
)
from taxtui.errors import RecordingError
from taxtui.live import catalogue
from taxtui.tui.projection.form import Question, Typed, parsed

Source = Recording | Published

QUICK: Final = frozenset(
    {
        *("trajectories", "workers", "actions", "baseline", "full_speed", "max_attempts", "backoff_s", "timeout_s"),
        *("think", "include_cleanup", "quota", "run_sd", "precision"),
    }
)
"""Fields of a training run without a simulation."""
EFFORT: Final = 0.05
"""Simulation effort of a training run in steps, as a share of the effort of ``taxtui project``."""


class ProjectionAsked(NamedTuple):
    """A question to the cost model."""

    paths: tuple[Path, ...]
    typed: Typed


class Answered(NamedTuple):
    """The rows of a projection so far, and their inputs."""

    rows: Sequence[Row]
    question: Question
    sources: Sequence[Source]
    coarse: bool = False  # simulations are pending

    @property
    def training_run(self) -> TrainingRun:
        return self.question.training_run

    @property
    def answer(self) -> Answer:
        return answer_of(self.rows, run_sd=self.training_run.run_sd, baseline=self.training_run.baseline)


class Projector:
    """Reads each recording once, until the file changes."""

    def __init__(self) -> None:
        self._cache: dict[Path, tuple[tuple[int, int], Source]] = {}

    def answers(self, request: ProjectionAsked) -> Iterator[Answered]:
        """Yield the answer without simulations, then answers with more and more simulated tiers and modes.

        The last answer has the rows of ``taxtui project``, with less simulation effort.

        Raises:
            RecordingError: there is no recording.
            CostModelError: the question cannot be answered.
        """
        question = parsed(request.typed)
        if not request.paths:
            raise RecordingError("there is no recording yet", fix="1 measures, 5 lists recordings")
        self._cache = {path: source for path, source in self._cache.items() if path in request.paths}
        sources = [self._source(path) for path in request.paths]
        quick = question._replace(places=[_quick(place) for place in question.places])
        if any(isinstance(source, Published) for source in sources):
            quick = question  # published figures need no simulation, and refuse other options by name
        rows = project_per_substrate(sources, quick.places, None, quick.providers)
        yield Answered(rows, question, sources, quick != question)
        if quick == question:
            return
        simulated = {(row.identity, row.provenance): row for row in rows}
        workloads = dict.fromkeys((row.identity.tier, row.identity.mode) for row in rows)
        for done, workload in enumerate(workloads, start=1):

            def wanted(identity: CellIdentity, workload: tuple[str, str] = workload) -> bool:
                return (identity.tier, identity.mode) == workload

            part = project_per_substrate(sources, question.places, None, question.providers, wanted, effort=EFFORT)
            simulated |= {(row.identity, row.provenance): row for row in part}
            yield Answered(list(simulated.values()), question, sources, done < len(workloads))

    def _source(self, path: Path) -> Source:
        stamp = catalogue.stamp(path)
        if path not in self._cache or self._cache[path][0] != stamp:
            self._cache[path] = (stamp, load(path))
        return self._cache[path][1]


def _quick(place: SubstrateRun) -> SubstrateRun:
    """Return the question without the fields that take a simulation, and with the mean of the think times."""
    request = {item.name: getattr(place.training_run, item.name) for item in fields(TrainingRun) if item.name in QUICK}
    think = place.training_run.think
    if think is not None and think.sigma:
        request["think"] = Think(round(think.mean_ns))
    return place._replace(training_run=TrainingRun(**request))


def choices(rows: Sequence[Row]) -> dict[str, tuple[str, ...]]:
    """Return the choices of the options that name a substrate, a price sheet or a provider."""
    labels = tuple(dict.fromkeys(row.identity.label for row in rows))
    sheets = tuple(sorted(path.stem for path in SHIPPED_PRICES.glob("*.toml")))
    return {"baseline": labels, "full_speed": labels, "prices": sheets, "profile": tuple(known_profiles())} | {
        "compose": tuple(known_providers())
    }
