"""Reasons to doubt a row: short keys, and the words that explain them."""

from __future__ import annotations

from typing import Final

NO_SUCCESS: Final = "no_success"
PUBLISHED: Final = "published"
STAND_IN: Final = "stand_in"
IMPORTED: Final = "imported"
LENGTH_UNKNOWN: Final = "length_unknown"
BEYOND_LENGTH: Final = "beyond_measured_length"
BEYOND_CONCURRENCY: Final = "beyond_measured_concurrency"
TAIL: Final = "tail_unsupported"
FEW_TRIALS: Final = "few_trials"
SINGLE_RUN: Final = "single_run"
NO_FAILURES: Final = "no_failures_seen"
LOCKSTEP: Final = "lockstep"
DISTORTED: Final = "runner_distorted"
CREATE_UNTOLD: Final = "create_untold"
HELD_UNTOLD: Final = "held_untold"
THINK_UNTOLD: Final = "think_untold"
ACTIONS_UNTOLD: Final = "actions_untold"
INCOMPLETE: Final = "incomplete_recording"
RUN_UNKNOWN: Final = "run_time_unknown"
ENVIRONMENT: Final = "environment_differs"
PROVENANCE: Final = "provenance_differs"
STALE_PRICES: Final = "stale_prices"
BILLED_MEAN: Final = "billed_at_mean"

TAIL_TRIALS: Final = 299
"""With fewer successes, an event of 1 % is absent from more than 5 % of all recordings: 0.99^299 = 0.0495."""
FEW: Final = 30

WORDS: Final = {
    NO_SUCCESS: "not one trial succeeded, so there is nothing to project",
    PUBLISHED: "printed by somebody, not measured by this program: no interval, never ranked with measured rows",
    STAND_IN: "measured against a local stand-in of the service: its latencies are not the provider's",
    IMPORTED: "from the logs of other tools, at the resolution of their clocks: never ranked with measured rows",
    LENGTH_UNKNOWN: "published for another number of actions only",
    BEYOND_LENGTH: "more actions than were recorded: the last whole cycle of each trial is repeated",
    BEYOND_CONCURRENCY: "more sandboxes at a time than were measured: contention may slow them down",
    TAIL: "too few successes to have seen rare slow ones (a 1 % event is absent from 37 % of 100-trial recordings); "
    "see the stress row, where 1 % take 30 times as long",
    FEW_TRIALS: f"fewer than {FEW} successes: the interval is rough",
    SINGLE_RUN: "one run only: how much runs differ from each other is not in the interval",
    NO_FAILURES: "no failure was seen, so none is projected; with K trials up to 3/K may still fail",
    LOCKSTEP: "workers move in waves, so the makespan has no closed form here: simulated, or the middle of its bounds",
    DISTORTED: "the measuring process was too busy (loop lag above 5 ms or CPU above 80 %): latencies may be its own",
    INCOMPLETE: "the recording ends early, or parts of it were not understood",
    CREATE_UNTOLD: "the source does not tell how long sandboxes took to come: that is missing from what was held",
    HELD_UNTOLD: "the source tells only parts of what workers were held for",
    THINK_UNTOLD: "the source does not tell the model's time: it is part of the commands, or missing",
    ACTIONS_UNTOLD: "the source does not tell where commands begin and end: what they and the model took is one piece",
    RUN_UNKNOWN: "time inside the sandbox was not measured for every command, so the tax is unknown",
    ENVIRONMENT: "compared with a row from another machine, region or kernel",
    PROVENANCE: "not compared with the baseline: one is measured and the other is not",
    STALE_PRICES: "the price sheet is more than a year old",
    BILLED_MEAN: "billed as if every trajectory took the mean, because only the mean was published",
}

UNTOLD: Final = {"create": CREATE_UNTOLD, "held": HELD_UNTOLD, "think": THINK_UNTOLD, "actions": ACTIONS_UNTOLD}
"""By what a source of imported trials may not tell, where that changes what a row means."""
