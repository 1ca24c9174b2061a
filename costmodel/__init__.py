"""Project what recorded trajectories cost at any scale. Independent of taxtui: standard library and msgspec only.

::

    import costmodel

    rows = costmodel.project([costmodel.read("run.msgpack")], costmodel.Demand(trajectories=10**6, workers=500))
    rows[0].worker_hours.value, rows[0].wall_clock_hours.value, rows[0].flags
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from costmodel.answer import Answer as Answer
    from costmodel.answer import answer_of as answer_of
    from costmodel.comparison import break_even as break_even
    from costmodel.comparison import compare as compare
    from costmodel.decision import Decision as Decision
    from costmodel.decision import Side as Side
    from costmodel.decision import decide as decide
    from costmodel.demand import Delta as Delta
    from costmodel.demand import Demand as Demand
    from costmodel.demand import Think as Think
    from costmodel.errors import CostModelError as CostModelError
    from costmodel.errors import DemandError as DemandError
    from costmodel.errors import NoPrice as NoPrice
    from costmodel.errors import PriceError as PriceError
    from costmodel.errors import SourceError as SourceError
    from costmodel.images import Images as Images
    from costmodel.length import Length as Length
    from costmodel.makespan import Makespan as Makespan
    from costmodel.makespan import expected_makespan as expected_makespan
    from costmodel.makespan import list_makespan as list_makespan
    from costmodel.pool_size import pool_sizes as pool_sizes
    from costmodel.pricing import Prices as Prices
    from costmodel.pricing import load_prices as load_prices
    from costmodel.profiles import load_profile as load_profile
    from costmodel.projection import project as project
    from costmodel.providers import load_provider as load_provider
    from costmodel.published import Published as Published
    from costmodel.reading import read as read
    from costmodel.reading import read_all as read_all
    from costmodel.recording import Recording as Recording
    from costmodel.results import Attribution as Attribution
    from costmodel.results import Projection as Projection
    from costmodel.tables import frame as frame
    from costmodel.turning import Turn as Turn
    from costmodel.turning import turns as turns
    from costmodel.uncertainty import Interval as Interval
    from costmodel.whatif import curve as curve
    from costmodel.whatif import sensitivity as sensitivity
    from costmodel.wording import sentence as sentence

_HOMES: Final = {
    "Answer": "answer",
    "answer_of": "answer",
    "break_even": "comparison",
    "compare": "comparison",
    "Decision": "decision",
    "Side": "decision",
    "decide": "decision",
    "Delta": "demand",
    "Demand": "demand",
    "Think": "demand",
    "CostModelError": "errors",
    "DemandError": "errors",
    "NoPrice": "errors",
    "PriceError": "errors",
    "SourceError": "errors",
    "frame": "tables",
    "Images": "images",
    "Length": "length",
    "Makespan": "makespan",
    "expected_makespan": "makespan",
    "list_makespan": "makespan",
    "Prices": "pricing",
    "load_prices": "pricing",
    "load_profile": "profiles",
    "load_provider": "providers",
    "pool_sizes": "pool_size",
    "project": "projection",
    "Published": "published",
    "read": "reading",
    "read_all": "reading",
    "Recording": "recording",
    "Attribution": "results",
    "Projection": "results",
    "sentence": "wording",
    "curve": "whatif",
    "sensitivity": "whatif",
    "Turn": "turning",
    "turns": "turning",
    "Interval": "uncertainty",
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
