"""The bits of a sentence under a conditional flow: what `lgf.conditional_flow` lists, computed sentence by sentence."""

from collections.abc import Sequence

import numpy as np

from lgf.conditional_flow import Lack
from lgf.grammar import Derivation
from lgf.language.projections import Projections
from lgf.language.term_table import header_terms, summand_group
from lgf.trained.rule_flow import RuleFlow


def sentence_bits(
    flow: RuleFlow,
    record: Projections,
    allowed: np.ndarray,
    header: Derivation,
    orders: Sequence[Sequence[Derivation]],
    strength: float = 1.0,
) -> float:
    """-log2 p of a sentence, the probabilities of these orders of its summands added."""
    totals = [_order_log_probability(flow, record, allowed, header, summands, strength) for summands in orders]
    return float(-np.logaddexp.reduce(totals) / np.log(2))


def _order_log_probability(
    flow: RuleFlow,
    record: Projections,
    allowed: np.ndarray,
    header: Derivation,
    summands: Sequence[Derivation],
    strength: float,
) -> float:
    grammar = flow.grammar
    state = flow.read(record.features)
    said = np.zeros_like(state)
    states: list[np.ndarray] = []
    gains: list[np.ndarray] = []
    rules: list[int] = []
    for rule in header:
        states.append(state + said)
        gains.append(np.zeros(grammar.n_rules, np.float32))
        rules.append(rule)
        said = said + flow.said[rule]
    groups = list(header_terms(grammar, header))
    for summand in summands:
        lack = Lack(flow, record, state, groups)
        within = np.zeros_like(state)
        for i, rule in enumerate(summand):
            states.append(state + said + within + lack.vector)
            gains.append(lack.gain(tuple(summand[:i])))
            rules.append(rule)
            said, within = said + flow.said[rule], within + flow.said_in_summand[rule]
        group = summand_group(grammar, summand)
        if group is not None:
            groups.append(group)
    log_p = flow.log_probabilities(np.array(states), flow.left_sides[rules], np.array(gains), allowed, strength)
    return float(log_p[np.arange(len(rules)), rules].sum())
