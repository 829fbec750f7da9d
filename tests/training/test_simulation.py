"""What the simulation computes for eight solutions at once, against plain loops."""

import numpy as np
import pytest

from lgf.equation.skeleton import Skeleton
from lgf.expression.numeric import evaluate
from lgf.expression.parse import read_expression
from lgf.solver.kernels.machine import LANES, WIDE, evaluate_wide
from lgf.solver.program import compile_skeleton
from lgf.training import simulation
from lgf.training.simulation import POINTS


def _picture(forced: bool = True, positive: bool = False) -> simulation._Picture:
    rng = np.random.default_rng(4)
    return simulation._draw_picture(2, forced, positive, False, rng)


@pytest.mark.parametrize("shared", [True, False])
def test_terms_of_each_lane(shared):
    compiled = compile_skeleton(Skeleton.read("u'' = C*u + C*sin(C*u) + C*u'*exp(C*t)"))
    rng, basis = np.random.default_rng(0), compiled.equations[0].basis
    t, constants = np.linspace(0.0, 2.0, 65), rng.uniform(0.5, 1.5, (compiled.n_constants, 5))
    columns = rng.standard_normal((1 if shared else 5, 3, 65))
    terms = simulation._terms(compiled, constants, t, columns, np.zeros((1, 65)))
    for lane in range(5):
        out, registers = np.zeros((len(basis.outputs), 65)), np.zeros((basis.n_registers, WIDE))
        own = columns[0 if shared else lane]
        evaluate_wide(basis, constants[:, lane].copy(), t, own, np.zeros((0, 65)), registers, out)
        assert np.array_equal(terms[lane], -out[:-1])


def test_the_table_of_an_input_has_central_slopes():
    picture = _picture()
    f, slope = picture.forcing, np.gradient(picture.forcing)
    table = simulation._table(picture)
    assert np.array_equal(table[0], [picture.start, 256 / picture.window, 1.0, 256.0])
    assert np.array_equal(table[1:, 0], f[:-1])
    assert np.array_equal(table[1:, 1], slope[:-1])
    assert np.allclose(table[1:].sum(1), f[1:])  # a piece ends where the next one begins
    assert np.allclose(table[1:] @ [0, 1, 2, 3], slope[1:])


@pytest.mark.parametrize("text", ["u", "u^2", "1/t", "log(u)", "sqrt(t)"])
def test_the_size_of_a_cofactor_is_a_median(text):
    picture, cofactor = _picture(), read_expression(text)
    with np.errstate(all="ignore"):
        values = np.abs(evaluate(cofactor, {"t": picture.t, ("u", 0): picture.columns[0]}))
    assert simulation._cofactor_size(cofactor, picture) == np.median(values[np.isfinite(values)])


@pytest.mark.parametrize("positive", [True, False])
def test_sound_solutions_by_their_definition(positive):
    tau = np.linspace(0.0, 1.0, POINTS)
    u = np.stack(
        [
            np.sin(9 * tau), 2 + np.sin(9 * tau), np.ones(POINTS), 1 + 0.01 * tau, np.exp(-60 * tau),
            np.where(tau < 0.5, np.sin(9 * tau), np.nan), 1 + tau, 1e-7 * np.sin(9 * tau),
        ],
        1,
    )  # fmt: skip
    values = np.stack([u, np.gradient(u, axis=0), np.gradient(np.gradient(u, axis=0), axis=0)], 1)
    values[0, 2, 6] = 1e3  # a single spike
    expected = []
    for lane in range(LANES):
        own, top = values[:, 0, lane], values[::6, 2, lane]
        rate = np.sqrt(np.mean(top**2))
        expected.append(
            np.isfinite(own).all() and np.isfinite(top).all() and own.std() > 0.04 * np.sqrt(np.mean(own**2))
            and own.std() > 1e-6 and own[POINTS // 4 :].std() > 0.02 * own.std()
            and 1e-9 < rate < 1e9 and np.abs(top).max() < 12.5 * rate and (own.min() > 0 or not positive)
        )  # fmt: skip
    assert simulation._sound(values, 2, positive).tolist() == expected
    assert 0 < sum(expected) < LANES
