"""Lists of right-hand sides, joined and combined to systems, the most promising first."""

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence

from lgf.search.systems.component import Component, Components

Lists = Mapping[int, Sequence[Component]]
"""The right-hand sides of each row, the most promising first."""


def joined(first: Sequence[Component], second: Sequence[Component]) -> list[Component]:
    """Both lists by rank, each structure once; that of the first list counts."""
    merged = {c.key: c for c in [*second, *first]}
    return sorted(merged.values(), key=lambda c: c.rank)


def by_rank(lists: Lists) -> list[tuple[int, Component]]:
    """(row, right-hand side) of all rows, the most probable first."""
    return sorted(((row, c) for row, own in lists.items() for c in own), key=lambda pair: pair[1].rank)


def ranked_as(lists: Lists, others: Lists) -> Lists:
    """The other right-hand sides with their ranks in the lists; those that are in none come last."""
    ranks = {row: {c.key: c.rank for c in own} for row, own in lists.items()}
    return {row: [c.ranked(ranks[row].get(c.key, math.inf)) for c in own] for row, own in others.items()}


def combinations(lists: Sequence[Sequence[Component]], most: int) -> Iterator[Components]:
    """One component of each list, in order of the sum of their ranks."""
    n = len(lists)
    heap = [(sum(own[0].rank for own in lists), (0,) * n)]
    seen = {(0,) * n}
    for _ in range(most):
        if not heap:
            return
        total, places = heapq.heappop(heap)
        yield tuple(own[k] for own, k in zip(lists, places, strict=True))
        for i in range(n):
            following = (*places[:i], places[i] + 1, *places[i + 1 :])
            if following[i] < len(lists[i]) and following not in seen:
                seen.add(following)
                rise = lists[i][following[i]].rank - lists[i][places[i]].rank
                heapq.heappush(heap, (total + rise, following))
