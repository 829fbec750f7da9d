"""The summands of a term table as a tree of rules: which terms a rule leads to, and how likely.

The projections tell how much evidence there is for a term, but a conditional flow chooses rules. The tree carries the
evidence over: a rule that leads to terms with odds o_g, in place of 1 by the grammar, gains a factor of sum p_g * o_g,
where p_g is the grammar's probability of the term after the rule.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lgf.grammar import Derivation, Grammar, restrict
from lgf.language.term_dictionary import term_dictionary
from lgf.language.term_table import ORDERS, term_table


@dataclass(frozen=True, eq=False)
class SummandTree:
    """The begins of summands that lead to terms of the table, and what they lead to.

    nodes    the number of each begin of a summand
    chances  [node, rule, group + 1]: the grammar's probability of each group if the rule comes next; the last is that
             of all other summands
    """

    nodes: dict[Derivation, int]
    chances: np.ndarray

    def gain(self, odds: np.ndarray, begin: Derivation) -> np.ndarray:
        """The logarithm of the factor of each rule after this begin, by the odds [group] of the terms."""
        node = self.nodes.get(begin)
        if node is None:
            return np.zeros(self.chances.shape[1], np.float32)
        return np.log(self.chances[node, :, :-1] @ odds + self.chances[node, :, -1])


@lru_cache(maxsize=4)
def summand_tree(grammar: Grammar) -> SummandTree:
    """The tree of the grammar's term table."""
    table = term_table(grammar)
    number = {term: i for i, term in enumerate(table.terms)}
    weights = np.array([rule.weight for rule in grammar.rules])
    totals: dict[str, float] = {}
    for rule, weight in zip(grammar.rules, weights, strict=True):
        totals[rule.lhs] = totals.get(rule.lhs, 0.0) + float(weight)
    chance = np.array([w / totals[rule.lhs] for rule, w in zip(grammar.rules, weights, strict=True)])
    nodes: dict[Derivation, int] = {}
    found: list[tuple[int, int, int, float]] = []
    for term in term_dictionary(grammar, restrict(grammar, order=ORDERS[-1])).terms:
        if len(term.parts) != 1 or term.parts[0] not in number:
            continue
        for i, rule in enumerate(term.derivation):
            node = nodes.setdefault(term.derivation[:i], len(nodes))
            rest = float(np.prod(chance[list(term.derivation[i + 1 :])]))
            found.append((node, rule, number[term.parts[0]], rest))
    chances = np.zeros((len(nodes), grammar.n_rules, table.n_groups + 1), np.float32)
    for node, rule, group, rest in found:
        chances[node, rule, group] += rest
    chances[:, :, -1] = np.maximum(1.0 - chances[:, :, :-1].sum(2), 1e-6)
    return SummandTree(nodes, chances)
