"""Lists of right-hand sides, joined and combined to systems, the most promising first."""

import heapq
from collections.abc import Iterator, Mapping, Sequence

from lgf.search.systems.component import Component, Components

Lists = Mapping[int, Sequence[Component]]
"""The right-hand sides of each row, the most promising first."""


def joined(first: Sequence[Component], second: Sequence[Component]) -> list[Component]:
    """Both lists by rank, each structure once; that of the first list counts."""
    merged = {c.key: c for c in [*second, *first]}
    return sorted(merged.values(), key=lambda c: c.rank)


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
