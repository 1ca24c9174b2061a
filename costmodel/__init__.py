"""Project what recorded trajectories cost at any scale. Independent of taxtui: standard library and msgspec only.

::

    import costmodel as cm

    data = cm.load("run.msgpack")
    training_run = cm.TrainingRun(trajectories=10**6, workers=500, actions=50, think=cm.Think(8_000_000_000))
    rows = cm.project(data, training_run)
    rows[0].worker_hours.value, rows[0].wall_clock_hours.value, rows[0].flags
    cm.decide(data, training_run, current="docker", candidate="local", tier="T1", mode="exec").verdict

Every public name is imported below, for type checkers; sub-modules are internal. At run time a name is imported on its
first use: a command that only reports an error needs none.
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from costmodel import toml
    from costmodel.analysis import concurrency_sweep, ranking
    from costmodel.analysis.baseline import WORK_FIELDS, judge_rows, matches_spec
    from costmodel.analysis.comparison import (
        COMPARISON_VERDICTS,
        DEFAULT_METRICS,
        FAILURE_RATE,
        INCONCLUSIVE,
        METRIC_LIMIT,
        WORSE,
        ComparedSide,
        Comparison,
        Comparisons,
        Metric,
        compare,
        parse_metric,
    )
    from costmodel.analysis.decision import (
        MOVE,
        STAY,
        UNMEASURED_PROVENANCES,
        USD,
        Bill,
        Decision,
        Side,
        Unverified,
        decide_between,
    )
    from costmodel.analysis.project import CellFilter, SubstrateRun, behind, project, project_per_substrate, rows_of
    from costmodel.analysis.questions import attribute, decide, sides
    from costmodel.analysis.ranking import Answer, Entry, ModeRatio, Place, WorkLine, answer_of
    from costmodel.analysis.thresholds import InputEffect, Saving, Threshold, input_effects, what_if
    from costmodel.attribution.row import MEASURED_INPUT, STEP_MODEL_RULES
    from costmodel.errors import CostModelError, NoPrice, PriceError, SourceError, TrainingRunError
    from costmodel.pricing import sheet
    from costmodel.pricing.sheet import SHIPPED_PRICES, Prices, SandboxPrice, load_prices, priced_cell, sold_size
    from costmodel.projection import warnings
    from costmodel.projection.measured_row import Reference, reference_of
    from costmodel.projection.row import CAUSES, Attribution, Evidence, GpuWaiting, Row, Share
    from costmodel.providers.provider import (
        Profile,
        Provider,
        known_profiles,
        known_providers,
        load_profile,
        load_provider,
        published_figures,
    )
    from costmodel.recording import breakdown, causes, events, framing
    from costmodel.recording.follower import Follower, InCourse, read_events
    from costmodel.recording.published import PROVENANCE, Published, PublishedFigure, read_published
    from costmodel.recording.reader import OpenTrial, Recording, load, read_recording
    from costmodel.recording.runner_health import DISTURBED_SHARE, FLOOR_LIMIT_NS, WorkerFitness
    from costmodel.recording.table import TableRow, frame, table_columns, table_rows
    from costmodel.recording.trial import NOT_RECORDED, PER_ACTION, PER_TRIAL, CellIdentity, RecordedTrial
    from costmodel.regular_file import open_regular, read_regular, too_large
    from costmodel.simulation.makespan import expected_max, makespan_bounds
    from costmodel.statistics import repetitions
    from costmodel.statistics.intervals import Interval, mean_interval, quantile, wilson_interval
    from costmodel.statistics.quantiles import Percentile, percentile, percentile_with_runs, worth_by_value
    from costmodel.statistics.repetitions import Assumed, Basis, Estimate, Origin, RunKey
    from costmodel.statistics.verdict import CANNOT_TELL, DIFFERS, POWER, TIE, Finding
    from costmodel.training.length import FIXED_LENGTH, RECORDED_LENGTH, Length
    from costmodel.training.run import (
        ACTIONS,
        ON_FAILURE,
        PLACEMENTS,
        POLICIES,
        Images,
        Precision,
        Think,
        TrainingRun,
        poisoned_groups,
    )
    from costmodel.units import MAX_INT, NS_PER_HOUR, NS_PER_S
    from costmodel.workload import characterization
    from costmodel.workload.pool import Exposure, Pool, pools
    from costmodel.workload.rescaling import Alternatives, Assumption, MeasuredLevels


def _homes() -> dict[str, str]:
    """Return the module or package of each public name, as the block above imports it."""
    body = ast.parse(Path(__file__).read_text(encoding="utf-8")).body
    [block] = [node for node in body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = (node for node in block.body if isinstance(node, ast.ImportFrom))
    return {alias.name: str(node.module) for node in imports for alias in node.names}


_HOMES: Final = _homes()

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name's module when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'costmodel' has no attribute {name!r}")
    members = vars(importlib.import_module(_HOMES[name]))
    value = members[name] if name in members else importlib.import_module(f"{_HOMES[name]}.{name}")
    globals()[name] = value
    return value
