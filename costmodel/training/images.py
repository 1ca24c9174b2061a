"""Container images of prompts: their number and sizes."""

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
    """Size of each image in GB, as pulled and stored by a node."""

    sizes_gb: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check the sizes.

        Raises:
            TrainingRunError: no size, more than a million, or a size that is not a number above 0.
        """
        if not 1 <= self.count <= MOST:
            raise TrainingRunError(f"a set of images has 1 to {MOST:,} images, not {self.count:,}")
        for size in self.sizes_gb:
            if not 0 < size < math.inf:
                raise TrainingRunError(f"the size of an image must be a number of GB above 0, not {size:g}")

    @classmethod
    def of(cls, sizes_gb: Iterable[float]) -> Self:
        return cls(tuple(map(float, sizes_gb)))

    @classmethod
    def between(cls, low_gb: float, high_gb: float, count: int) -> Self:
        """Spread ``count`` sizes evenly from ``low_gb`` to ``high_gb``. Raises ``TrainingRunError``."""
        if low_gb > high_gb:
            raise TrainingRunError(f"images of {low_gb:g} to {high_gb:g} GB: the smaller size comes first")
        step = (high_gb - low_gb) / max(1, count)
        return cls(tuple(low_gb + (number + 0.5) * step for number in range(min(count, MOST + 1))))

    @property
    def count(self) -> int:
        return len(self.sizes_gb)

    @property
    def largest_gb(self) -> float:
        return max(self.sizes_gb)

    @property
    def total_gb(self) -> float:
        return math.fsum(self.sizes_gb)

    def __str__(self) -> str:
        low, high = min(self.sizes_gb), self.largest_gb
        return f"{self.count:,} of {f'{low:.3g}' if low == high else f'{low:.3g}-{high:.3g}'} GB"
