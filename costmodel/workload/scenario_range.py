"""A projected cell: the best estimate, and low and high scenarios for unmeasured inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from costmodel.pricing.sheet import Prices
    from costmodel.training.run import TrainingRun
    from costmodel.workload.pool import Pool


class Assumption(NamedTuple):
    """An unmeasured input of a row."""

    name: str  # field of the training run, or the assumed input
    value: str
    source: str


class LevelLaw(NamedTuple):
    """Derivation of a row from cells at several concurrencies."""

    levels: tuple[tuple[int, float], ...]  # concurrency, and occupied time of a success in s without think time
    at_a_time: int  # concurrency of the row
    beyond: float  # multiple of the highest level; 1: not beyond
    law: str  # in words: at a level, between two, or beyond


class Alternatives(NamedTuple):
    """Inputs of one row; without ends the pool is as recorded."""

    value: Pool
    training_run: TrainingRun
    prices: Prices | None
    ends: tuple[Pool, ...] = ()  # low and high scenario of unmeasured inputs
    assumptions: tuple[Assumption, ...] = ()
    flags: tuple[str, ...] = ()
    levels: LevelLaw | None = None
    at_least: bool = False  # no upper limit
