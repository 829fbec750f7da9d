"""Masks over the rules of a grammar: those usable for a known order, forcing or forbidden functions.

A mask is a boolean array over the rules, without the padding rule. A model trained on the whole grammar can thus be
restricted when it is used.
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
    """The mask of the rules usable for this order and forcing (None: not known).

    `forbid` is a predicate on rules (see `mentions`) or a collection of rule numbers. The mask also excludes rules
    that can no longer terminate or be reached.
    """
    allowed = np.array([_fits(grammar, rule, order, forced) for rule in grammar.rules])
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
    """A predicate that is true for a rule whose body holds one of the phrases, for `restrict(forbid=...)`.

    A phrase is one or more words in a row: `sin`, `u'`, `log(u`, `1/t`. The t of `diff(..., t)` does
    not count, so `mentions("t")` forbids all but autonomous equations.
    """
    sequences = [tuple(word for word, _ in words(phrase)) for phrase in phrases]
    for word in (word for phrase in sequences for word in phrase):
        if not is_terminal(word):
            raise LgfError(f"{quoted(word)} is not a word of equations; name variables, functions, numbers or signs.")

    def predicate(rule: Rule) -> bool:
        body = rule.body
        return any(
            body[i : i + len(phrase)] == phrase and not (phrase[0] == "t" and i > 0 and body[i - 1] == ",")
            for phrase in sequences
            for i in range(len(body))
        )

    return predicate


def as_mask(grammar: Grammar, allowed: ArrayLike | None) -> Mask:
    """A copy of the mask, one truth value per rule; None allows every rule."""
    mask = np.ones(grammar.n_rules, dtype=bool) if allowed is None else np.array(allowed, dtype=bool)
    if mask.shape != (grammar.n_rules,):
        raise LgfError(
            f"allowed has shape {mask.shape} but grammar {quoted(grammar.name)} has {grammar.n_rules} rules; "
            "give one truth value per rule, as restrict does."
        )
    return mask


def terminating(grammar: Grammar, allowed: ArrayLike | None = None) -> Mask:
    """The mask of the allowed rules that allowed rules can complete to a sentence."""
    mask = as_mask(grammar, allowed)
    nonterminals = frozenset(grammar.nonterminals)
    terminated: set[str] = set()
    usable = np.zeros_like(mask)
    while True:
        for i, rule in enumerate(grammar.rules):
            usable[i] = mask[i] and all(s in terminated for s in rule.body if s in nonterminals)
        extended = {rule.lhs for rule, ends in zip(grammar.rules, usable, strict=True) if ends}
        if extended == terminated:
            return usable
        terminated = extended


def reachable(grammar: Grammar, allowed: ArrayLike | None = None) -> Mask:
    """The mask of the rules, allowed or not, whose left-hand side is reachable from the start by allowed rules."""
    mask = as_mask(grammar, allowed)
    symbols = {grammar.start}
    while True:
        extended = symbols.union(
            *(rule.body for rule, ok in zip(grammar.rules, mask, strict=True) if ok and rule.lhs in symbols)
        )
        if extended == symbols:
            return np.array([rule.lhs in symbols for rule in grammar.rules])
        symbols = extended


def _fits(grammar: Grammar, rule: Rule, order: int | None, forced: bool | None) -> bool:
    if forced is not None and (rule.forced not in (None, forced) or (INPUT_WORD in rule.body and not forced)):
        return False
    if order is None:
        return True
    if rule.order is not None and (order != 1 if rule.order == 1 else order < rule.order):
        return False
    # An explicit right-hand side excludes the derivative it defines; an operator form excludes those above the order.
    highest = order - 1 if grammar.template == "explicit" else order
    return all((derivative(symbol) or 0) <= highest for symbol in rule.body)
