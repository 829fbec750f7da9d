"""Instantiation of a grammar for systems: the rules of one row of a frame.

A grammar with `template: system` names no state. Its rules say

    u, u'          the state of the row, and its derivatives below its order
    v, v', w, w'   two different other states, and their derivatives below their orders
    t, F           time, and a known input

A rule with v, w or F stands for one rule for each choice of states and inputs. These share the weight of the rule, so
a rule has the same share whatever the number of states. A rule without any choice (u' in a row of order 1, v in a frame
of one state) does not exist, and the other rules of its left-hand side take its share.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import permutations, product

from lgf.errors import LgfError, quoted
from lgf.expression.frame import Frame, Variable
from lgf.grammar.rules import Grammar, Rule
from lgf.grammar.vocabulary import INPUT_WORD, OTHER_WORDS, STATE_WORD, row_state


@lru_cache(maxsize=64)
def instantiate(grammar: Grammar, frame: Frame, row: int) -> Grammar:
    """The grammar of the right-hand side of this row, with the frame's names as words.

    Nonterminals are put in angle brackets, so that none has the name of a state.
    """
    if grammar.template != "system":
        raise LgfError(
            f"the grammar {quoted(grammar.name)} says equations of one state, but the states are "
            f"{', '.join(frame.names)}; take 'systems', or a grammar with 'template: system'."
        )
    bracketed = {name: f"<{name}>" for name in grammar.nonterminals}
    rules = [
        replace(
            rule,
            lhs=bracketed[rule.lhs],
            body=tuple(bracketed.get(word, binding.get(word, word)) for word in rule.body),
            weight=rule.weight / len(bindings),
            order=None,
            forced=None,
        )
        for rule in grammar.rules
        for bindings in [list(_bindings(rule, frame, row))]
        for binding in bindings
    ]
    rules = _defined(rules, frozenset(bracketed.values()))
    if not rules or rules[0].lhs != bracketed[grammar.start]:
        raise LgfError(
            f"nothing of grammar {quoted(grammar.name)} remains for the row of {frame.names[row]}; every sentence "
            "needs a state, derivative or input that the frame lacks."
        )
    summand = tuple(bracketed[name] for name in grammar.summand)
    return Grammar(grammar.name, grammar.template, tuple(rules), grammar.max_length, summand)


def _bindings(rule: Rule, frame: Frame, row: int) -> Iterator[dict[str, str]]:
    """The choices of states and inputs for the words of a rule, as the spelling of each word."""
    order = frame.orders[row]
    if rule.order is not None and (order != 1 if rule.order == 1 else order < rule.order):
        return
    if rule.forced not in (None, bool(frame.inputs)):
        return
    words = {word: state for word in rule.body if (state := row_state(word)) is not None}
    others = [word for word in OTHER_WORDS if any(name == word for name, _ in words.values())]
    rest = [i for i in range(len(frame.states)) if i != row]
    inputs = frame.inputs if INPUT_WORD in rule.body else (INPUT_WORD,)
    for chosen, signal in product(permutations(rest, len(others)), inputs):
        states = {STATE_WORD: row, **dict(zip(others, chosen, strict=True))}
        if all(derivative < frame.orders[states[name]] for name, derivative in words.values()):
            spelled = {
                word: str(Variable(frame.names[states[name]], derivative)) for word, (name, derivative) in words.items()
            }
            yield {**spelled, INPUT_WORD: signal}


def _defined(rules: list[Rule], nonterminals: frozenset[str]) -> list[Rule]:
    """The rules whose nonterminals all have rules."""
    while True:
        known = {rule.lhs for rule in rules}
        usable = [rule for rule in rules if all(word in known for word in rule.body if word in nonterminals)]
        if len(usable) == len(rules):
            return rules
        rules = usable
