"""Language of one row of a system: its terms and headers, and its right-hand sides in order of their bits."""

import heapq
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from lgf.expression.tree import ONE, Expression
from lgf.language.row_dictionary import Header
from lgf.language.row_structure import RowStructure, identity


class RowTerm(NamedTuple):
    """A term and its bits; for a divisor the bits beyond those of no divisor."""

    expression: Expression
    bits: float


@dataclass(frozen=True, eq=False)
class Row:
    """The terms and headers of one row that the data and knowledge admit."""

    terms: tuple[RowTerm, ...]
    headers: Mapping[Expression, tuple[Header, ...]]  # by divisor
    rank: Mapping[Expression, int]  # the place of each term in printed equations
    required: tuple[Expression, ...] = ()
    known: Expression | None = None

    @cached_property
    def cost(self) -> dict[Expression, float]:
        """The bits by term."""
        return dict(self.terms)

    @cached_property
    def by_length(self) -> dict[tuple[Expression, int], list[tuple[float, Header]]]:
        """The headers by divisor and number of terms, each with its own bits."""
        found: dict[tuple[Expression, int], list[tuple[float, Header]]] = {}
        for divisor, headers in self.headers.items():
            for header in headers:
                bits = -math.log2(header.probability) - math.log2(math.factorial(header.count))
                found.setdefault((divisor, header.count + len(header.own)), []).append((bits, header))
        return found

    @cached_property
    def made(self) -> list[RowStructure]:
        """The first structures, as many as were asked for: a search asks for the same ones several times."""
        return []

    @cached_property
    def following(self) -> Iterator[RowStructure]:
        """The structures after those that are made."""
        return _structures(self)

    def ordered(self, terms: Iterable[Expression]) -> tuple[Expression, ...]:
        """The terms in the order of printed equations; others last."""
        return tuple(sorted(terms, key=lambda term: self.rank.get(term, len(self.rank))))


def _structures(row: Row) -> Iterator[RowStructure]:
    """The right-hand sides of the row in order of their bits, each once, in different terms."""
    if row.known is not None:
        yield RowStructure((), ONE, 0.0, row.known)
        return
    seen: set[Hashable] = set()
    for structure in _in_order([header for group in row.headers.values() for header in group], row):
        key = identity(structure)
        if structure.terms and key not in seen:
            seen.add(key)
            yield structure


def _in_order(headers: Sequence[Header], row: Row) -> Iterator[RowStructure]:
    """The structures of all headers, cheapest first; of most headers not even the first one is made."""
    heap: list[tuple[float, int, RowStructure | None]] = []
    for i, header in enumerate(headers):
        least = _least_bits(header, row)
        if math.isfinite(least):
            heap.append((least, i, None))
    heapq.heapify(heap)
    streams: dict[int, Iterator[RowStructure]] = {}
    while heap:
        _, i, structure = heapq.heappop(heap)
        if structure is None:
            streams[i] = _sums(headers[i], row)
        else:
            yield structure
        following = next(streams[i], None)
        if following is not None:
            heapq.heappush(heap, (following.bits, i, following))


def _least_bits(header: Header, row: Row) -> float:
    """The bits of the cheapest structure of a header, infinite if it has none."""
    fixed_terms = _fixed_terms(header, row)
    count = header.count + len(header.own) - len(fixed_terms)
    if count < 0:
        return math.inf
    cheapest = list(islice((t.bits for t in row.terms if t.expression not in fixed_terms), count))
    return _header_bits(header, row) + sum(cheapest) if len(cheapest) == count else math.inf


def _fixed_terms(header: Header, row: Row) -> tuple[Expression, ...]:
    """The terms that stand in every structure of the header."""
    return (*header.own, *(e for e in row.required if e not in header.own))


def _header_bits(header: Header, row: Row) -> float:
    """The bits of a header and of the terms that are required beside its own."""
    base = -math.log2(header.probability) - math.log2(math.factorial(header.count))
    return base + sum(row.cost[e] for e in _fixed_terms(header, row)[len(header.own) :])


def _sums(header: Header, row: Row) -> Iterator[RowStructure]:
    """The structures of a header with different terms, cheapest first."""
    fixed_terms, base = _fixed_terms(header, row), _header_bits(header, row)
    terms = [t for t in row.terms if t.expression not in fixed_terms] if fixed_terms else row.terms
    first = tuple(range(header.count + len(header.own) - len(fixed_terms)))
    heap = [(sum(terms[i].bits for i in first), first)]
    pushed = {first}
    while heap:
        bits, chosen = heapq.heappop(heap)
        expressions = row.ordered((*fixed_terms, *(terms[i].expression for i in chosen)))
        yield RowStructure(expressions, header.divisor, base + bits)
        for place, i in enumerate(chosen):
            following = chosen[place + 1] if place + 1 < len(chosen) else len(terms)
            if i + 1 < following:
                successor = (*chosen[:place], i + 1, *chosen[place + 1 :])
                if successor not in pushed:
                    pushed.add(successor)
                    heapq.heappush(heap, (bits + terms[i + 1].bits - terms[i].bits, successor))
