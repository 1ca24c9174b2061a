"""Reasons to doubt a row: short keys, the words that explain them, what to do, and how far each could move the row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

MEASURED: Final = "measured"
"""No flag: the provenance of what this program measured at the provider itself."""

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
    NO_SUCCESS: "not one trial succeeded, so there is nothing to project",
    PUBLISHED: "printed by somebody, not measured by this program: no interval, never ranked with measured rows",
    COMPOSED: "work that was recorded elsewhere, with what was published of this provider at the dates given: never "
    "ranked with measured rows",
    STAND_IN: "measured against a local stand-in of the service: its latencies are not the provider's",
    IMPORTED: "from the logs of other tools, at the resolution of their clocks: never ranked with measured rows",
    LENGTH_UNKNOWN: "published for another number of actions only",
    DISPATCH_BORROWED: "nobody published how long this provider takes to get a command in and out: it is that of the "
    "recording",
    SPEED_ASSUMED: "nobody published how fast this provider works: as fast as where the work was recorded",
    OPTION_UNUSED: "an option needs what this row's source does not tell, and changes nothing here",
    FIRST_CYCLE: "prolonged from one cycle of actions, which is the dearest one: the interval allows later ones 0.7 to "
    "1.05 of its cost",
    BEYOND_LENGTH: "more actions than were recorded: each trial goes on as in its later cycles",
    BEYOND_CONCURRENCY: "more sandboxes at a time than were measured: contention may slow them down",
    TAIL: "too few successes to have seen rare slow ones (a 1 % event is absent from 37 % of 100-trial recordings)",
    FEW_TRIALS: f"fewer than {FEW} successes: the interval is rough",
    FEW_RUNS: "one or two runs only: how much runs differ from each other is assumed, not measured",
    NO_FAILURES: "no failure was seen, so none is projected; with K trials up to 3/K may still fail",
    LOCKSTEP: "workers move in waves, so the makespan has no closed form here: simulated, or the middle of its bounds",
    DISTORTED: "trials in seconds in which the measuring process was late or busy differ from the others by more than "
    "this row resolves",
    DISTURBED: "the measuring process was late or busy for most of the time of most trials, or its machine was slow to "
    "start any process: durations are too long, by an unknown amount, and the row is not ranked",
    INCOMPLETE: "the recording ends early, or parts of it were not understood",
    CREATE_UNTOLD: "the source does not tell how long sandboxes took to come: that is missing from what was held",
    HELD_UNTOLD: "the source tells only parts of what workers were held for",
    THINK_UNTOLD: "the source does not tell the model's time: it is part of the commands, or missing",
    ACTIONS_UNTOLD: "the source does not tell where commands begin and end: what they and the model took is one piece",
    RUN_UNKNOWN: "time inside the sandbox was not measured for every command, so the tax is unknown",
    CONTENTION_UNKNOWN: "sandboxes ran side by side, and the same cell alone, with CPU times, is not here: what they "
    "waited for each other is in work, not in the tax",
    ENVIRONMENT: "compared with a row from another machine, region or kernel",
    PROVENANCE: "not compared with the baseline: one is measured and the other is not",
    STALE_PRICES: "the price is more than a year old",
    PRICES_DISPUTED: "the sources of the price disagree: the money is from the least that they say to the most",
    CPU_UNKNOWN: "billed by CPU time, which is not known: the money is from none to all vCPUs busy in every command",
    IDLE_UNKNOWN: "not billed while nobody talks to the sandbox, and when that begins is not known: the money is from "
    "all think time free to none",
    EGRESS_LEFT_OUT: "what leaves the sandbox is paid for too, and no recording tells how much: it is not in the bill",
    POOL_LEFT_OUT: "sandboxes were taken from a pool, and what its others cost while they wait is not in the bill",
    BILLED_MEAN: "billed as if every trajectory took the mean, because only the mean was published",
}

UNTOLD: Final = {"create": CREATE_UNTOLD, "held": HELD_UNTOLD, "think": THINK_UNTOLD, "actions": ACTIONS_UNTOLD}
"""By what a source of imported trials may not tell, where that changes what a row means."""

DO: Final = {
    NO_SUCCESS: "see how they failed: taxtui report",
    PUBLISHED: "compare published with published, or measure it",
    COMPOSED: "measure it there",
    STAND_IN: "measure the provider itself",
    LENGTH_UNKNOWN: "ask for the published length",
    DISPATCH_BORROWED: "--compose NAME:dispatch=RECORDING or =100ms..300ms",
    SPEED_ASSUMED: "--compose NAME:slowdown=1..1.5",
    OPTION_UNUSED: "leave it out, or the row",
    FIRST_CYCLE: "record 50 actions or more",
    BEYOND_LENGTH: "record that length",
    BEYOND_CONCURRENCY: "record with --concurrency as high as it goes",
    TAIL: "record more trials",
    FEW_TRIALS: "record more trials",
    FEW_RUNS: "taxtui run --repeat 3, or record again on other days and give all files",
    NO_FAILURES: "plan for retries",
    LOCKSTEP: "see the bounds with --explain",
    DISTORTED: "record on an idle machine; compare with the clean trials in taxtui report",
    DISTURBED: "measure again on an idle machine",
    INCOMPLETE: "taxtui recordings verify",
    IMPORTED: "compare it with other imports",
    CREATE_UNTOLD: "map the spans or columns that hold it",
    HELD_UNTOLD: "read the durations of actions alone",
    THINK_UNTOLD: "give --think, or a source that tells it",
    ACTIONS_UNTOLD: "read start-up and held alone",
    RUN_UNKNOWN: "leave --set bracket=false out; an image with bash",
    CONTENTION_UNKNOWN: "record --concurrency 1 beside it",
    ENVIRONMENT: "measure both on one machine",
    PROVENANCE: "do not subtract them",
    STALE_PRICES: "look the prices up anew",
    PRICES_DISPUTED: "ask the provider, and write a sheet of your own",
    CPU_UNKNOWN: "leave --set bracket=false out; an image with bash",
    IDLE_UNKNOWN: "look at a bill",
    EGRESS_LEFT_OUT: "look at a bill",
    POOL_LEFT_OUT: "--warm-pool SIZE --refill TIME puts one into the question",
    BILLED_MEAN: "measure it",
}

SIZE: Final = {
    NO_SUCCESS: math.inf,
    PUBLISHED: 8.0,
    COMPOSED: 7.5,
    STAND_IN: 7.0,
    LENGTH_UNKNOWN: 6.0,
    IMPORTED: 5.5,
    PROVENANCE: 5.0,
    HELD_UNTOLD: 4.0,
    CREATE_UNTOLD: 3.0,
    DISPATCH_BORROWED: 2.5,
    OPTION_UNUSED: 2.2,
    THINK_UNTOLD: 2.0,
    ACTIONS_UNTOLD: 1.5,
    SPEED_ASSUMED: 1.2,
    DISTURBED: 1.1,
    BEYOND_CONCURRENCY: 1.0,
    ENVIRONMENT: 0.5,
    INCOMPLETE: 0.4,
    RUN_UNKNOWN: 0.35,
    CONTENTION_UNKNOWN: 0.3,
    TAIL: 0.29,
    FIRST_CYCLE: 0.25,
    CPU_UNKNOWN: 0.28,
    IDLE_UNKNOWN: 0.27,
    PRICES_DISPUTED: 0.26,
    POOL_LEFT_OUT: 0.24,
    STALE_PRICES: 0.2,
    EGRESS_LEFT_OUT: 0.12,
    FEW_TRIALS: 0.15,
    BILLED_MEAN: 0.1,
    FEW_RUNS: 0.07,
    DISTORTED: 0.05,
    NO_FAILURES: 0.03,
    BEYOND_LENGTH: 0.03,
    LOCKSTEP: 0.02,
}
"""By what share of itself a flag could move a row's number, where the row does not say: the stress row's 29 %, 7 %
between runs of the same day (two that ship), twice as long on a shared core. What cannot be told is put by its rank."""


def ordered(sizes: Mapping[str, float | None]) -> tuple[str, ...]:
    """Flags by what they could move the row by, as given or else as usual, the largest first."""
    return tuple(sorted(sizes, key=lambda flag: -(SIZE.get(flag, 0.0) if sizes[flag] is None else sizes[flag] or 0.0)))


def including(flags: Sequence[str], flag: str) -> tuple[str, ...]:
    """With one more, before the first that usually moves a row less."""
    place = next((i for i, other in enumerate(flags) if SIZE.get(other, 0.0) < SIZE.get(flag, 0.0)), len(flags))
    return (*flags[:place], flag, *flags[place:])


MOST: Final = 2
"""Flags that a row is marked with; all of them are in the exports and in ``--explain``."""


def shared(rows: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """What all of several rows are flagged with, in the order of the first; nothing of one row alone."""
    first, *others = rows
    return tuple(flag for flag in first if others and all(flag in other for other in others))


def marks(flags: Sequence[str], of_all: Sequence[str]) -> tuple[str, ...]:
    """A row's own flags that could move it most, without those that all rows share."""
    return tuple(flag for flag in flags if flag not in of_all)[:MOST]
