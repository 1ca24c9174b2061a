"""Warnings of a row: keys, words in the order of importance, and the recommended actions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

MEASURED: Final = "measured"
"""No warning: the provenance of taxtui's own measurements at the provider."""

NO_SUCCESS: Final = "no_success"
PUBLISHED: Final = "published"
COMPOSED: Final = "composed"
STAND_IN: Final = "stand_in"
IMPORTED: Final = "imported"
LENGTH_UNKNOWN: Final = "length_unknown"
DISPATCH_BORROWED: Final = "dispatch_borrowed"
SPEED_ASSUMED: Final = "speed_assumed"
OPTION_UNUSED: Final = "option_unused"
FIRST_CYCLE: Final = "first_cycle_only"
BEYOND_LENGTH: Final = "beyond_measured_length"
BEYOND_CONCURRENCY: Final = "beyond_measured_concurrency"
TAIL: Final = "tail_unsupported"
FEW_TRIALS: Final = "few_trials"
FEW_RUNS: Final = "few_runs"
NO_FAILURES: Final = "no_failures_seen"
LOCKSTEP: Final = "lockstep"
DISTORTED: Final = "runner_distorted"
DISTURBED: Final = "disturbed"
CREATE_UNTOLD: Final = "create_untold"
HELD_UNTOLD: Final = "held_untold"
THINK_UNTOLD: Final = "think_untold"
ACTIONS_UNTOLD: Final = "actions_untold"
INCOMPLETE: Final = "incomplete_recording"
RUN_UNKNOWN: Final = "run_time_unknown"
CONTENTION_UNKNOWN: Final = "contention_unknown"
ENVIRONMENT: Final = "environment_differs"
PROVENANCE: Final = "provenance_differs"
STALE_PRICES: Final = "stale_prices"
PRICES_DISPUTED: Final = "prices_disputed"
CPU_UNKNOWN: Final = "cpu_time_unknown"
IDLE_UNKNOWN: Final = "idle_time_unknown"
EGRESS_LEFT_OUT: Final = "egress_left_out"
POOL_LEFT_OUT: Final = "pool_left_out"
BILLED_MEAN: Final = "billed_at_mean"

TAIL_TRIALS: Final = 299
"""With fewer successes, an event of 1 % is absent from more than 5 % of all recordings: 0.99^299 = 0.0495."""
FEW: Final = 30

WORDS: Final = {
    NO_SUCCESS: "no trial succeeded",
    PUBLISHED: "published figure: no interval, never ranked with measured rows",
    COMPOSED: "measured commands with published figures of this provider: never ranked with measured rows",
    STAND_IN: "measured against an emulator: the latencies are not the provider's",
    LENGTH_UNKNOWN: "published for another number of actions only",
    IMPORTED: "from the logs of other tools, at the resolution of their clocks: never ranked with measured rows",
    PROVENANCE: "not compared with the baseline: only one of the two is measured",
    HELD_UNTOLD: "the source has only parts of the occupied time",
    CREATE_UNTOLD: "the source has no start-up times: occupied time lacks start-up",
    DISPATCH_BORROWED: "dispatch was not measured at this provider: taken from the recording",
    OPTION_UNUSED: "an option needs data missing in this row, and changes nothing here",
    THINK_UNTOLD: "the source has no model time: model time is part of the commands, or missing",
    ACTIONS_UNTOLD: "the source does not separate commands from model time",
    SPEED_ASSUMED: "speed was not measured at this provider: assumed equal to the recording's",
    DISTURBED: "the runner was late or busy most of the time: durations are too long by an unknown amount, not ranked",
    DISTORTED: "trials during busy seconds of the runner differ by more than the interval of this row",
    BEYOND_CONCURRENCY: "more sandboxes at a time than were measured: contention may slow them down",
    ENVIRONMENT: "compared with a row from another machine, region or kernel",
    INCOMPLETE: "the recording ends early, or is partly unreadable",
    RUN_UNKNOWN: "in-sandbox time is missing for some commands, so the tax is unknown",
    CONTENTION_UNKNOWN: "contention is unknown and part of command time: the same cell at concurrency 1 is missing",
    TAIL: "too few successes to have seen rare slow ones (a 1 % event is absent from 37 % of 100-trial recordings)",
    CPU_UNKNOWN: "billed by CPU time, and CPU time is unknown: the money is from none to all vCPUs busy",
    IDLE_UNKNOWN: "idle time is free, and its beginning is unknown: the money is from all model time free to none",
    PRICES_DISPUTED: "sources of the price disagree: the money is a range",
    FIRST_CYCLE: "extrapolated from a single cycle: the interval allows later cycles 0.7 to 1.05 of its cost",
    POOL_LEFT_OUT: "sandboxes came from a warm pool: the cost of its idle sandboxes is not in the bill",
    STALE_PRICES: "the price is older than a year",
    FEW_TRIALS: f"fewer than {FEW} successes: the interval is rough",
    EGRESS_LEFT_OUT: "egress is billed too, and not in the bill: no recording has egress",
    BILLED_MEAN: "billed as if every trajectory took the mean, because only the mean was published",
    NO_FAILURES: "no failure seen, so none is projected: with K trials up to 3/K may still fail",
    FEW_RUNS: "one or two repetitions: the variation between repetitions is assumed, not measured",
    BEYOND_LENGTH: "longer than recorded: each trial continues with its later cycles",
    LOCKSTEP: "workers move in waves: the wall-clock is simulated, or the middle of its bounds",
}
"""Warning → words, by possible effect, the largest first."""

UNTOLD: Final = {"create": CREATE_UNTOLD, "held": HELD_UNTOLD, "think": THINK_UNTOLD, "actions": ACTIONS_UNTOLD}
"""Quantity that an import may lack → the warning about it."""

DO: Final = {
    NO_SUCCESS: "see the failures: taxtui report",
    PUBLISHED: "compare with published rows only, or measure",
    COMPOSED: "measure the provider",
    STAND_IN: "measure the provider itself",
    LENGTH_UNKNOWN: "ask for the published length",
    DISPATCH_BORROWED: "--compose NAME:dispatch=100ms..300ms",
    SPEED_ASSUMED: "--compose NAME:slowdown=1..1.5",
    OPTION_UNUSED: "leave out the option, or the row",
    FIRST_CYCLE: "record 50 actions or more",
    BEYOND_LENGTH: "record the length",
    BEYOND_CONCURRENCY: "record with --concurrency as high as it goes",
    TAIL: "record more trials",
    FEW_TRIALS: "record more trials",
    FEW_RUNS: "taxtui run --repeat 3, or record again on other days and give all files",
    NO_FAILURES: "plan for retries",
    LOCKSTEP: "see the bounds with --explain",
    DISTORTED: "record on an idle machine; compare with the clean trials in taxtui report",
    DISTURBED: "measure again on an idle machine",
    INCOMPLETE: "taxtui recordings verify",
    IMPORTED: "compare with other imports",
    CREATE_UNTOLD: "map the spans or columns of start-up",
    HELD_UNTOLD: "read durations of actions only",
    THINK_UNTOLD: "give --think",
    ACTIONS_UNTOLD: "read start-up and occupied time only",
    RUN_UNKNOWN: "use an image with bash, without --set bracket=false",
    CONTENTION_UNKNOWN: "record --concurrency 1 too",
    ENVIRONMENT: "measure both on one machine",
    PROVENANCE: "do not subtract",
    STALE_PRICES: "look up the prices",
    PRICES_DISPUTED: "ask the provider, and write a sheet of your own",
    CPU_UNKNOWN: "use an image with bash, without --set bracket=false",
    IDLE_UNKNOWN: "look at a bill",
    EGRESS_LEFT_OUT: "look at a bill",
    POOL_LEFT_OUT: "set warm_pool in the training file",
    BILLED_MEAN: "measure the provider",
}

_PLACE: Final = {flag: place for place, flag in enumerate(WORDS)}


def ordered(flags: Iterable[str]) -> tuple[str, ...]:
    """Return warnings by possible effect, the largest first; others are last, in their order."""
    return tuple(sorted(dict.fromkeys(flags), key=lambda flag: _PLACE.get(flag, len(_PLACE))))


MOST: Final = 2
"""Number of warnings printed beside a row; exports and ``--explain`` contain all."""


def shared(rows: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return the warnings common to all of several rows, in the order of the first row; none of a single row."""
    first, *more = rows
    return tuple(flag for flag in first if more and all(flag in row_flags for row_flags in more))


def marks(flags: Sequence[str], of_all: Sequence[str]) -> tuple[str, ...]:
    """Return a row's most important warnings, without those common to all rows."""
    return tuple(flag for flag in flags if flag not in of_all)[:MOST]
