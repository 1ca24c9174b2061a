"""How a trainer and its rollouts wait for each other."""

from __future__ import annotations

from typing import Final, NamedTuple


class Policy(NamedTuple):
    """The order of rollouts and training; the rules are in docs/simulation.md. GPUs wait while they do not train."""

    name: str  # for ``--policy``
    barrier: bool  # a step waits for the last of its rollouts; else rollouts are one stream
    overlaps: bool  # rollouts of the next step run while this one is trained


SYNC: Final = Policy("sync", barrier=True, overlaps=False)
ONE_STEP_OFF: Final = Policy("one-step-off", barrier=True, overlaps=True)
ASYNC: Final = Policy("async", barrier=False, overlaps=True)

POLICIES: Final[dict[str, Policy]] = {policy.name: policy for policy in (SYNC, ONE_STEP_OFF, ASYNC)}
"""Every policy by its name, in the order in which they are listed."""
