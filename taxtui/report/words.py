"""Names of causes and verdicts, and words about warnings, in all tables, screens and pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from costmodel import CANNOT_TELL, TIE, warnings

CAUSES: Final[Mapping[str, str]] = {
    "startup": "startup",
    "create": "create",
    "ready": "ready",
    "image_pull": "image pulls",
    "preload": "preload",
    "dispatch": "dispatch",
    "wrapper": "wrapper time",
    "unsplit": "undivided",
    "slowdown": "slower commands",
    "contention": "contention",
    "work": "command time",
    "think": "model time",
    "queued": "throttled",
    "throttle": "throttled",
    "harness": "runner gap",
    "failed": "failures",
    "failures": "failures",
    "cleanup": "cleanup",
}
"""Field of a row or of a trial → name of the cause, in the order in which bars are drawn."""

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

WORDS: Final[Mapping[str, str]] = {
    warnings.NO_SUCCESS: "no trial succeeded",
    warnings.PUBLISHED: "published figure: no interval, never ranked with measured rows",
    warnings.COMPOSED: "measured commands with published figures of this provider: never ranked with measured rows",
    warnings.STAND_IN: "measured against an emulator: the latencies are not the provider's",
    warnings.LENGTH_UNKNOWN: "published for another number of actions only",
    warnings.IMPORTED: (
        "from the logs of other tools, at the resolution of their clocks: never ranked with measured rows"
    ),
    warnings.PROVENANCE: "not compared with the baseline: only one of the two is measured",
    warnings.HELD_UNTOLD: "the source has only parts of the occupied time",
    warnings.CREATE_UNTOLD: "the source has no start-up times: occupied time lacks start-up",
    warnings.DISPATCH_BORROWED: "dispatch was not measured at this provider: taken from the recording",
    warnings.OPTION_UNUSED: "an option needs data missing in this row, and changes nothing here",
    warnings.THINK_UNTOLD: "the source has no model time: model time is part of the commands, or missing",
    warnings.ACTIONS_UNTOLD: "the source does not separate commands from model time",
    warnings.SPEED_ASSUMED: "speed was not measured at this provider: assumed equal to the recording's",
    warnings.DISTURBED: (
        "the runner was late or busy most of the time: durations are too long by an unknown amount, not ranked"
    ),
    warnings.DISTORTED: "trials during busy seconds of the runner differ by more than the interval of this row",
    warnings.BEYOND_CONCURRENCY: "more sandboxes at a time than were measured: contention may slow them down",
    warnings.ENVIRONMENT: "compared with a row from another machine, region or kernel",
    warnings.INCOMPLETE: "the recording ends early, or is partly unreadable",
    warnings.RUN_UNKNOWN: "in-sandbox time is missing for some commands, so the tax is unknown",
    warnings.CONTENTION_UNKNOWN: (
        "contention is unknown and part of command time: the same cell at concurrency 1 is missing"
    ),
    warnings.TAIL: (
        "too few successes to have seen rare slow ones (a 1 % event is absent from 37 % of 100-trial recordings)"
    ),
    warnings.CPU_UNKNOWN: "billed by CPU time, and CPU time is unknown: the money is from none to all vCPUs busy",
    warnings.IDLE_UNKNOWN: (
        "idle time is free, and its beginning is unknown: the money is from all model time free to none"
    ),
    warnings.PRICES_DISPUTED: "sources of the price disagree: the money is a range",
    warnings.FIRST_CYCLE: "extrapolated from a single cycle: the interval allows later cycles 0.7 to 1.05 of its cost",
    warnings.POOL_LEFT_OUT: "sandboxes came from a warm pool: the cost of its idle sandboxes is not in the bill",
    warnings.STALE_PRICES: "the price is older than a year",
    warnings.FEW_TRIALS: f"fewer than {warnings.FEW} successes: the interval is rough",
    warnings.EGRESS_LEFT_OUT: "egress is billed too, and not in the bill: no recording has egress",
    warnings.BILLED_MEAN: "billed as if every trajectory took the mean, because only the mean was published",
    warnings.NO_FAILURES: "no failure seen, so none is projected: with K trials up to 3/K may still fail",
    warnings.FEW_RUNS: "one or two repetitions: the variation between repetitions is assumed, not measured",
    warnings.BEYOND_LENGTH: "longer than recorded: each trial continues with its later cycles, and fails no more often",
    warnings.LOCKSTEP: "workers move in waves: the wall-clock is simulated, or the middle of its bounds",
}
"""Warning → words."""

DO: Final[Mapping[str, str]] = {
    warnings.NO_SUCCESS: "see the failures: taxtui report",
    warnings.PUBLISHED: "compare with published rows only, or measure",
    warnings.COMPOSED: "measure the provider",
    warnings.STAND_IN: "measure the provider itself",
    warnings.LENGTH_UNKNOWN: "ask for the published length",
    warnings.DISPATCH_BORROWED: "--compose NAME:dispatch=100ms..300ms",
    warnings.SPEED_ASSUMED: "--compose NAME:slowdown=1..1.5",
    warnings.OPTION_UNUSED: "leave out the option, or the row",
    warnings.FIRST_CYCLE: "record 50 actions or more",
    warnings.BEYOND_LENGTH: "record the length",
    warnings.BEYOND_CONCURRENCY: "record with --concurrency as high as it goes",
    warnings.TAIL: "record more trials",
    warnings.FEW_TRIALS: "record more trials",
    warnings.FEW_RUNS: "taxtui run --repeat 3, or record again on other days and give all files",
    warnings.NO_FAILURES: "plan for retries",
    warnings.LOCKSTEP: "see the bounds with --explain",
    warnings.DISTORTED: "record on an idle machine; compare with the clean trials in taxtui report",
    warnings.DISTURBED: "measure again on an idle machine",
    warnings.INCOMPLETE: "taxtui recordings verify",
    warnings.IMPORTED: "compare with other imports",
    warnings.CREATE_UNTOLD: "map the spans or columns of start-up",
    warnings.HELD_UNTOLD: "read durations of actions only",
    warnings.THINK_UNTOLD: "give --think",
    warnings.ACTIONS_UNTOLD: "read start-up and occupied time only",
    warnings.RUN_UNKNOWN: "use an image with bash, without --set bracket=false",
    warnings.CONTENTION_UNKNOWN: "record --concurrency 1 too",
    warnings.ENVIRONMENT: "measure both on one machine",
    warnings.PROVENANCE: "do not subtract",
    warnings.STALE_PRICES: "look up the prices",
    warnings.PRICES_DISPUTED: "ask the provider, and write a sheet of your own",
    warnings.CPU_UNKNOWN: "use an image with bash, without --set bracket=false",
    warnings.IDLE_UNKNOWN: "look at a bill",
    warnings.EGRESS_LEFT_OUT: "look at a bill",
    warnings.POOL_LEFT_OUT: "set warm_pool in the training file",
    warnings.BILLED_MEAN: "measure the provider",
}
"""Warning → advice."""
