"""The order in which a conditional flow says a sentence: the header first, then the summands, the largest one first.

The largest is the one that explains most of the record beside what was said before it.
"""

from collections.abc import Sequence

import numpy as np

from lgf.grammar import Derivation, Grammar
from lgf.language.projections import Projections
from lgf.language.term_table import header_terms, summand_group


def spoken(
    grammar: Grammar, header: Derivation, summands: Sequence[Derivation], record: Projections
) -> tuple[list[Derivation], np.ndarray]:
    """(the summands in the order in which they are said, what is missing [summand, feature] before each of them)."""
    groups = list(header_terms(grammar, header))
    rest = list(summands)
    order: list[Derivation] = []
    missing: list[np.ndarray] = []
    while rest:
        features, _ = record.missing(groups)
        missing.append(features)
        own = [summand_group(grammar, s) for s in rest]
        # a summand without a group is said last
        best = min(range(len(rest)), key=lambda i: (features[own[i]] if own[i] is not None else 1.0, rest[i]))
        order.append(rest.pop(best))
        group = own[best]
        if group is not None:
            groups.append(group)
    return order, np.array(missing).reshape(len(order), record.table.n_groups + 2)
