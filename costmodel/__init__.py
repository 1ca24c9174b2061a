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
    from costmodel import toml
    from costmodel.analysis import concurrency_sweep
    from costmodel.analysis.baseline import WORK_FIELDS, judge_rows, matches_spec
    from costmodel.analysis.bill import USD, Bill, Side
    from costmodel.analysis.compared_metrics import (
        DEFAULT_METRICS,
        FAILURE_RATE,
        METRIC_LIMIT,
        ComparedSide,
        Metric,
        parse_metric,
    )
    from costmodel.analysis.comparison import COMPARISON_VERDICTS, INCONCLUSIVE, WORSE, Comparison, Comparisons, compare
    from costmodel.analysis.decision import MOVE, STAY, UNMEASURED_PROVENANCES, Decision, decide_between
    from costmodel.analysis.project import (
        CellFilter,
        SubstrateRun,
        behind,
        project,
        project_per_substrate,
        rows_of,
    )
    from costmodel.analysis.questions import attribute, decide, sides
    from costmodel.analysis.ranking import (
        EXEC,
        HELD_PER_SUCCESS,
        SESSION,
        WORKER_HOURS,
        Answer,
        Entry,
        ModeRatio,
        Place,
        WorkLine,
        answer_of,
    )
    from costmodel.analysis.thresholds import InputEffect, input_effects
    from costmodel.analysis.what_if import Saving, what_if
    from costmodel.attribution.assumptions import MEASURED_INPUT, STEP_MODEL_RULES
    from costmodel.errors import CostModelError, NoPrice, PriceError, SourceError, TrainingRunError
    from costmodel.pricing import sheet
    from costmodel.pricing.instance_sizes import sold_size
    from costmodel.pricing.sheet import SHIPPED_PRICES, Prices, SandboxPrice, load_prices, priced_cell
    from costmodel.projection import tax_bounds, warnings
    from costmodel.projection.row import (
        CAUSE_NAMES,
        CAUSES,
        Attribution,
        ByCause,
        Evidence,
        GpuWaiting,
        Row,
        Share,
    )
    from costmodel.projection.tax_bounds import Reference, check_reference_used
    from costmodel.providers.limits import Profile, known_profiles, load_profile
    from costmodel.providers.provider import Provider, known_providers, load_provider, published_figures
    from costmodel.recording import breakdown, events, framing
    from costmodel.recording.causes import (
        CAUSE_OF,
        CAUSE_POLICIES,
        DROPPED,
        HARNESS,
        KEPT,
        PROVIDER,
        RETRIED,
        SANDBOX,
        VERIFIER,
        cause_of,
        policy_of,
    )
    from costmodel.recording.events import (
        Actions,
        Cell,
        Clock,
        Event,
        Header,
        Health,
        Link,
        Mark,
        Notice,
        PhaseEnded,
        RunFinished,
        TrialEnded,
        TrialStarted,
    )
    from costmodel.recording.follower import Follower, read_events
    from costmodel.recording.published import PROVENANCE, Published, PublishedFigure, PublishedStart, read_published
    from costmodel.recording.reader import Recording, load, load_all, read_recording, read_recordings
    from costmodel.recording.runner_health import (
        DISTURBED_SHARE,
        FLOOR_LIMIT_NS,
        WorkerFitness,
    )
    from costmodel.recording.table import TableRow, frame, table_columns, table_rows
    from costmodel.recording.trial import NOT_RECORDED, PER_ACTION, PER_TRIAL, CellIdentity, RecordedTrial
    from costmodel.recording.validation import Causality, InCourse, check_scenario
    from costmodel.regular_file import open_regular, read_regular, too_large
    from costmodel.simulation.makespan import expected_max, makespan_bounds
    from costmodel.statistics import repetitions
    from costmodel.statistics.intervals import (
        Between,
        Interval,
        mean_interval,
        quantile,
        wilson_interval,
    )
    from costmodel.statistics.quantiles import Percentile, percentile, percentile_with_runs, worth_by_value
    from costmodel.statistics.repetitions import Assumed, Basis, Estimate, Origin, RunKey
    from costmodel.statistics.verdict import CANNOT_TELL, DIFFERS, POWER, TIE, Finding
    from costmodel.training.images import Images
    from costmodel.training.length import FIXED_LENGTH, RECORDED_LENGTH, Length
    from costmodel.training.run import (
        ACTIONS,
        ON_FAILURE,
        PLACEMENTS,
        POLICIES,
        Precision,
        Think,
        TrainingRun,
        poisoned_groups,
    )
    from costmodel.units import MAX_INT, NS_PER_HOUR, NS_PER_S
    from costmodel.workload import characterization
    from costmodel.workload.pool import Exposure, Pool, pools
    from costmodel.workload.rescaling import Alternatives, Assumption, LevelLaw

_PUBLIC: Final[dict[str, str]] = {
    # analysis: questions about rows: ranking, comparison, decision, thresholds, concurrency sweep
    "analysis.baseline": "WORK_FIELDS judge_rows matches_spec",
    "analysis.bill": "Bill Side USD",
    "analysis.compared_metrics": "ComparedSide DEFAULT_METRICS FAILURE_RATE METRIC_LIMIT Metric parse_metric",
    "analysis.comparison": "COMPARISON_VERDICTS Comparison Comparisons INCONCLUSIVE WORSE compare",
    "analysis.decision": "Decision MOVE STAY UNMEASURED_PROVENANCES decide_between",
    "analysis.project": "CellFilter SubstrateRun behind project project_per_substrate rows_of",
    "analysis.questions": "attribute decide sides",
    "analysis.ranking": ("Answer EXEC Entry HELD_PER_SUCCESS ModeRatio Place SESSION WORKER_HOURS WorkLine answer_of"),
    "analysis.thresholds": "InputEffect input_effects",
    "analysis.what_if": "Saving what_if",
    # attribution: the same run without each cause of sandbox time
    "attribution.assumptions": "MEASURED_INPUT STEP_MODEL_RULES",
    # providers: substrates that were not measured: published start-up times, limits and prices
    "providers.limits": "Profile known_profiles load_profile",
    "providers.provider": "Provider known_providers load_provider published_figures",
    # projection: a row: worker-hours, wall-clock, money and warnings
    "projection.row": "Attribution ByCause CAUSES CAUSE_NAMES Evidence GpuWaiting Row Share",
    "projection.tax_bounds": "Reference check_reference_used",
    # simulation: makespans of attempts on workers
    "simulation.makespan": "expected_max makespan_bounds",
    # workload: the trials of a cell as attempts of the asked length and concurrency
    "workload.pool": "Exposure Pool pools",
    "workload.rescaling": "Alternatives Assumption LevelLaw",
    # pricing: price sheets: what one sandbox costs
    "pricing.instance_sizes": "sold_size",
    "pricing.sheet": "Prices SHIPPED_PRICES SandboxPrice load_prices priced_cell",
    # recording: from the bytes of a file to trials
    "recording.causes": (
        "CAUSE_OF CAUSE_POLICIES DROPPED HARNESS KEPT PROVIDER RETRIED SANDBOX VERIFIER cause_of policy_of"
    ),
    "recording.events": (
        "Actions Cell Clock Event Header Health Link Mark Notice PhaseEnded RunFinished TrialEnded TrialStarted"
    ),
    "recording.follower": "Follower read_events",
    "recording.published": "PROVENANCE Published PublishedFigure PublishedStart read_published",
    "recording.reader": "Recording load load_all read_recording read_recordings",
    "recording.runner_health": "DISTURBED_SHARE FLOOR_LIMIT_NS WorkerFitness",
    "recording.table": "TableRow frame table_columns table_rows",
    "recording.trial": "CellIdentity NOT_RECORDED PER_ACTION PER_TRIAL RecordedTrial",
    "recording.validation": "Causality InCourse check_scenario",
    # training: the training run to project
    "training.images": "Images",
    "training.length": "FIXED_LENGTH Length RECORDED_LENGTH",
    "training.run": "ACTIONS ON_FAILURE PLACEMENTS POLICIES Precision Think TrainingRun poisoned_groups",
    # statistics: intervals, percentiles and verdicts, without a word of the domain
    "statistics.intervals": "Between Interval mean_interval quantile wilson_interval",
    "statistics.quantiles": "Percentile percentile percentile_with_runs worth_by_value",
    "statistics.repetitions": "Assumed Basis Estimate Origin RunKey",
    "statistics.verdict": "CANNOT_TELL DIFFERS POWER Finding TIE",
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
