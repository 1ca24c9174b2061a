"""The order in which tests run: what takes long is begun first, as what is begun last decides when all is done.

Of the others, what waits stands beside what computes: there are more workers than cores. At the end there is only what
computes, in small pieces: the last one that waited would let all cores but its own stand still.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

BEGUN_BY: Final = 0.8
"""Which part of the list has all kinds in it that are begun early."""


def mixed(
    items: Sequence[T],
    kind: Callable[[T], Hashable],
    block: Callable[[T], Hashable],
    early: Collection[Hashable] = (),
) -> list[T]:
    """Blocks in an order in which any stretch has its share of each kind; each block stays in one piece.

    ``early``: kinds of which the end of the list has none.
    """
    kinds = Counter(map(kind, items))
    seen: Counter[Hashable] = Counter()
    placed: list[tuple[float, list[T]]] = []
    for _, group in itertools.groupby(items, block):
        together = list(group)
        own = kind(together[0])
        part = BEGUN_BY if own in early else 1.0
        placed.append((part * (seen[own] + len(together) / 2) / kinds[own], together))
        seen[own] += len(together)
    placed.sort(key=lambda one: one[0])
    return [item for _, together in placed for item in together]


def dealt(
    items: Sequence[T],
    slow: Callable[[T], Hashable],
    workers: int,
    arranged: Callable[[list[T]], Iterable[T]] = iter,
) -> list[T]:
    """What is slow in turns: under xdist's ``worksteal`` each worker begins with its stretch of the list.

    ``slow``: None for what is quick. Slow ones with the same name stay with one worker, in their order; ``arranged``
    says in which the others do.
    """
    groups: dict[Hashable, list[T]] = {}
    for item in items:
        groups.setdefault(slow(item), []).append(item)
    quick = iter(groups.pop(None, []))
    order: list[T] = []
    for worker in range(workers):
        stretch = (len(items) - len(order)) // (workers - worker)
        hand = list(itertools.chain.from_iterable(list(groups.values())[worker::workers]))
        order += [*hand, *arranged(list(itertools.islice(quick, max(0, stretch - len(hand)))))]
    return [*order, *quick]
