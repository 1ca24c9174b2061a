"""Order of rollouts and training steps."""

from __future__ import annotations

from typing import Final, NamedTuple


class Policy(NamedTuple):
    """Order of rollouts and training, as docs/simulation.md defines it. GPUs wait outside of training."""

    name: str  # for ``--policy``
    barrier: bool  # a step waits for the last rollout; False: a stream of rollouts
    overlaps: bool  # rollouts of the next step run during training


SYNC: Final = Policy("sync", barrier=True, overlaps=False)
ONE_STEP_OFF: Final = Policy("one-step-off", barrier=True, overlaps=True)
ASYNC: Final = Policy("async", barrier=False, overlaps=True)

POLICIES: Final[dict[str, Policy]] = {policy.name: policy for policy in (SYNC, ONE_STEP_OFF, ASYNC)}
"""Policies by name, in the order of help texts."""
