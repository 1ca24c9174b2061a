"""Project what recorded trajectories cost at any scale. Independent of taxtui: standard library and msgspec only.

::

    import costmodel as cm

    data = cm.load("run.msgpack")
    training_run = cm.TrainingRun(trajectories=10**6, workers=500)
    rows = cm.project(data, training_run)
    rows[0].worker_hours.value, rows[0].wall_clock_hours.value, rows[0].flags
    cm.decide(data, training_run, current="docker", candidate="local")

Every public name is in the table below; sub-modules are internal.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from costmodel import toml as toml
    from costmodel.analysis import concurrency_sweep as concurrency_sweep
    from costmodel.analysis.baseline import WORK_FIELDS as WORK_FIELDS
    from costmodel.analysis.baseline import break_even as break_even
    from costmodel.analysis.baseline import crossing_point as crossing_point
    from costmodel.analysis.baseline import judge_rows as judge_rows
    from costmodel.analysis.baseline import matches_spec as matches_spec
    from costmodel.analysis.bill import USD as USD
    from costmodel.analysis.bill import Bill as Bill
    from costmodel.analysis.bill import Side as Side
    from costmodel.analysis.compared_metrics import DEFAULT_METRICS as DEFAULT_METRICS
    from costmodel.analysis.compared_metrics import FAILURE_RATE as FAILURE_RATE
    from costmodel.analysis.compared_metrics import METRIC_LIMIT as METRIC_LIMIT
    from costmodel.analysis.compared_metrics import ComparedSide as ComparedSide
    from costmodel.analysis.compared_metrics import Metric as Metric
    from costmodel.analysis.compared_metrics import parse_metric as parse_metric
    from costmodel.analysis.comparison import COMPARISON_VERDICTS as COMPARISON_VERDICTS
    from costmodel.analysis.comparison import INCONCLUSIVE as INCONCLUSIVE
    from costmodel.analysis.comparison import WORSE as WORSE
    from costmodel.analysis.comparison import Comparison as Comparison
    from costmodel.analysis.comparison import Comparisons as Comparisons
    from costmodel.analysis.comparison import compare as compare
    from costmodel.analysis.decision import MOVE as MOVE
    from costmodel.analysis.decision import STAY as STAY
    from costmodel.analysis.decision import UNMEASURED_PROVENANCES as UNMEASURED_PROVENANCES
    from costmodel.analysis.decision import Decision as Decision
    from costmodel.analysis.decision import decide_between as decide_between
    from costmodel.analysis.headline import sentence as sentence
    from costmodel.analysis.per_substrate import PlaceAsked as PlaceAsked
    from costmodel.analysis.per_substrate import candidates_of as candidates_of
    from costmodel.analysis.per_substrate import project_places as project_places
    from costmodel.analysis.per_substrate import runs_of as runs_of
    from costmodel.analysis.pool_size import pool_sizes as pool_sizes
    from costmodel.analysis.project import CellFilter as CellFilter
    from costmodel.analysis.project import behind as behind
    from costmodel.analysis.project import project as project
    from costmodel.analysis.project import rows_of as rows_of
    from costmodel.analysis.questions import attribute as attribute
    from costmodel.analysis.questions import decide as decide
    from costmodel.analysis.ranking import HELD_PER_SUCCESS as HELD_PER_SUCCESS
    from costmodel.analysis.ranking import WORKER_HOURS as WORKER_HOURS
    from costmodel.analysis.ranking import Answer as Answer
    from costmodel.analysis.ranking import Entry as Entry
    from costmodel.analysis.ranking import ModeRatio as ModeRatio
    from costmodel.analysis.ranking import Place as Place
    from costmodel.analysis.ranking import WorkLine as WorkLine
    from costmodel.analysis.ranking import answer_of as answer_of
    from costmodel.analysis.ranking import headline as headline
    from costmodel.analysis.ranking import middle_workload as middle_workload
    from costmodel.analysis.sensitivity import Curve as Curve
    from costmodel.analysis.sensitivity import curve as curve
    from costmodel.analysis.sensitivity import sensitivity as sensitivity
    from costmodel.analysis.thresholds import InputEffect as InputEffect
    from costmodel.analysis.thresholds import Turn as Turn
    from costmodel.analysis.thresholds import input_effects as input_effects
    from costmodel.analysis.thresholds import turns as turns
    from costmodel.analysis.what_if import Saving as Saving
    from costmodel.analysis.what_if import Threshold as Threshold
    from costmodel.analysis.what_if import what_if as what_if
    from costmodel.attribution.assumptions import MEASURED_INPUT as MEASURED_INPUT
    from costmodel.attribution.assumptions import STEP_MODEL_RULES as STEP_MODEL_RULES
    from costmodel.attribution.paired_comparison import RunInSteps as RunInSteps
    from costmodel.errors import CostModelError as CostModelError
    from costmodel.errors import NoPrice as NoPrice
    from costmodel.errors import PriceError as PriceError
    from costmodel.errors import SourceError as SourceError
    from costmodel.errors import TrainingRunError as TrainingRunError
    from costmodel.pricing import sheet as sheet
    from costmodel.pricing.instance_sizes import sold_size as sold_size
    from costmodel.pricing.sheet import SHIPPED_PRICES as SHIPPED_PRICES
    from costmodel.pricing.sheet import Prices as Prices
    from costmodel.pricing.sheet import load_prices as load_prices
    from costmodel.pricing.sheet import priced_cell as priced_cell
    from costmodel.pricing.tariff import SandboxPrice as SandboxPrice
    from costmodel.projection import tax_bounds as tax_bounds
    from costmodel.projection import warnings as warnings
    from costmodel.projection.cause_names import CAUSE_NAMES as CAUSE_NAMES
    from costmodel.projection.row import CAUSES as CAUSES
    from costmodel.projection.row import Attribution as Attribution
    from costmodel.projection.row import BreakEven as BreakEven
    from costmodel.projection.row import ByCause as ByCause
    from costmodel.projection.row import Evidence as Evidence
    from costmodel.projection.row import GpuWaiting as GpuWaiting
    from costmodel.projection.row import Row as Row
    from costmodel.projection.row import Share as Share
    from costmodel.projection.tax_bounds import MedianDispatch as MedianDispatch
    from costmodel.projection.tax_bounds import Reference as Reference
    from costmodel.projection.tax_bounds import check_reference_used as check_reference_used
    from costmodel.providers import published_figures as published_figures
    from costmodel.providers.limits import Profile as Profile
    from costmodel.providers.limits import known_profiles as known_profiles
    from costmodel.providers.limits import load_profile as load_profile
    from costmodel.providers.plausible_ranges import Candidate as Candidate
    from costmodel.providers.provider import Provider as Provider
    from costmodel.providers.provider import known_providers as known_providers
    from costmodel.providers.provider import load_provider as load_provider
    from costmodel.recording import breakdown as breakdown
    from costmodel.recording import events as events
    from costmodel.recording import framing as framing
    from costmodel.recording.causes import CAUSE_OF as CAUSE_OF
    from costmodel.recording.causes import CAUSE_POLICIES as CAUSE_POLICIES
    from costmodel.recording.causes import DROPPED as DROPPED
    from costmodel.recording.causes import HARNESS as HARNESS
    from costmodel.recording.causes import KEPT as KEPT
    from costmodel.recording.causes import PROVIDER as PROVIDER
    from costmodel.recording.causes import RETRIED as RETRIED
    from costmodel.recording.causes import SANDBOX as SANDBOX
    from costmodel.recording.causes import VERIFIER as VERIFIER
    from costmodel.recording.causes import cause_of as cause_of
    from costmodel.recording.causes import policy_of as policy_of
    from costmodel.recording.events import Actions as Actions
    from costmodel.recording.events import Cell as Cell
    from costmodel.recording.events import Clock as Clock
    from costmodel.recording.events import Event as Event
    from costmodel.recording.events import Header as Header
    from costmodel.recording.events import Health as Health
    from costmodel.recording.events import Link as Link
    from costmodel.recording.events import Mark as Mark
    from costmodel.recording.events import Notice as Notice
    from costmodel.recording.events import PhaseEnded as PhaseEnded
    from costmodel.recording.events import RunFinished as RunFinished
    from costmodel.recording.events import TrialEnded as TrialEnded
    from costmodel.recording.events import TrialStarted as TrialStarted
    from costmodel.recording.follower import Follower as Follower
    from costmodel.recording.follower import RecordingSummary as RecordingSummary
    from costmodel.recording.follower import read_events as read_events
    from costmodel.recording.load import load as load
    from costmodel.recording.load import load_all as load_all
    from costmodel.recording.load import read_recordings as read_recordings
    from costmodel.recording.metrics import NOT_RECORDED as NOT_RECORDED
    from costmodel.recording.metrics import PER_ACTION as PER_ACTION
    from costmodel.recording.metrics import PER_TRIAL as PER_TRIAL
    from costmodel.recording.published import PROVENANCE as PROVENANCE
    from costmodel.recording.published import Published as Published
    from costmodel.recording.published import PublishedFigure as PublishedFigure
    from costmodel.recording.published import PublishedStart as PublishedStart
    from costmodel.recording.published import read_published as read_published
    from costmodel.recording.reader import CellIdentity as CellIdentity
    from costmodel.recording.reader import Recording as Recording
    from costmodel.recording.reader import read_recording as read_recording
    from costmodel.recording.runner_health import DISTURBED_SHARE as DISTURBED_SHARE
    from costmodel.recording.runner_health import FLOOR_LIMIT_NS as FLOOR_LIMIT_NS
    from costmodel.recording.runner_health import LAG_LIMIT_NS as LAG_LIMIT_NS
    from costmodel.recording.runner_health import RunnerFitness as RunnerFitness
    from costmodel.recording.runner_health import WorkerFitness as WorkerFitness
    from costmodel.recording.table import TableRow as TableRow
    from costmodel.recording.table import frame as frame
    from costmodel.recording.table import table_columns as table_columns
    from costmodel.recording.table import table_rows as table_rows
    from costmodel.recording.throughput import CellRates as CellRates
    from costmodel.recording.trial import RecordedTrial as RecordedTrial
    from costmodel.recording.validation import Causality as Causality
    from costmodel.recording.validation import InCourse as InCourse
    from costmodel.recording.validation import check_scenario as check_scenario
    from costmodel.regular_file import open_regular as open_regular
    from costmodel.regular_file import read_regular as read_regular
    from costmodel.regular_file import too_large as too_large
    from costmodel.simulation.makespan import Makespan as Makespan
    from costmodel.simulation.makespan import expected_makespan as expected_makespan
    from costmodel.simulation.makespan import expected_max as expected_max
    from costmodel.simulation.makespan import list_makespan as list_makespan
    from costmodel.simulation.makespan import makespan_bounds as makespan_bounds
    from costmodel.statistics import repetitions as repetitions
    from costmodel.statistics.intervals import Between as Between
    from costmodel.statistics.intervals import Interval as Interval
    from costmodel.statistics.intervals import mean_interval as mean_interval
    from costmodel.statistics.intervals import quantile as quantile
    from costmodel.statistics.intervals import ratio_interval as ratio_interval
    from costmodel.statistics.intervals import student_t as student_t
    from costmodel.statistics.intervals import wilson_interval as wilson_interval
    from costmodel.statistics.quantiles import Percentile as Percentile
    from costmodel.statistics.quantiles import Quantile as Quantile
    from costmodel.statistics.quantiles import percentile as percentile
    from costmodel.statistics.quantiles import percentile_with_runs as percentile_with_runs
    from costmodel.statistics.quantiles import worth_by_value as worth_by_value
    from costmodel.statistics.repetitions import Assumed as Assumed
    from costmodel.statistics.repetitions import Basis as Basis
    from costmodel.statistics.repetitions import Estimate as Estimate
    from costmodel.statistics.repetitions import Origin as Origin
    from costmodel.statistics.repetitions import RunKey as RunKey
    from costmodel.statistics.scalability import Scalability as Scalability
    from costmodel.statistics.stability import Modes as Modes
    from costmodel.statistics.stability import Stability as Stability
    from costmodel.statistics.stability import stability as stability
    from costmodel.statistics.verdict import CANNOT_TELL as CANNOT_TELL
    from costmodel.statistics.verdict import DIFFERS as DIFFERS
    from costmodel.statistics.verdict import POWER as POWER
    from costmodel.statistics.verdict import TIE as TIE
    from costmodel.statistics.verdict import Finding as Finding
    from costmodel.training.images import Images as Images
    from costmodel.training.length import FIXED_LENGTH as FIXED_LENGTH
    from costmodel.training.length import RECORDED_LENGTH as RECORDED_LENGTH
    from costmodel.training.length import Length as Length
    from costmodel.training.life_cycle import ACTIONS as ACTIONS
    from costmodel.training.policies import POLICIES as POLICIES
    from costmodel.training.run import ON_FAILURE as ON_FAILURE
    from costmodel.training.run import PLACEMENTS as PLACEMENTS
    from costmodel.training.run import Delta as Delta
    from costmodel.training.run import Think as Think
    from costmodel.training.run import TrainingRun as TrainingRun
    from costmodel.training.run import poisoned_groups as poisoned_groups
    from costmodel.units import MAX_INT as MAX_INT
    from costmodel.units import NS_PER_HOUR as NS_PER_HOUR
    from costmodel.units import NS_PER_S as NS_PER_S
    from costmodel.workload import characterization as characterization
    from costmodel.workload.contamination import Exposure as Exposure
    from costmodel.workload.pool import Pool as Pool
    from costmodel.workload.pool import pools as pools
    from costmodel.workload.scenario_range import Assumption as Assumption
    from costmodel.workload.scenario_range import LevelLaw as LevelLaw

_PUBLIC: Final[dict[str, str]] = {
    # analysis: questions about rows: ranking, comparison, decision, thresholds, concurrency sweep
    "analysis.baseline": "WORK_FIELDS break_even crossing_point judge_rows matches_spec",
    "analysis.bill": "Bill Side USD",
    "analysis.compared_metrics": "ComparedSide DEFAULT_METRICS FAILURE_RATE METRIC_LIMIT Metric parse_metric",
    "analysis.comparison": "COMPARISON_VERDICTS Comparison Comparisons INCONCLUSIVE WORSE compare",
    "analysis.decision": "Decision MOVE STAY UNMEASURED_PROVENANCES decide_between",
    "analysis.headline": "sentence",
    "analysis.per_substrate": "PlaceAsked candidates_of project_places runs_of",
    "analysis.pool_size": "pool_sizes",
    "analysis.project": "CellFilter behind project rows_of",
    "analysis.questions": "attribute decide",
    "analysis.ranking": (
        "Answer Entry HELD_PER_SUCCESS ModeRatio Place WORKER_HOURS WorkLine answer_of headline middle_workload"
    ),
    "analysis.sensitivity": "Curve curve sensitivity",
    "analysis.thresholds": "InputEffect Turn input_effects turns",
    "analysis.what_if": "Saving Threshold what_if",
    # attribution: the same run without each cause of sandbox time
    "attribution.assumptions": "MEASURED_INPUT STEP_MODEL_RULES",
    "attribution.paired_comparison": "RunInSteps",
    # providers: substrates that were not measured: published start-up times, limits and prices
    "providers.limits": "Profile known_profiles load_profile",
    "providers.plausible_ranges": "Candidate",
    "providers.provider": "Provider known_providers load_provider",
    # projection: a row: worker-hours, wall-clock, money and warnings
    "projection.cause_names": "CAUSE_NAMES",
    "projection.row": "Attribution BreakEven ByCause CAUSES Evidence GpuWaiting Row Share",
    "projection.tax_bounds": "MedianDispatch Reference check_reference_used",
    # simulation: makespans of attempts on workers
    "simulation.makespan": "Makespan expected_makespan expected_max list_makespan makespan_bounds",
    # workload: the trials of a cell as attempts of the asked length and concurrency
    "workload.contamination": "Exposure",
    "workload.pool": "Pool pools",
    "workload.scenario_range": "Assumption LevelLaw",
    # pricing: price sheets: what one sandbox costs
    "pricing.instance_sizes": "sold_size",
    "pricing.sheet": "Prices SHIPPED_PRICES load_prices priced_cell",
    "pricing.tariff": "SandboxPrice",
    # recording: from the bytes of a file to trials
    "recording.causes": (
        "CAUSE_OF CAUSE_POLICIES DROPPED HARNESS KEPT PROVIDER RETRIED SANDBOX VERIFIER cause_of policy_of"
    ),
    "recording.events": (
        "Actions Cell Clock Event Header Health Link Mark Notice PhaseEnded RunFinished TrialEnded TrialStarted"
    ),
    "recording.follower": "Follower RecordingSummary read_events",
    "recording.load": "load load_all read_recordings",
    "recording.metrics": "NOT_RECORDED PER_ACTION PER_TRIAL",
    "recording.published": "PROVENANCE Published PublishedFigure PublishedStart read_published",
    "recording.reader": "CellIdentity Recording read_recording",
    "recording.runner_health": "DISTURBED_SHARE FLOOR_LIMIT_NS LAG_LIMIT_NS RunnerFitness WorkerFitness",
    "recording.table": "TableRow frame table_columns table_rows",
    "recording.throughput": "CellRates",
    "recording.trial": "RecordedTrial",
    "recording.validation": "Causality InCourse check_scenario",
    # training: the training run to project
    "training.images": "Images",
    "training.length": "FIXED_LENGTH Length RECORDED_LENGTH",
    "training.life_cycle": "ACTIONS",
    "training.policies": "POLICIES",
    "training.run": "Delta ON_FAILURE PLACEMENTS Think TrainingRun poisoned_groups",
    # statistics: intervals, percentiles and verdicts, without a word of the domain
    "statistics.intervals": "Between Interval mean_interval quantile ratio_interval student_t wilson_interval",
    "statistics.quantiles": "Percentile Quantile percentile percentile_with_runs worth_by_value",
    "statistics.repetitions": "Assumed Basis Estimate Origin RunKey",
    "statistics.scalability": "Scalability",
    "statistics.stability": "Modes Stability stability",
    "statistics.verdict": "CANNOT_TELL DIFFERS Finding POWER TIE",
    # errors: each has an exit code
    "errors": "CostModelError NoPrice PriceError SourceError TrainingRunError",
    # regular_file: files that are no pipe or device
    "regular_file": "open_regular read_regular too_large",
    # units: nanoseconds in longer units
    "units": "MAX_INT NS_PER_HOUR NS_PER_S",
}
"""Module → its public names. Each is imported on first use: a command that only reports an error needs none."""

_MODULES: Final[tuple[str, ...]] = (
    "recording.breakdown",
    "workload.characterization",
    "analysis.concurrency_sweep",
    "recording.events",
    "recording.framing",
    "providers.published_figures",
    "statistics.repetitions",
    "pricing.sheet",
    "projection.tax_bounds",
    "toml",
    "projection.warnings",
)
"""Public modules, whose names say enough only behind the module's: ``events.OK``, ``warnings.TAIL``."""

_HOMES: Final = {name: home for home, names in _PUBLIC.items() for name in names.split()}

__all__ = sorted([*_HOMES, *(home.rpartition(".")[2] for home in _MODULES)])


def __getattr__(name: str) -> Any:
    """Import a public name's module when it is first asked for."""
    if name in _HOMES:
        value = getattr(importlib.import_module(f"costmodel.{_HOMES[name]}"), name)
    else:
        home = next((home for home in _MODULES if home.rpartition(".")[2] == name), None)
        if home is None:
            raise AttributeError(f"module 'costmodel' has no attribute {name!r}")
        value = importlib.import_module(f"costmodel.{home}")
    globals()[name] = value
    return value
