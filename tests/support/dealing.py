"""The order in which tests run: what takes long is begun first, as what is begun last decides when all is done.

Of the others, what waits stands beside what computes: there are more workers than cores.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

T = TypeVar("T")


def mixed(items: Sequence[T], kind: Callable[[T], Hashable], block: Callable[[T], Hashable]) -> list[T]:
    """Blocks in an order in which any stretch has its share of each kind; each block stays in one piece."""
    kinds = Counter(map(kind, items))
    seen: Counter[Hashable] = Counter()
    placed: list[tuple[float, list[T]]] = []
    for _, group in itertools.groupby(items, block):
        together = list(group)
        own = kind(together[0])
        placed.append(((seen[own] + len(together) / 2) / kinds[own], together))
        seen[own] += len(together)
    placed.sort(key=lambda one: one[0])
    return [item for _, together in placed for item in together]


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
