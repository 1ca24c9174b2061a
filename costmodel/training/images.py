"""The images that prompts run in: how many there are, and how large each is."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from costmodel.errors import TrainingRunError

GB_PER_GIB: Final = 2**30 / 1e9
MOST: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Images:
    """Sizes in GB as they are pulled and lie on a node's disk, one for each image."""

    sizes_gb: tuple[float, ...]

    @classmethod
    def of(cls, sizes_gb: Iterable[float]) -> Self:
        """These sizes.

        Raises:
            TrainingRunError: there is none, there are more than a million, or one is not a number above 0.
        """
        sizes = tuple(float(size) for size in sizes_gb)
        if not 1 <= len(sizes) <= MOST:
            raise TrainingRunError(f"a set of images holds 1 to {MOST:,} of them, not {len(sizes):,}")
        for size in sizes:
            if not 0 < size < math.inf:
                raise TrainingRunError(f"the size of an image must be a number of GB above 0, not {size:g}")
        return cls(sizes)

    @classmethod
    def between(cls, low_gb: float, high_gb: float, count: int) -> Self:
        """``count`` images whose sizes lie evenly from ``low_gb`` to ``high_gb``; equal limits make equal images.

        Raises:
            TrainingRunError: as ``of``, or the limits are the wrong way round.
        """
        if low_gb > high_gb:
            raise TrainingRunError(f"images of {low_gb:g} to {high_gb:g} GB: the smaller size comes first")
        if count < 1 or count > MOST:
            raise TrainingRunError(f"a set of images holds 1 to {MOST:,} of them, not {count:,}")
        step = (high_gb - low_gb) / count
        return cls.of(low_gb + (number + 0.5) * step for number in range(count))

    @property
    def count(self) -> int:
        """How many."""
        return len(self.sizes_gb)

    @property
    def largest_gb(self) -> float:
        """The size of the largest."""
        return max(self.sizes_gb)

    @property
    def total_gb(self) -> float:
        """All of them on one disk."""
        return math.fsum(self.sizes_gb)

    def __str__(self) -> str:
        """``500 of 2-8 GB``."""
        low, high = min(self.sizes_gb), self.largest_gb
        return f"{self.count:,} of {f'{low:.3g}' if low == high else f'{low:.3g}-{high:.3g}'} GB"
