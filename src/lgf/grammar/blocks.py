"""Derivations split into a header and exchangeable summands, and joined again.

The grammar's `summand` names the nonterminal, or the consecutive nonterminals, whose subtrees make one summand; only
the outermost count. Each is a contiguous run of the leftmost derivation. The other rules are the header. `Blocks`
stores only the header choices that the number of summands leaves open: in `N -> T | T + N` that number decides every
rule, so none is stored.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from lgf.grammar.derivation import Derivation
from lgf.grammar.rules import Grammar

BLOCK = -1
"""The item that stands for a whole summand in the header."""


@dataclass(frozen=True)
class Blocks:
    """The header's open choices and the derivation of each summand, in order."""

    header: Derivation
    summands: tuple[Derivation, ...]


@dataclass(frozen=True)
class Extent:
    """The maximum sizes over some derivations: header choices, summands, rules of one summand."""

    header: int
    summands: int
    summand: int


def split(grammar: Grammar, derivation: Sequence[int]) -> Blocks:
    """The derivation's header choices and summands."""
    rules, summands = split_rules(grammar, derivation)
    choices: list[int] = []
    following = iter(rules)

    def choose(open_rules: list[int]) -> int:
        rule = next(following)
        if len(open_rules) > 1:
            choices.append(rule)
        return rule

    _header_rules(grammar, len(summands), choose)
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

    header_rules = _header_rules(grammar, len(summands), choose)
    if next(following, None) is not None:
        raise ValueError(f"header {tuple(header)} is too long for {len(summands)} summands; take it as split gave it.")
    blocks = iter(summands)
    return tuple(rule for item in header_rules for rule in (next(blocks) if item == BLOCK else (item,)))


def join_rules(grammar: Grammar, header: Sequence[int], summands: Sequence[Sequence[int]]) -> Derivation:
    """The derivation with all these rules of the header, in leftmost order, and summands: inverse of `split_rules`."""
    items = header_items(grammar)
    rules, blocks = iter(header), iter(summands)
    stack: list[int | str] = [grammar.start]
    derivation: list[int] = []
    while stack:
        if stack.pop() == BLOCK:
            derivation += next(blocks)
        else:
            rule = next(rules)
            derivation.append(rule)
            stack.extend(reversed(items[rule]))
    return tuple(derivation)


def extent(grammar: Grammar, derivations: Sequence[Sequence[int]]) -> Extent:
    """The longest header, the most summands and the longest summand among the derivations."""
    blocks = [split(grammar, derivation) for derivation in derivations]
    return Extent(
        max((len(b.header) for b in blocks), default=0),
        max((len(b.summands) for b in blocks), default=0),
        max((len(s) for b in blocks for s in b.summands), default=0),
    )


def split_rules(grammar: Grammar, derivation: Sequence[int]) -> tuple[list[int], list[Derivation]]:
    """All rules of the header, and the summands."""
    items, inner = header_items(grammar), bodies(grammar)
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
                waiting.extend(reversed(inner[rule]))
        if top == BLOCK:
            summands.append(tuple(derivation[begin:position]))
        else:
            header.append(derivation[begin])
            stack.extend(reversed(items[derivation[begin]]))
    if position < len(derivation):
        raise ValueError(f"the derivation goes on after its sentence is complete, at step {position}; take that off.")
    return header, summands


def _header_rules(grammar: Grammar, count: int, choose: Callable[[list[int]], int]) -> list[int]:
    """The header's rules, with BLOCK for each summand; `choose` picks among the rules that allow `count` summands."""
    bound = (2 << count) - 1
    missing = count
    header_rules: list[int] = []
    # Each open item with the possible numbers of summands of it and the items below it, as bits.
    stack: list[tuple[int | str, int]] = [(grammar.start, _summand_counts(grammar)[1][grammar.start])]
    while stack:
        item, _ = stack.pop()
        if isinstance(item, int):
            header_rules.append(BLOCK)
            missing -= 1
            continue
        below = stack[-1][1] if stack else 1
        open_rules = _open_rules(grammar, item, below, missing, bound)
        if not open_rules:
            raise ValueError(f"no sentence of grammar {grammar.name!r} has {count} summands; give another number.")
        rule = choose(open_rules)
        header_rules.append(rule)
        stack.extend(_children(grammar, rule, below, bound))
    return header_rules


@lru_cache(maxsize=4096)
def _open_rules(grammar: Grammar, item: str, below: int, missing: int, bound: int) -> list[int]:
    """The rules of a nonterminal with which exactly the missing number of summands can still come."""
    by_lhs, _, rule_counts = _summand_counts(grammar)
    return [r for r in by_lhs[item] if _sums(rule_counts[r] & bound, below) >> missing & 1]


@lru_cache(maxsize=4096)
def _children(grammar: Grammar, rule: int, below: int, bound: int) -> list[tuple[int | str, int]]:
    """The items of a rule, the last one first, each with the possible numbers of summands of it and what is below."""
    counts, children = _summand_counts(grammar)[1], []
    for child in reversed(header_items(grammar)[rule]):
        below = _sums(below, _item_counts(child, counts)) & bound
        children.append((child, below))
    return children


@lru_cache(maxsize=64)
def bodies(grammar: Grammar) -> list[list[str]]:
    """Per rule, the nonterminals of its body."""
    nonterminals = frozenset(grammar.nonterminals)
    return [[symbol for symbol in rule.body if symbol in nonterminals] for rule in grammar.rules]


@lru_cache(maxsize=64)
def header_items(grammar: Grammar) -> list[list[int | str]]:
    """Per rule, the nonterminals of its body, with BLOCK in place of those of a summand."""
    nonterminals = frozenset(grammar.nonterminals)
    bodies = [rule.body for rule in with_mark(grammar, "").rules]
    return [[word or BLOCK for word in body if not word or word in nonterminals] for body in bodies]


@lru_cache(maxsize=64)
def with_mark(grammar: Grammar, mark: str) -> Grammar:
    """The grammar of the headers: a mark stands for each summand. Rules keep their numbers."""
    return replace(
        grammar, rules=tuple(replace(rule, body=_marked(grammar, rule.body, mark)) for rule in grammar.rules)
    )


def _marked(grammar: Grammar, body: tuple[str, ...], mark: str) -> tuple[str, ...]:
    symbols, begin = list(body), 0
    while (span := summand_span(grammar, symbols, begin)) is not None:
        begin = span[0] + 1
        symbols[span[0] : span[1]] = [mark]
    return tuple(symbols)


def summand_symbols(grammar: Grammar) -> tuple[str, ...]:
    """The nonterminals of a summand and the words between them."""
    for rule in grammar.rules:
        span = summand_span(grammar, rule.body)
        if span is not None:
            return rule.body[span[0] : span[1]]
    raise AssertionError(f"no rule of grammar {grammar.name!r} holds its summand {grammar.summand}")


def summand_span(grammar: Grammar, body: Sequence[str], begin: int = 0) -> tuple[int, int] | None:
    """(begin, end) of the next summand in a rule's body, words in between included; None if there is none."""
    nonterminals = frozenset(grammar.nonterminals)
    places = [i for i in range(begin, len(body)) if body[i] in nonterminals]
    width = len(grammar.summand)
    for k in range(len(places) - width + 1 if width else 0):
        if tuple(body[i] for i in places[k : k + width]) == grammar.summand:
            return places[k], places[k + width - 1] + 1
    return None


@lru_cache(maxsize=64)
def _summand_counts(grammar: Grammar) -> tuple[dict[str, list[int]], dict[str, int], list[int]]:
    """The rules of each nonterminal, and the possible numbers of summands of each nonterminal and of each rule.

    A set of numbers is stored as the bits of an integer.
    """
    items = header_items(grammar)
    by_lhs: dict[str, list[int]] = {name: [] for name in grammar.nonterminals}
    for r, rule in enumerate(grammar.rules):
        by_lhs[rule.lhs].append(r)
    # Twice max_length, because a parsed sentence may be longer than max_length.
    bound = (2 << (2 * grammar.max_length)) - 1
    counts = dict.fromkeys(grammar.nonterminals, 0)
    while True:
        rule_counts = []
        for symbols in items:
            total = 1
            for item in symbols:
                total = _sums(total, _item_counts(item, counts)) & bound
            rule_counts.append(total)
        extended = dict.fromkeys(grammar.nonterminals, 0)
        for lhs, rules in by_lhs.items():
            for r in rules:
                extended[lhs] |= rule_counts[r]
        if extended == counts:
            return by_lhs, counts, rule_counts
        counts = extended


def _item_counts(item: int | str, counts: dict[str, int]) -> int:
    return 2 if isinstance(item, int) else counts[item]


def _sums(a: int, b: int) -> int:
    """The set of all sums of a number in `a` and a number in `b`, as bits."""
    total, shift = 0, 0
    while b:
        if b & 1:
            total |= a << shift
        b >>= 1
        shift += 1
    return total
