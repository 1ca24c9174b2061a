"""Warnings of a row: a key for each, in the order of their possible effect, the largest first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

# The order is the rank, so that nothing but warnings may stand above ``_PLACE``.
NO_SUCCESS: Final = "no_success"
PUBLISHED: Final = "published"
COMPOSED: Final = "composed"
STAND_IN: Final = "stand_in"
LENGTH_UNKNOWN: Final = "length_unknown"
IMPORTED: Final = "imported"
PROVENANCE: Final = "provenance_differs"
HELD_UNTOLD: Final = "held_untold"
CREATE_UNTOLD: Final = "create_untold"
DISPATCH_BORROWED: Final = "dispatch_borrowed"
OPTION_UNUSED: Final = "option_unused"
THINK_UNTOLD: Final = "think_untold"
ACTIONS_UNTOLD: Final = "actions_untold"
SPEED_ASSUMED: Final = "speed_assumed"
DISTURBED: Final = "disturbed"
DISTORTED: Final = "runner_distorted"
BEYOND_CONCURRENCY: Final = "beyond_measured_concurrency"
ENVIRONMENT: Final = "environment_differs"
INCOMPLETE: Final = "incomplete_recording"
RUN_UNKNOWN: Final = "run_time_unknown"
CONTENTION_UNKNOWN: Final = "contention_unknown"
TAIL: Final = "tail_unsupported"
CPU_UNKNOWN: Final = "cpu_time_unknown"
IDLE_UNKNOWN: Final = "idle_time_unknown"
PRICES_DISPUTED: Final = "prices_disputed"
FIRST_CYCLE: Final = "first_cycle_only"
POOL_LEFT_OUT: Final = "pool_left_out"
STALE_PRICES: Final = "stale_prices"
FEW_TRIALS: Final = "few_trials"
EGRESS_LEFT_OUT: Final = "egress_left_out"
BILLED_MEAN: Final = "billed_at_mean"
NO_FAILURES: Final = "no_failures_seen"
FEW_RUNS: Final = "few_runs"
BEYOND_LENGTH: Final = "beyond_measured_length"
LOCKSTEP: Final = "lockstep"

_PLACE: Final = {key: place for place, key in enumerate(key for name, key in list(globals().items()) if name.isupper())}

MEASURED: Final = "measured"
"""No warning: the provenance of taxtui's own measurements at the provider."""

UNTOLD: Final = {"create": CREATE_UNTOLD, "held": HELD_UNTOLD, "think": THINK_UNTOLD, "actions": ACTIONS_UNTOLD}
"""Quantity that an import may lack → the warning about it."""

TAIL_TRIALS: Final = 299
"""With fewer successes, an event of 1 % is absent from more than 5 % of all recordings: 0.99^299 = 0.0495."""
FEW: Final = 30


def ordered(flags: Iterable[str]) -> tuple[str, ...]:
    """Return warnings by possible effect, the largest first; others are last, in their order."""
    return tuple(sorted(dict.fromkeys(flags), key=lambda flag: _PLACE.get(flag, len(_PLACE))))
