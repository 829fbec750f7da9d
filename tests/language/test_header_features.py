"""What headers leave, against least squares on columns at random."""

import numpy as np
import pytest

from lgf.grammar import load_grammar
from lgf.language.header_features import header_features, n_header_features
from lgf.language.term_table import term_table


def _left(columns: np.ndarray, y: np.ndarray) -> float:
    rest = y - columns.T @ np.linalg.lstsq(columns.T, y, rcond=None)[0]
    return float(rest @ rest)


@pytest.mark.parametrize("order", [1, 2])
def test_headers_and_kinds_are_least_squares(order):
    table = term_table(load_grammar("standard"))
    group = table.by_order[order].group
    rng = np.random.default_rng(order)
    columns = rng.standard_normal((len(group), 30))
    y = columns[:5].sum(0)
    columns, y = columns / np.linalg.norm(columns, axis=1)[:, None], y / np.linalg.norm(y)
    features = header_features(table, order, (columns @ columns.T).astype(np.float32), columns @ y)
    assert len(features) == n_header_features(table)
    kinds = np.array(table.kinds)[group]
    beside = features[len(table.headers) :].reshape(-1, table.n_kinds)
    checked = 0
    for i, header in enumerate(table.headers):
        own = [np.flatnonzero(group == g) for g in header]
        if any(len(c) == 0 for c in own):  # u' has no column at order 1
            assert order == 1
            assert features[i] == 0.0
            continue
        chosen = [int(c[0]) for c in own]
        left = _left(columns[chosen], y)
        assert features[i] == pytest.approx(np.log10(max(left, 1e-5)), abs=1e-3)
        if i < len(beside):
            for kind in np.unique(kinds):
                least = min(_left(columns[[*chosen, int(c)]], y) for c in np.flatnonzero(kinds == kind))
                assert beside[i, kind] == pytest.approx(np.log10(max(least / left, 1e-5)), abs=1e-4)  # single precision
        checked += 1
    assert checked > 20


def test_kinds_are_the_first_rules_of_summands():
    table = term_table(load_grammar("standard"))
    assert set(table.kinds[:7]) == {0}  # 1, u, u' and the powers of the slots
    assert set(table.kinds[len(table.terms) :]) == {1}
    assert table.n_kinds == 2 + 8
