"""A cell as it is thought to be somewhere else, or at another scale: one pool for the value, one for each end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from costmodel.pricing.sheet import Prices
    from costmodel.training.run import TrainingRun
    from costmodel.workload.pool import Pool


class Assumption(NamedTuple):
    """One input of an attribution that was not measured by the trials of its row."""

    name: str  # the training run's field, or what is assumed
    value: str
    source: str


class LevelLaw(NamedTuple):
    """How one row came about from cells that differ in how many trials ran at a time."""

    levels: tuple[tuple[int, float], ...]  # at a time, and what one success held a worker for, in s, without think time
    at_a_time: int  # that the row is for
    beyond: float  # how many times the highest level that is; 1: not beyond
    law: str  # how it was told: a level, between two, or beyond by what


class Alternatives(NamedTuple):
    """What one row is computed from. Without ends it is a pool as it was recorded."""

    value: Pool
    training_run: TrainingRun
    prices: Prices | None
    ends: tuple[Pool, ...] = ()  # the least and the most of what was not measured
    assumptions: tuple[Assumption, ...] = ()
    flags: tuple[str, ...] = ()
    levels: LevelLaw | None = None
    at_least: bool = False  # nothing bounds it from above
