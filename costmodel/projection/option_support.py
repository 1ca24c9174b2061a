"""Which of a training run's fields each kind of row uses. What it does not use is refused by name, never ignored."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Final

from costmodel.projection import warnings
from costmodel.recording.breakdown import UNKNOWN
from costmodel.training.run import TrainingRun
from costmodel.workload.estimator import Tally
from costmodel.workload.pool import Pool

_ALL: Final = frozenset(one.name for one in fields(TrainingRun))
_BY_ONE_LATENCY: Final = frozenset(
    {"trajectories", "workers", "actions", "baseline", "quota", "deltas", "tolerance", "seed", "effort"}
)
"""The length must be the printed one; nothing is simulated, so that tolerance, seed and effort change nothing."""
_UNPUBLISHED: Final = frozenset({"include_cleanup"})
"""How long ends take nobody published."""
KINDS: Final = (warnings.MEASURED, warnings.STAND_IN, warnings.IMPORTED, warnings.PUBLISHED, warnings.COMPOSED)
"""The provenances of rows."""


def used_by(kind: str) -> frozenset[str]:
    """The fields of a training run that rows of a provenance use; others are a ``TrainingRunError`` that names the
    option.

    What a row uses in general its own source may not tell: then it is among the row's ``unused``.
    """
    if kind == warnings.PUBLISHED:
        return _BY_ONE_LATENCY
    return _ALL - _UNPUBLISHED if kind == warnings.COMPOSED else _ALL


def asked(training_run: TrainingRun) -> list[str]:
    """The fields of a training run that are not as they are when nobody asks."""
    return [
        one.name
        for one in fields(TrainingRun)
        if one.default is MISSING or getattr(training_run, one.name) != one.default
    ]


def refused(training_run: TrainingRun, kind: str) -> list[str]:
    """The options that are asked for and that a kind of row cannot use."""
    return [option(name) for name in asked(training_run) if name not in used_by(kind)]


def option(field: str) -> str:
    """The command line's name of a training run's field: ``--train-seconds`` of ``train_s``."""
    if field == "actions":
        return "--length"
    words = field[:-2] + "-seconds" if field.endswith("_s") and not field.endswith("_gb_s") else field
    return f"--{words.replace('_', '-')}"


def untold(pool: Pool, tally: Tally, training_run: TrainingRun) -> tuple[str, ...]:
    """The options that are asked for and that need what this pool's source does not tell."""
    lacking = {
        "include_cleanup": all(ns == UNKNOWN for ns in pool.columns.cleanup_ns),
        "full_speed": not tally.run_known,
        "warm_pool": not any(tally.attempts.cold_ns) and "create" in pool.untold,
    }
    return tuple(option(name) for name in asked(training_run) if lacking.get(name))
