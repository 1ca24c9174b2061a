"""Project what recorded trajectories cost at any scale. Independent of taxtui: standard library and msgspec only.

::

    import costmodel

    rows = costmodel.project([costmodel.read("run.msgpack")], costmodel.TrainingRun(trajectories=10**6, workers=500))
    rows[0].worker_hours.value, rows[0].wall_clock_hours.value, rows[0].flags
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from costmodel.analysis.baseline import break_even as break_even
    from costmodel.analysis.bill import Side as Side
    from costmodel.analysis.comparison import compare as compare
    from costmodel.analysis.decision import Decision as Decision
    from costmodel.analysis.decision import decide as decide
    from costmodel.analysis.headline import sentence as sentence
    from costmodel.analysis.pool_size import pool_sizes as pool_sizes
    from costmodel.analysis.project import project as project
    from costmodel.analysis.ranking import Answer as Answer
    from costmodel.analysis.ranking import answer_of as answer_of
    from costmodel.analysis.sensitivity import curve as curve
    from costmodel.analysis.sensitivity import sensitivity as sensitivity
    from costmodel.analysis.thresholds import Turn as Turn
    from costmodel.analysis.thresholds import turns as turns
    from costmodel.errors import CostModelError as CostModelError
    from costmodel.errors import NoPrice as NoPrice
    from costmodel.errors import PriceError as PriceError
    from costmodel.errors import SourceError as SourceError
    from costmodel.errors import TrainingRunError as TrainingRunError
    from costmodel.pricing.sheet import Prices as Prices
    from costmodel.pricing.sheet import load_prices as load_prices
    from costmodel.projection.row import Attribution as Attribution
    from costmodel.projection.row import Projection as Projection
    from costmodel.providers.limits import load_profile as load_profile
    from costmodel.providers.provider import load_provider as load_provider
    from costmodel.recording.load import read as read
    from costmodel.recording.load import read_all as read_all
    from costmodel.recording.published import Published as Published
    from costmodel.recording.reader import Recording as Recording
    from costmodel.recording.table import frame as frame
    from costmodel.simulation.makespan import Makespan as Makespan
    from costmodel.simulation.makespan import expected_makespan as expected_makespan
    from costmodel.simulation.makespan import list_makespan as list_makespan
    from costmodel.statistics.intervals import Interval as Interval
    from costmodel.training.images import Images as Images
    from costmodel.training.length import Length as Length
    from costmodel.training.run import Delta as Delta
    from costmodel.training.run import Think as Think
    from costmodel.training.run import TrainingRun as TrainingRun

_HOMES: Final = {
    "Answer": "analysis.ranking",
    "answer_of": "analysis.ranking",
    "break_even": "analysis.baseline",
    "compare": "analysis.comparison",
    "Decision": "analysis.decision",
    "Side": "analysis.bill",
    "decide": "analysis.decision",
    "Delta": "training.run",
    "TrainingRun": "training.run",
    "Think": "training.run",
    "CostModelError": "errors",
    "TrainingRunError": "errors",
    "NoPrice": "errors",
    "PriceError": "errors",
    "SourceError": "errors",
    "frame": "recording.table",
    "Images": "training.images",
    "Length": "training.length",
    "Makespan": "simulation.makespan",
    "expected_makespan": "simulation.makespan",
    "list_makespan": "simulation.makespan",
    "Prices": "pricing.sheet",
    "load_prices": "pricing.sheet",
    "load_profile": "providers.limits",
    "load_provider": "providers.provider",
    "pool_sizes": "analysis.pool_size",
    "project": "analysis.project",
    "Published": "recording.published",
    "read": "recording.load",
    "read_all": "recording.load",
    "Recording": "recording.reader",
    "Attribution": "projection.row",
    "Projection": "projection.row",
    "sentence": "analysis.headline",
    "curve": "analysis.sensitivity",
    "sensitivity": "analysis.sensitivity",
    "Turn": "analysis.thresholds",
    "turns": "analysis.thresholds",
    "Interval": "statistics.intervals",
}
"""Public name → module. Imported on first use: a command line that only reports an error needs none of them."""

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name's module when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'costmodel' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"costmodel.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
