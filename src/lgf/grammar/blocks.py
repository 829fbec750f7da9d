"""A derivation cut into a header and exchangeable summands, and put together again.

The grammar's `summand` names the nonterminal, or the consecutive nonterminals, whose subtrees make one summand; only
the outermost count. Each is a contiguous run of the leftmost derivation. What is left is the header, and of it only
the choices that the number of summands leaves open: in `N -> T | T + N` that number decides every rule, so none of
them is kept.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from lgf.grammar.derivation import Derivation
from lgf.grammar.rules import Grammar

BLOCK = -1
"""Stands for a whole summand among the symbols of the header."""


@dataclass(frozen=True)
class Blocks:
    """A derivation in parts: the header's open choices and the derivation of each summand, in order."""

    header: Derivation
    summands: tuple[Derivation, ...]


@dataclass(frozen=True)
class Extent:
    """The greatest sizes among some derivations: header choices, summands, rules of one summand."""

    header: int
    summands: int
    summand: int


def split(grammar: Grammar, derivation: Sequence[int]) -> Blocks:
    """The derivation's header choices and summands."""
    rules, summands = _cut(grammar, derivation)
    choices: list[int] = []
    following = iter(rules)

    def choose(open_rules: list[int]) -> int:
        rule = next(following)
        if len(open_rules) > 1:
            choices.append(rule)
        return rule

    _walk(grammar, len(summands), choose)
    return Blocks(tuple(choices), tuple(summands))


def join(grammar: Grammar, header: Sequence[int], summands: Sequence[Sequence[int]]) -> Derivation:
    """The derivation with these header choices and summands: the inverse of `split`."""
    following = iter(header)

    def choose(open_rules: list[int]) -> int:
        rule = open_rules[0] if len(open_rules) == 1 else next(following, None)
        if rule not in open_rules:
            raise ValueError(
                f"header {tuple(header)} does not fit {len(summands)} summands of grammar {grammar.name!r}: "
                f"{rule} was found where one of the rules {open_rules} is due."
            )
        return rule

    walked = _walk(grammar, len(summands), choose)
    if next(following, None) is not None:
        raise ValueError(f"header {tuple(header)} is too long for {len(summands)} summands; take it as split gave it.")
    blocks = iter(summands)
    return tuple(rule for item in walked for rule in (next(blocks) if item == BLOCK else (item,)))


def extent(grammar: Grammar, derivations: Sequence[Sequence[int]]) -> Extent:
    """The longest header, the most summands and the longest summand among the derivations."""
    blocks = [split(grammar, derivation) for derivation in derivations]
    return Extent(
        max((len(b.header) for b in blocks), default=0),
        max((len(b.summands) for b in blocks), default=0),
        max((len(s) for b in blocks for s in b.summands), default=0),
    )


def _cut(grammar: Grammar, derivation: Sequence[int]) -> tuple[list[int], list[Derivation]]:
    """The rules of the whole header, and the summands."""
    items, bodies = header_items(grammar), _bodies(grammar)
    header: list[int] = []
    summands: list[Derivation] = []
    stack: list[int | str] = [grammar.start]
    position = 0
    while stack:
        top = stack.pop()
        begin = position
        waiting = list(reversed(grammar.summand)) if top == BLOCK else [top]
        while waiting:
            symbol = waiting.pop()
            rule = derivation[position] if position < len(derivation) else -1
            if not 0 <= rule < grammar.n_rules or grammar.rules[rule].lhs != symbol:
                raise ValueError(
                    f"rule {rule} at step {position} does not continue a derivation of grammar {grammar.name!r}; "
                    "give the rule numbers of one complete sentence in leftmost order, without padding."
                )
            position += 1
            if top == BLOCK:
                waiting.extend(reversed(bodies[rule]))
        if top == BLOCK:
            summands.append(tuple(derivation[begin:position]))
        else:
            header.append(derivation[begin])
            stack.extend(reversed(items[derivation[begin]]))
    if position < len(derivation):
        raise ValueError(f"the derivation goes on after its sentence is complete, at step {position}; take that off.")
    return header, summands


def _walk(grammar: Grammar, count: int, choose: Callable[[list[int]], int]) -> list[int]:
    """The header's rules, BLOCK where a summand stands; `choose` picks among those that lead to `count` summands."""
    by_lhs, reach, rule_reach = _reaches(grammar)
    items = header_items(grammar)
    upto = (2 << count) - 1
    missing = count
    walked: list[int] = []
    # Each open item with the set of how many summands it and those below it can make.
    stack: list[tuple[int | str, int]] = [(grammar.start, reach[grammar.start])]
    while stack:
        item, _ = stack.pop()
        if isinstance(item, int):
            walked.append(BLOCK)
            missing -= 1
            continue
        below = stack[-1][1] if stack else 1
        open_rules = [r for r in by_lhs[item] if _sums(rule_reach[r] & upto, below) >> missing & 1]
        if not open_rules:
            raise ValueError(f"no sentence of grammar {grammar.name!r} has {count} summands; give another number.")
        rule = choose(open_rules)
        walked.append(rule)
        for child in reversed(items[rule]):
            below = _sums(below, _reach(child, reach)) & upto
            stack.append((child, below))
    return walked


@lru_cache(maxsize=64)
def _bodies(grammar: Grammar) -> list[list[str]]:
    nonterminals = frozenset(grammar.nonterminals)
    return [[symbol for symbol in rule.body if symbol in nonterminals] for rule in grammar.rules]


@lru_cache(maxsize=64)
def header_items(grammar: Grammar) -> list[list[int | str]]:
    """Per rule, the nonterminals of its body as the header sees them: BLOCK in place of those of a summand."""
    width = len(grammar.summand)
    result = []
    for symbols in _bodies(grammar):
        items: list[int | str] = []
        i = 0
        while i < len(symbols):
            found = width > 0 and tuple(symbols[i : i + width]) == grammar.summand
            items.append(BLOCK if found else symbols[i])
            i += width if found else 1
        result.append(items)
    return result


@lru_cache(maxsize=64)
def _reaches(grammar: Grammar) -> tuple[dict[str, list[int]], dict[str, int], list[int]]:
    """Per nonterminal its rules; per nonterminal and per rule, how many summands it can make in the header.

    A set of numbers is the bits of an integer.
    """
    items = header_items(grammar)
    by_lhs: dict[str, list[int]] = {name: [] for name in grammar.nonterminals}
    for r, rule in enumerate(grammar.rules):
        by_lhs[rule.lhs].append(r)
    # A parsed sentence may be longer than max_length and is cut all the same, hence twice.
    upto = (2 << (2 * grammar.max_length)) - 1
    reach = dict.fromkeys(grammar.nonterminals, 0)
    while True:
        rule_reach = []
        for symbols in items:
            total = 1
            for item in symbols:
                total = _sums(total, _reach(item, reach)) & upto
            rule_reach.append(total)
        found = dict.fromkeys(grammar.nonterminals, 0)
        for lhs, rules in by_lhs.items():
            for r in rules:
                found[lhs] |= rule_reach[r]
        if found == reach:
            return by_lhs, reach, rule_reach
        reach = found


def _reach(item: int | str, reach: dict[str, int]) -> int:
    return 2 if isinstance(item, int) else reach[item]


def _sums(a: int, b: int) -> int:
    """The set of all sums of a number in `a` and a number in `b`."""
    total, shift = 0, 0
    while b:
        if b & 1:
            total |= a << shift
        b >>= 1
        shift += 1
    return total
