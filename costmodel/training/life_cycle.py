"""Suspension, forks, recycling and builds: the part of a training run that changes the life of a sandbox."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from costmodel.errors import DemandError

ACTIONS: Final = {"suspend": "suspend_after_s", "fork": "fork_s", "recycle": "recycle_s", "prebuild": "build_s"}
"""Actions of a life cycle by name, each with the field of ``Demand`` that asks for it; ``prebuild`` removes builds."""


class Suspension(NamedTuple):
    """When a sandbox is suspended while the model answers, and how long both changes take."""

    after_ns: int
    suspend_ns: int
    resume_ns: int

    def split(self, pause_ns: float) -> tuple[float, float]:
        """Return the delay of the next action, and the suspended time, in ns, for one pause."""
        awake_ns = self.after_ns + self.suspend_ns
        if pause_ns <= self.after_ns:
            return 0.0, 0.0
        return self.resume_ns + max(0.0, awake_ns - pause_ns), max(0.0, pause_ns - awake_ns)


def check(demand: Any) -> None:
    """Refuse combinations of a ``Demand`` that have no answer.

    Raises:
        DemandError: an input lacks the input that it depends on, or two inputs contradict each other.
    """
    if demand.suspend_after_s is None:
        if demand.suspend_s or demand.resume_s or demand.suspended_usd_hour is not None:
            raise DemandError("a suspension needs its threshold: add --suspend-after-seconds S")
    elif demand.think is None:
        raise DemandError("a suspension depends on each pause of the model: add --think lognormal:8s,1.2")
    if demand.recycle_s is not None:
        refused = {
            "include_cleanup": demand.include_cleanup,
            "warm_pool": demand.warm_pool is not None,
            "over_provision": demand.over_provision > 0,
            "on_failure resample": demand.on_failure == "resample",
        }
        if names := [name for name, asked in refused.items() if asked]:
            raise DemandError(f"--recycle-seconds does not go with {' or '.join(names)}: leave one of them out")
    if demand.build_s is None:
        if demand.builders is not None or demand.built_images:
            raise DemandError("builders and built images need the time of a build: add --build-seconds S")
    elif demand.images is None:
        raise DemandError("each image is built on its first use: add --images SET, --nodes N and --pods-per-node P")
    elif demand.built_images > demand.images.count:
        raise DemandError(f"built_images must be at most the {demand.images.count} images, not {demand.built_images}")
