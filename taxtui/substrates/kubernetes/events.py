"""What a cluster's events tell of a pod: what keeps it from starting, and what pulling its image took.

The right to read them is optional. Their timestamps are whole seconds of another machine's clock, so only a duration
that the kubelet measured itself is taken from them, never an instant.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from taxtui.substrates.kubernetes.api import ClusterApi
from taxtui.substrates.kubernetes.failure import ApiRefused, said
from taxtui.substrates.kubernetes.pod import Event, Metadata

MILLISECOND_NS: Final = 1_000_000
_PULLED: Final = re.compile(
    r'Successfully pulled image ".*" in (?P<took>[0-9.hms]+)(?: \([0-9.hms]+ including waiting\))?'
    r"(?:\. Image size: (?P<size>[0-9]{1,18}) bytes\.)?"  # older kubelets tell neither
)
_TOOK: Final = re.compile(r"(?:(\d{1,3})h)?(?:(\d{1,2})m(?!s))?(?:(\d{1,2}(?:\.\d{1,3})?)s)?|(\d{1,3})ms")


class Pull(NamedTuple):
    """An image that a kubelet pulled for a pod."""

    took_ns: int  # by the kubelet's clock, without the wait for other pulls; cut to whole milliseconds
    image_bytes: int | None  # the image's size as the node's container runtime has it; layers it had were not moved


def pull(message: str) -> Pull | None:
    """What an event with the reason ``Pulled`` tells (kubelet, image_manager.go); None where nothing was pulled."""
    told = _PULLED.fullmatch(message)
    took = told and _TOOK.fullmatch(told["took"])
    if not told or not took:
        return None
    hours, minutes, seconds, milliseconds = (float(part or 0) for part in took.groups())
    took_ms = round(((hours * 60 + minutes) * 60 + seconds) * 1000 + milliseconds)
    return Pull(took_ms * MILLISECOND_NS, int(told["size"]) if told["size"] else None)


class PodEvents:
    """Asks for events until that is refused for good, and then never again: one for all the pods of a substrate."""

    def __init__(self, api: ClusterApi) -> None:
        """Nothing is asked yet."""
        self._api = api
        self._may_ask = True

    async def last_warning(self, pod: Metadata) -> str:
        """What the cluster last complained of about a pod, as ``reason: message``; "" where nobody tells."""
        last = await self._last(pod, "type=Warning")
        return said(last) if last else ""

    async def last_pull(self, pod: Metadata) -> Pull | None:
        """What pulling the image for a pod took; None where its node had it, and where nobody tells."""
        last = await self._last(pod, "reason=Pulled")
        return pull(last.message or "") if last else None

    async def _last(self, pod: Metadata, which: str) -> Event | None:
        if not self._may_ask:
            return None
        try:
            return max(await self._api.events(pod, which), key=lambda event: event.when, default=None)
        except ApiRefused as error:
            self._may_ask = not error.final
            return None
