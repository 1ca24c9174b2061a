"""Thresholds of a decision: for each unmeasured input the value at which both sides cost the same.

Values are searched by bisection, other inputs unchanged. Both sides are simulated under common random streams.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from costmodel.analysis.decision import Decision, Savings
from costmodel.errors import CostModelError

if TYPE_CHECKING:
    from costmodel.providers.plausible_ranges import Input

SWEPT: Final = 0.04
"""Simulation budget of a tried value, relative to a row."""
QUICK: Final = 0.0025
"""The same of a rough simulation."""
NOT_TRIED: Final = math.nan
NEAR_ENOUGH: Final = 1 / 16
"""Precision of a threshold, as a share of the range."""
Saving = Callable[[float], float | None]
"""Saving of moving by the value of an input; None: the run would never end."""


class InputEffect(NamedTuple):
    """An unmeasured input with its effect on the saving over its range; the remaining inputs are as assumed."""

    input: Input
    best: float | None  # saving with the input at its best; None: the run would never end; not a number: not tried
    worst: float | None
    at: float | None  # threshold; None: nowhere in the range

    @property
    def near(self) -> float:
        """Distance of the threshold, as a share of the way from the assumed value to the end of the range."""
        if self.at is None:
            return math.inf
        way = self.at - self.input.assumed
        end = self.input.worst if way * (self.input.worst - self.input.assumed) > 0 else self.input.best
        return 0.0 if end == self.input.assumed else way / (end - self.input.assumed)


def input_effects(decision: Decision, *, rough: bool = False) -> list[InputEffect]:
    """Return every unmeasured input with its threshold, the nearest first.

    Inputs without a threshold follow. ``rough``: only the end against the saving is simulated, and the threshold is
    interpolated linearly.
    """
    if not decision.inputs:
        return []
    savings = Savings(decision.start, decision.goal, decision.unit, QUICK if rough else SWEPT)
    saving, assumed_saving, effects = decision.saving.value, savings.at({}).value, []
    for unmeasured in decision.inputs:

        def saving_at(value: float, name: str = unmeasured.name) -> float | None:
            try:  # only the difference of these less precise simulations is used
                return saving + savings.at({name: value}).value - assumed_saving
            except CostModelError:
                return None

        against = "worst" if saving >= 0 else "best"
        tried = [end for end in ("best", "worst") if not rough or unmeasured.either or end == against]
        ends = {end: saving_at(getattr(unmeasured, end)) for end in tried}
        at = _threshold(saving, unmeasured, ends, None if rough else saving_at)
        effects.append(InputEffect(unmeasured, ends.get("best", NOT_TRIED), ends.get("worst", NOT_TRIED), at))
    return sorted(effects, key=lambda effect: effect.near)


def _threshold(
    assumed_saving: float, unmeasured: Input, ends: Mapping[str, float | None], saving: Saving | None
) -> float | None:
    """Return the threshold nearest to the assumed value: by bisection, or linearly without ``saving``."""
    shares: dict[float, float] = {}  # end → share of the way to the end
    for name, end_saving in ends.items():
        end = getattr(unmeasured, name)
        if end_saving is not None and end_saving * assumed_saving > 0:
            continue
        if saving is not None:
            shares[end] = _bisected_share(assumed_saving, unmeasured, end, saving)
        elif end_saving is None:
            shares[end] = 1.0
        else:
            shares[end] = assumed_saving / (assumed_saving - end_saving) if assumed_saving != end_saving else 0.0
    if not shares:
        return None
    end = min(shares, key=lambda candidate: shares[candidate])
    at = unmeasured.assumed + shares[end] * (end - unmeasured.assumed)
    if unmeasured.plans:
        return float(math.ceil(at) if end > unmeasured.assumed else math.floor(at))
    return at


def _bisected_share(assumed_saving: float, unmeasured: Input, end: float, saving: Saving) -> float:
    way = end - unmeasured.assumed
    same, changed = 0.0, 1.0
    smallest = max(NEAR_ENOUGH, 1 / abs(way)) if unmeasured.plans and way else NEAR_ENOUGH
    while changed - same > smallest:
        middle = (same + changed) / 2
        middle_saving = saving(unmeasured.assumed + middle * way)
        if middle_saving is not None and middle_saving * assumed_saving > 0:
            same = middle
        else:
            changed = middle
    return changed
