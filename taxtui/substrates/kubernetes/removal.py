"""Delete a pod or a claim, and wait for the end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

from taxtui.errors import CleanupFailed
from taxtui.sandboxes.kit import removal
from taxtui.substrates.kubernetes.api import PODS, ClusterApi, ObjectKind
from taxtui.substrates.kubernetes.failure import ApiRefused
from taxtui.substrates.kubernetes.pod import Metadata


async def remove(
    api: ClusterApi,
    kind: ObjectKind[Any],
    about: Metadata,
    grace_s: float,
    gone: asyncio.Event | None = None,
    pod: str = "",
) -> None:
    """Delete exactly this object, and return when the object is gone: the kubelet removes a pod after all processes.

    A watch may set ``gone``; without a watch, requests look more often. Raises ``CleanupFailed``: no permission, or not
    gone within ``removal.REMOVE_S`` + ``grace_s``.

    Args:
        grace_s: the time between TERM and KILL.
        pod: the name of a claim's pod, if known; also waited for.
    """
    # A deleted claim is kept until sandbox and pod are gone.
    how = {"gracePeriodSeconds": grace_s} if kind is PODS else {"propagationPolicy": "Foreground"}

    async def ask() -> bool:
        with _as_error():
            return await api.delete(kind, about, how) or not await ended()

    async def ended() -> bool:
        with _as_error():
            if await api.exists(kind, about):
                return False
            return not pod or not await api.exists(PODS, Metadata(name=pod, namespace=about.namespace))

    stuck = "the deletion was accepted but has not ended; look at the object's node and finalizers"
    name = f"{kind.plural.removeprefix('sandbox').removesuffix('s')} {about.name}"
    look_s = removal.LOOK_S if gone else 0.1
    await removal.remove(name, ask, ended, gone=gone, look_s=look_s, more_s=grace_s, stuck=stuck)


@contextlib.contextmanager
def _as_error() -> Iterator[None]:
    """Raise ``Throttled`` for a refusal, or ``CleanupFailed`` for a final one."""
    try:
        yield
    except ApiRefused as error:
        raise error.unless_final(CleanupFailed) from error
