"""The projections against least squares, term by term."""

import numpy as np
import pytest

from lgf.expression.numeric import evaluate
from lgf.grammar import load_grammar
from lgf.language.projections import GridRecord, n_features, project
from lgf.language.term_table import N_UNITS, header_terms, summand_group, term_table
from lgf.smoothing.grid_integrals import GRID, TAU, grid_integrals
from lgf.solver.kernels import projections
from lgf.solver.kernels.machine import WIDE, Program, Programs, evaluate_wide
from lgf.solver.kernels.projections import best_pairs, subtract_projection, term_rows


def _oscillation(scale: float = 1.0, pace: float = 1.0) -> GridRecord:
    """U = exp(-t/10) sin(2t) + 1.5, u'' measured through u."""
    window = 10.0
    t = window * TAU
    a, b = -0.1, 2.0
    z = (a + 1j * b) ** np.arange(3)[:, None] * np.exp((a + 1j * b) * t)
    columns = z.imag
    columns[0] += 1.5
    columns = columns * scale * pace ** np.arange(3)[:, None]
    return GridRecord(
        columns[None], np.zeros((1, GRID)), np.array([0.0]), np.array([window / pace]), 2, False, 0, 0.01, 100.0
    )


def _integrated_twice(f: np.ndarray, window: float) -> np.ndarray:
    from scipy.interpolate import CubicSpline

    t = window * TAU
    twice = CubicSpline(t, f).antiderivative(2)
    return twice(t)


def _filter(record: GridRecord) -> np.ndarray:
    """Slow modes of two integrals lose weight, by the squared frequency of the record."""
    integrals = grid_integrals(2)
    ratio = np.mean((record.columns[0, 1] * record.window[0]) ** 2) / np.var(record.columns[0, 0])
    return (integrals.modes / np.sqrt(1.0 + (ratio * integrals.sizes) ** 2)).T[:64]


def _left(record: GridRecord, columns: list[np.ndarray]) -> float:
    """The squared share of the measured column that the columns do not explain, beside initial values."""
    weighted = _filter(record) @ np.array([np.ones(GRID), TAU, *columns, record.columns[0, 0]]).T
    design, y = weighted[:, :-1] / np.linalg.norm(weighted[:, :-1], axis=0), weighted[:, -1]
    rest = [y - A @ np.linalg.lstsq(A, y, rcond=None)[0] for A in (design[:, :2], design)]
    return float(rest[1] @ rest[1] / (rest[0] @ rest[0]))


def _column(record: GridRecord, table, group: int) -> np.ndarray:
    t = record.start[0] + record.window[0] * TAU
    environment = {"t": t} | {("u", d): record.columns[0, d] for d in range(2)}
    f = np.broadcast_to(evaluate(table.terms[group], environment), t.shape)
    return _integrated_twice(np.array(f), float(record.window[0]))


def test_alone_beside_linear_terms_and_missing_are_least_squares():
    record, table = _oscillation(), term_table(load_grammar("standard"))
    projections = project(record, table)
    assert len(projections.features) == n_features(table)[0]
    base = [_column(record, table, g) for g in table.base(2)]
    plain = [g for g, term in enumerate(table.terms) if not any(e.head == "constant" for e in term.nodes())]
    checked = 0
    for g in plain:
        if g in table.base(2) or not projections.gram[np.flatnonzero(projections.group == g)[0]].any():
            continue
        column = _column(record, table, g)
        alone = np.log10(max(_left(record, [column]), 1e-5))
        assert projections.features[g] == pytest.approx(alone, abs=0.02)
        without, with_it = _left(record, base[:2]), _left(record, [*base[:2], column])
        missing, _ = projections.missing(table.base(2)[:2])
        if missing[g] != 0.0:  # 0 where the column says nothing that the others do not say
            assert missing[g] == pytest.approx(np.log10(max(with_it / without, 1e-5)), abs=0.15)  # single precision
        assert 10 ** missing[-2] == pytest.approx(without, rel=0.02)
        checked += 1
    assert checked > 20
    # u'' = -0.2 u' - 4.01 (u - 1.5) holds exactly: nothing is missing beside the linear terms
    missing, chosen = projections.missing(table.base(2))
    assert missing[-2] < -4
    assert len(chosen) == 3


def test_features_are_free_of_units():
    """The terms with constants inside adapt to the units; those without change."""
    table = term_table(load_grammar("standard"))
    one, other = project(_oscillation(), table), project(_oscillation(scale=1000.0, pace=0.01), table)
    scaled = [
        g for g, term in enumerate(table.terms) if str(term).count("constant") == 1 and "exponent" not in str(term)
    ]
    power = [table.terms.index(t) for t in table.terms[:7]]
    assert np.allclose(one.features[power], other.features[power], atol=1e-3)
    assert np.allclose(one.features[scaled], other.features[scaled], atol=1e-2)
    # what headers of linear terms and powers leave
    plain = 5 * table.n_groups + 8 + np.array([i for i, h in enumerate(table.headers) if max(h) < 7])
    assert len(plain) > 50
    assert np.allclose(one.features[plain], other.features[plain], atol=1e-2)
    assert np.allclose(one.features[-17:], other.features[-17:], atol=1e-6)


def test_best_pairs_against_all_pairs():
    rng = np.random.default_rng(1)
    columns, y = rng.standard_normal((9, 30)), rng.standard_normal(30)
    columns[8] = columns[7] + 1e-9 * columns[0]  # no pair
    unit = columns / np.linalg.norm(columns, axis=1)[:, None]
    y /= np.linalg.norm(y)

    def left(chosen: list[int]) -> float:
        A = unit[chosen].T
        rest = y - A @ np.linalg.lstsq(A, y, rcond=1e-6)[0]
        return float(rest @ rest)

    pair = np.zeros(9)
    first, second = best_pairs((unit @ unit.T).astype(np.float32), unit @ y, np.array([0, 3]), pair)
    before, expected, best = left([0, 3]), np.zeros(9), (2.0, 0, 0)
    for i in range(9):
        for j in range(i):
            if {i, j} & {0, 3}:
                continue
            after = left([0, 3, i, j])
            best = min(best, (after, i, j)) if {i, j} != {7, 8} else best
            for k in (i, j):
                expected[k] = max(expected[k], 1 - after / before)
    assert (first, second) == best[1:]
    others = [k for k in range(9) if k not in (0, 3)]
    assert np.allclose(pair[others], expected[others], atol=1e-6)


def test_best_pairs_of_many_columns_against_a_loop():
    """More columns than lanes, some of them equal, so that pairs tie: the first one is taken."""
    rng = np.random.default_rng(2)
    columns, y = rng.standard_normal((45, 60)), rng.standard_normal(60)
    columns[30:40] = columns[5:15]
    unit = columns / np.linalg.norm(columns, axis=1)[:, None]
    gram, c = (unit @ unit.T).astype(np.float32), unit @ y / np.linalg.norm(y)
    gram[30:40], gram[:, 30:40], c[30:40] = gram[5:15], gram[:, 5:15], c[5:15]
    pair, expected, best = np.zeros(45), c**2, (-1.0, 0, 0)
    first, second = best_pairs(gram, c, np.zeros(0, np.int64), pair)
    for i in range(45):
        for j in range(i):
            g = float(gram[i, j])
            if 1 - g * g > 1e-3:
                e = (c[i] ** 2 + c[j] ** 2 - 2 * c[i] * c[j] * g) / (1 - g * g)
                expected[i], expected[j] = max(expected[i], e), max(expected[j], e)
                best = (e, i, j) if e > best[0] + 1e-9 else best
    assert (first, second) == best[1:]
    assert np.allclose(pair, expected, atol=1e-6)


@pytest.mark.parametrize("n", [128, 150, 3 * 128])
def test_terms_over_the_grid_one_by_one(n):
    """Any number of samples; a column that is infinite somewhere is zero."""
    table = term_table(load_grammar("standard")).by_order[2]
    rng = np.random.default_rng(n)
    t, columns, inputs = np.linspace(0.0, 5.0, n), rng.standard_normal((3, n)), rng.standard_normal((1, n))
    units = np.linspace(0.5, 2.0, N_UNITS)
    rows = np.full((len(table.owner), n), np.nan, np.float32)
    args = table.programs, table.owner, table.relative, table.unit, units, table.cofactors
    term_rows(*args, t, columns, inputs, 1e100, rows)

    def one(programs: Programs, k: int, x: np.ndarray) -> np.ndarray:
        code, literals = programs.code_first, programs.literal_first
        program = Program(
            programs.code[code[k] : code[k + 1]], programs.literals[literals[k] : literals[k + 1]],
            programs.outputs[k : k + 1], programs.n_registers, programs.constants_at,
        )  # fmt: skip
        out = np.zeros((1, n))
        evaluate_wide(program, x, t, columns, inputs, np.zeros((programs.n_registers, WIDE)), out)
        return out[0]

    sizes = [np.abs(one(table.cofactors, k, np.zeros(0))).mean() for k in range(len(table.cofactors.outputs))]
    sizes = np.array([*units, *(s if 0 < s < np.inf else 1.0 for s in sizes)])
    for c, k in enumerate(table.owner):
        p = table.programs.p[k]
        row = one(table.programs, k, table.relative[c, :p] / sizes[table.unit[c, :p]])
        sound = (np.abs(row) < 1e100).all() and row.any()
        expected = row / np.sqrt(np.mean(row**2)) if sound else np.zeros(n)
        assert np.allclose(rows[c], expected, rtol=1e-5, atol=1e-5), c
    assert 0 < (rows == 0).all(1).sum() < len(rows) / 2


@pytest.mark.parametrize("k", [1, 63, 64, 130])
def test_projections_subtracted_from_rows(k):
    rng = np.random.default_rng(k)
    X, Z = rng.standard_normal((k, 64)).astype(np.float32), rng.standard_normal((3, 64)).astype(np.float32)
    Z[2] = Z[0] - 2 * Z[1]  # says nothing that the others do not say
    X[0] = 0.0
    basis = np.linalg.qr(Z[:2].T.astype(float))[0]
    expected = X - X @ basis @ basis.T
    share = np.linalg.norm(expected, axis=1) / np.maximum(np.linalg.norm(X, axis=1), 1e-30)
    left = subtract_projection(X, Z)
    assert np.allclose(X, expected, atol=1e-5)
    assert np.allclose(left, share, atol=1e-5)


def test_groups_of_headers_and_summands():
    from lgf.expression.print import plain
    from lgf.grammar import split_rules
    from lgf.paper.derivations.parsing import parse

    grammar = load_grammar("standard")
    table = term_table(grammar)
    header, summands = split_rules(grammar, parse(grammar, "C*u + C*u' + C*u'^3"))
    names = [plain(table.terms[g]) for g in header_terms(grammar, tuple(header))]
    assert names == ["u", "u'"]
    group = summand_group(grammar, summands[0])
    assert group is not None
    assert plain(table.terms[group]) == "u'^3"


def test_kernels_are_compiled_ahead_for_the_types_that_they_get():
    project(_oscillation(), term_table(load_grammar("standard"))).missing((0,))
    for name in ("term_rows", "subtract_projection", "beside", "best_pairs"):
        assert list(getattr(projections, name).signatures) == [getattr(projections, name.upper())]
