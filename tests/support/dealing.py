"""The order in which tests run: what takes long is begun first, as what is begun last decides when all is done."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

T = TypeVar("T")


def dealt(items: Sequence[T], slow: Callable[[T], Hashable], workers: int) -> list[T]:
    """What is slow in turns: under xdist's ``worksteal`` each worker begins with its stretch of the list.

    ``slow``: None for what is quick. Slow ones with the same name stay with one worker, in their order.
    """
    groups: dict[Hashable, list[T]] = {}
    for item in items:
        groups.setdefault(slow(item), []).append(item)
    quick = iter(groups.pop(None, []))
    order: list[T] = []
    for worker in range(workers):
        stretch = (len(items) - len(order)) // (workers - worker)
        hand = list(itertools.chain.from_iterable(list(groups.values())[worker::workers]))
        order += [*hand, *itertools.islice(quick, max(0, stretch - len(hand)))]
    return [*order, *quick]
