"""What of a grammar remains usable when something is known of the equation.

A restriction is a boolean array over the rules (the padding rule not included), so that a model trained on the whole
grammar can be restricted at use.
"""

from collections.abc import Callable, Collection

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lgf.errors import LgfError, quoted
from lgf.grammar.rules import Grammar, Rule
from lgf.grammar.vocabulary import INPUT_WORD, derivative, is_terminal, words

Mask = NDArray[np.bool_]


def restrict(
    grammar: Grammar,
    *,
    order: int | None = None,
    forced: bool | None = None,
    forbid: Callable[[Rule], bool] | Collection[int] = (),
) -> Mask:
    """The rules that remain usable, True or False each, when order and forcing are as given (None: not known).

    `forbid` is a question asked of each rule (see `mentions`) or a collection of rule numbers. Rules that can no
    longer come to an end, or be reached, are not usable either.
    """
    allowed = np.array([_agrees(grammar, rule, order, forced) for rule in grammar.rules])
    if callable(forbid):
        allowed &= [not forbid(rule) for rule in grammar.rules]
    else:
        allowed[sorted(forbid)] = False
    allowed = terminating(grammar, allowed)
    if not allowed[[rule.lhs == grammar.start for rule in grammar.rules]].any():
        raise LgfError(
            f"nothing of grammar {quoted(grammar.name)} remains: every sentence needs a rule that order {order}, "
            f"forced {forced} or the forbidden rules take away; forbid less or take another grammar."
        )
    return allowed & reachable(grammar, allowed)


def mentions(*phrases: str) -> Callable[[Rule], bool]:
    """The question whether a rule's body holds one of the phrases, for `restrict(forbid=...)`.

    A phrase is one or more words in a row: `sin`, `u'`, `log(u`, `1/t`. The t of `diff(..., t)` is not an explicit
    time and does not count, so `mentions("t")` forbids all but autonomous equations.
    """
    wanted = [tuple(word for word, _ in words(phrase)) for phrase in phrases]
    for word in (word for phrase in wanted for word in phrase):
        if not is_terminal(word):
            raise LgfError(f"{quoted(word)} is not a word of equations; name variables, functions, numbers or signs.")

    def question(rule: Rule) -> bool:
        body = rule.body
        return any(
            body[i : i + len(phrase)] == phrase and not (phrase[0] == "t" and i > 0 and body[i - 1] == ",")
            for phrase in wanted
            for i in range(len(body))
        )

    return question


def as_mask(grammar: Grammar, allowed: ArrayLike | None) -> Mask:
    """One truth value per rule, a copy; None allows every rule."""
    mask = np.ones(grammar.n_rules, dtype=bool) if allowed is None else np.array(allowed, dtype=bool)
    if mask.shape != (grammar.n_rules,):
        raise LgfError(
            f"allowed has shape {mask.shape} but grammar {quoted(grammar.name)} has {grammar.n_rules} rules; "
            "give one truth value per rule, as restrict does."
        )
    return mask


def terminating(grammar: Grammar, allowed: ArrayLike | None = None) -> Mask:
    """The allowed rules from which some sentence can be completed by allowed rules."""
    mask = as_mask(grammar, allowed)
    nonterminals = frozenset(grammar.nonterminals)
    ending: set[str] = set()
    usable = np.zeros_like(mask)
    while True:
        for i, rule in enumerate(grammar.rules):
            usable[i] = mask[i] and all(s in ending for s in rule.body if s in nonterminals)
        found = {rule.lhs for rule, ends in zip(grammar.rules, usable, strict=True) if ends}
        if found == ending:
            return usable
        ending = found


def reachable(grammar: Grammar, allowed: ArrayLike | None = None) -> Mask:
    """The rules, allowed or not, whose left-hand side the start can lead to by allowed rules."""
    mask = as_mask(grammar, allowed)
    seen = {grammar.start}
    while True:
        found = seen.union(
            *(rule.body for rule, ok in zip(grammar.rules, mask, strict=True) if ok and rule.lhs in seen)
        )
        if found == seen:
            return np.array([rule.lhs in seen for rule in grammar.rules])
        seen = found


def _agrees(grammar: Grammar, rule: Rule, order: int | None, forced: bool | None) -> bool:
    if forced is not None and (rule.forced not in (None, forced) or (INPUT_WORD in rule.body and not forced)):
        return False
    if order is None:
        return True
    if rule.order is not None and (order != 1 if rule.order == 1 else order < rule.order):
        return False
    # An explicit right-hand side must not hold the derivative it defines, an operator none above the wanted order.
    highest = order - 1 if grammar.template == "explicit" else order
    return all((derivative(symbol) or 0) <= highest for symbol in rule.body)
