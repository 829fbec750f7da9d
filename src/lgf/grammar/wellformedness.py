"""Checks that a grammar is well-formed: symbols defined, rules reachable and terminating, a sentence that fits."""

import math
import re
from itertools import islice

from lgf.errors import quoted
from lgf.expression.functions import FUNCTIONS
from lgf.grammar.diagnostics import Place, like
from lgf.grammar.restriction import reachable, terminating
from lgf.grammar.rules import Grammar, Rule
from lgf.grammar.tables import shortest
from lgf.grammar.vocabulary import is_terminal, words


def check_symbols(placed: list[tuple[Rule, Place]], places: dict[str, Place], system: bool = False) -> None:
    """Raises GrammarError at the first rule that has an undefined symbol or is a duplicate."""
    states = "u (the row's own), v and w (others)" if system else "u, x0, x1, ..."
    variables = "t, u, u', v, w, F" if system else "t, u, u', x0, x1, ..., F"
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for rule, place in placed:
        for i, symbol in enumerate(rule.body):
            if symbol in places or is_terminal(symbol, system):
                continue
            spot = place.at(_column_of(place, i))
            if rule.body[i + 1 : i + 2] == ("(",):
                raise spot.error(
                    f"unknown function {quoted(symbol)}: the functions are {', '.join(FUNCTIONS)}"
                    f"{'' if system else ' and diff'}"
                )
            if symbol.endswith("'"):
                raise spot.error(f"unknown variable {quoted(symbol)}: the states are {states} with primes, time is t")
            hint = like(symbol, (*places, *FUNCTIONS))
            raise spot.error(
                f"undefined nonterminal or unknown variable {quoted(symbol)}: write a rule for it, or use "
                f"a variable ({variables}) or the open constant C{hint}"
            )
        if (rule.lhs, rule.body) in seen:
            raise place.error(
                f"duplicate rule: {rule.lhs!r} has this alternative already; keep one and add the weights"
            )
        seen.add((rule.lhs, rule.body))


def _column_of(place: Place, index: int) -> int:
    text = place.line[place.column :]
    body = re.split(r"[|\[{#]", text, maxsplit=1)[0]
    return place.column + next(islice(words(body), index, None))[1]


def check_structure(
    grammar: Grammar, placed: list[tuple[Rule, Place]], places: dict[str, Place], length_place: Place
) -> None:
    """Raises GrammarError for bad weights, a rule that never terminates or is unreachable, or if no sentence fits."""
    weights = dict.fromkeys(places, 0.0)
    for rule, _ in placed:
        weights[rule.lhs] += rule.weight
    for lhs, weight in weights.items():
        if not 0 < weight < math.inf:
            raise places[lhs].error(
                f"bad weights: those of {quoted(lhs)} add up to {weight}; give one that is positive and finite"
            )
    for good, (rule, place) in zip(terminating(grammar), placed, strict=True):
        if not good:
            raise place.error(
                f"this rule can never terminate: give {quoted(_endless_symbol(grammar, rule))} an alternative that ends"
            )
    for good, (rule, place) in zip(reachable(grammar), placed, strict=True):
        if not good:
            raise place.error(
                f"unreachable rule: {quoted(grammar.start)} never leads to {quoted(rule.lhs)}; use it or take it away"
            )
    needed = int(shortest(grammar)[0])
    if needed > grammar.max_length:
        raise length_place.error(f"max_length is {grammar.max_length} but the shortest sentence takes {needed} rules")


def _endless_symbol(grammar: Grammar, rule: Rule) -> str:
    ending = {r.lhs for r, good in zip(grammar.rules, terminating(grammar), strict=True) if good}
    return next(symbol for symbol in rule.body if symbol in grammar.nonterminals and symbol not in ending)
