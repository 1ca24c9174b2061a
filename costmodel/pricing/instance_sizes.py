"""Instance sizes of providers. A request is billed as the next larger size.

Price sheets and adapters refer to a provider's sizes by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Size(NamedTuple):
    """Size of a sandbox."""

    cpu_milli: int
    memory_mib: int


_FARGATE: Final = {
    250: (512, 1024, 2048),
    500: tuple(range(1024, 4096 + 1, 1024)),
    1000: tuple(range(2048, 8192 + 1, 1024)),
    2000: tuple(range(4096, 16384 + 1, 1024)),
    4000: tuple(range(8192, 30720 + 1, 1024)),
    8000: tuple(range(16384, 61440 + 1, 4096)),
    16000: tuple(range(32768, 122880 + 1, 8192)),
}
"""Thousandths of a vCPU → MiB. Source: "Task CPU and memory", Amazon ECS Developer Guide."""

_VERCEL: Final = {1000: (2048,), 2000: (4096,), 4000: (8192,), 8000: (16384,)}
"""The same units. Source: "at most 8 vCPUs with 2 GB of memory per vCPU", vercel.com/docs/vercel-sandbox/pricing."""

SIZES: Final[Mapping[str, Mapping[int, tuple[int, ...]]]] = {"fargate": _FARGATE, "vercel": _VERCEL}
"""Sizes by the name in a price sheet's ``sizes``."""


def sold_size(sizes: str, cpu_milli: int, memory_mib: int) -> Size | None:
    """Return the smallest sufficient size for a request, fewest CPUs first; None: the request is too large.

    ``sizes`` is one of ``SIZES``.
    """
    for milli, memories in SIZES[sizes].items():
        for mib in memories:
            if milli >= cpu_milli and mib >= memory_mib:
                return Size(milli, mib)
    return None
