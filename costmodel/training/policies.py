"""How a trainer and its rollouts wait for each other. A policy is one class here and its place in ``POLICIES``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Final


class Policy(ABC):
    """The base of all. GPUs wait for whatever of the wall-clock is not training."""

    name: ClassVar[str]
    """For ``--policy``."""
    barrier: ClassVar[bool] = True
    """Whether a step waits for the last of its own rollouts, so that their makespans count and workers idle; else
    rollouts are one stream, and its makespan counts."""
    linear: ClassVar[bool] = False
    """Whether ``wall`` is linear in the durations, so that mean durations give its mean; else ``next_start`` is
    simulated."""

    def wall(self, steps: Sequence[tuple[int, float]], whole: float, train: float) -> float:
        """Wall-clock of a run whose steps need rollouts of these durations (how often, how long), and training each.

        ``whole`` is the makespan of all rollouts as one stream. All durations are in one unit, and so is the answer;
        it is never below that of the training alone.
        """
        return self._wall(steps, whole, train) if sum(times for times, _ in steps) else 0.0

    def next_start(self, end: int, trained_before: int, trained: int) -> int:
        """When the next step's rollouts start: a step's are done at ``end``, it is ``trained`` then, and the one
        before it was ``trained_before``. Asked only of those with a barrier."""
        return trained

    @abstractmethod
    def _wall(self, steps: Sequence[tuple[int, float]], whole: float, train: float) -> float:
        """As ``wall``, of at least one step."""


class Sync(Policy):
    """Rollouts and training take turns."""

    name = "sync"
    linear = True

    def _wall(self, steps: Sequence[tuple[int, float]], whole: float, train: float) -> float:
        return sum(times * (step + train) for times, step in steps)


class OneStepOff(Policy):
    """The next step's rollouts run during training."""

    name = "one-step-off"

    def next_start(self, end: int, trained_before: int, trained: int) -> int:
        """As soon as the trainer takes these."""
        return max(end, trained_before)

    def _wall(self, steps: Sequence[tuple[int, float]], whole: float, train: float) -> float:
        first = steps[0][1]
        return sum(times * max(step, train) for times, step in steps) - max(first, train) + first + train


class Async(Policy):
    """Rollouts never wait; training does if it must."""

    name = "async"
    barrier = False

    def _wall(self, steps: Sequence[tuple[int, float]], whole: float, train: float) -> float:
        count = sum(times for times, _ in steps)
        return max(whole, whole / count + (count - 1) * train) + train


POLICIES: Final[dict[str, Policy]] = {policy.name: policy for policy in (Sync(), OneStepOff(), Async())}
"""Every policy by its name, in the order in which they are told."""
