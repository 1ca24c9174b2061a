"""Names of causes, verdicts and families of warnings in all tables, screens and pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from costmodel import CANNOT_TELL, CAUSE_NAMES, TIE, warnings

CAUSES: Final = CAUSE_NAMES
"""Field of a row or of a trial → name of the cause."""

TAXES: Final = ("startup", "dispatch", "contention", "harness", "queued", "failed")
"""Causes of the tax: all of the occupied time except command time, wrapper time and model time."""

NO_DIFFERENCE: Final = "no difference"
INCONCLUSIVE: Final = "inconclusive"
UNDECIDED: Final = {TIE: NO_DIFFERENCE, CANNOT_TELL: INCONCLUSIVE}
"""Verdict of a ratio to the cheapest substrate, where the ratio is not clearly above 1."""


LITTLE_DATA: Final = "little data"
BEYOND: Final = "beyond what was measured"
NOT_MEASURED: Final = "not measured here"
PRICES: Final = "prices uncertain"
IMPORTED: Final = "imported data incomplete"
OVERLOADED: Final = "runner overloaded"
ENVIRONMENTS: Final = "environments differ"
NO_SUCCESS: Final = "no success"

FAMILIES: Final[Mapping[str, str]] = {
    NO_SUCCESS: "no trial succeeded, so there is no duration",
    NOT_MEASURED: "published, emulated, imported or estimated figures, never ranked with measured rows",
    OVERLOADED: "the runner was late or busy, so durations are too long by an unknown amount",
    IMPORTED: "the recording lacks a part of the time, so a cause or the tax is unknown",
    BEYOND: "longer or more concurrent than the trials were",
    ENVIRONMENTS: "compared rows differ in machine, image, arrival, think time or acquisition",
    PRICES: "the dollars are less certain than their interval",
    LITTLE_DATA: "intervals are rough, and rare slow trials or failures may be missing",
}
"""Family of warnings → meaning of all its warnings."""

FAMILY: Final[Mapping[str, str]] = {
    warnings.NO_SUCCESS: NO_SUCCESS,
    warnings.PUBLISHED: NOT_MEASURED,
    warnings.COMPOSED: NOT_MEASURED,
    warnings.STAND_IN: NOT_MEASURED,
    warnings.IMPORTED: NOT_MEASURED,
    warnings.DISPATCH_BORROWED: NOT_MEASURED,
    warnings.SPEED_ASSUMED: NOT_MEASURED,
    warnings.LENGTH_UNKNOWN: BEYOND,
    warnings.FIRST_CYCLE: BEYOND,
    warnings.BEYOND_LENGTH: BEYOND,
    warnings.BEYOND_CONCURRENCY: BEYOND,
    warnings.LOCKSTEP: BEYOND,
    warnings.CONTENTION_UNKNOWN: BEYOND,
    warnings.TAIL: LITTLE_DATA,
    warnings.FEW_TRIALS: LITTLE_DATA,
    warnings.FEW_RUNS: LITTLE_DATA,
    warnings.NO_FAILURES: LITTLE_DATA,
    warnings.DISTORTED: OVERLOADED,
    warnings.DISTURBED: OVERLOADED,
    warnings.OPTION_UNUSED: IMPORTED,
    warnings.CREATE_UNTOLD: IMPORTED,
    warnings.HELD_UNTOLD: IMPORTED,
    warnings.THINK_UNTOLD: IMPORTED,
    warnings.ACTIONS_UNTOLD: IMPORTED,
    warnings.INCOMPLETE: LITTLE_DATA,
    warnings.RUN_UNKNOWN: IMPORTED,
    warnings.ENVIRONMENT: ENVIRONMENTS,
    warnings.PROVENANCE: ENVIRONMENTS,
    "preload_in_trial": ENVIRONMENTS,
    "arrival": ENVIRONMENTS,
    "think": ENVIRONMENTS,
    "acquire": ENVIRONMENTS,
    warnings.STALE_PRICES: PRICES,
    warnings.PRICES_DISPUTED: PRICES,
    warnings.CPU_UNKNOWN: PRICES,
    warnings.IDLE_UNKNOWN: PRICES,
    warnings.EGRESS_LEFT_OUT: PRICES,
    warnings.POOL_LEFT_OUT: PRICES,
    warnings.BILLED_MEAN: PRICES,
}
"""Key of a warning → family."""
