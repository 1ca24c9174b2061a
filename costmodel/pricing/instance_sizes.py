"""What providers sell: who asks for less than a size gets, and pays for, the next larger one.

Sizes are named, so that a price sheet can say by which of them it bills and an adapter asks for the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Size(NamedTuple):
    """Of a sandbox."""

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
"""The same. Source: "at most 8 vCPUs with 2 GB of memory per vCPU", vercel.com/docs/vercel-sandbox/pricing."""

SIZES: Final[Mapping[str, Mapping[int, tuple[int, ...]]]] = {"fargate": _FARGATE, "vercel": _VERCEL}
"""By the name that a price sheet gives as ``sizes``."""


def sold_size(sizes: str, cpu_milli: int, memory_mib: int) -> Size | None:
    """The smallest size on sale that has at least what was asked for, fewest CPUs first; None where none has.

    ``sizes`` is one of ``SIZES``.
    """
    for milli, memories in SIZES[sizes].items():
        for mib in memories:
            if milli >= cpu_milli and mib >= memory_mib:
                return Size(milli, mib)
    return None
