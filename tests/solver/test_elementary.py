"""The vectorised elementary functions against NumPy."""

import numpy as np
import pytest
from numba import njit

from lgf.solver.kernels import machine
from lgf.solver.kernels.machine import NO_TABLE, execute

RNG = np.random.default_rng(0)


@njit
def execute_wide(code, R):
    execute(code, R, NO_TABLE)  # it cannot be called from Python


def execute_lanes(code, R):
    machine.execute_lanes(code, R, NO_TABLE)


def run(op, x, wide):
    width = machine.WIDE if wide else machine.LANES
    run_once = execute_wide if wide else execute_lanes
    out = np.empty(len(x))
    code = np.array([[op, 1, 0, 0, 0]], np.int32)
    for first in range(0, len(x), width):
        R = np.zeros((2, width))
        part = x[first : first + width]
        R[0, : len(part)] = part
        run_once(code, R)
        out[first : first + width] = R[1, : len(part)]
    return out


SPAN = np.concatenate([RNG.uniform(-1, 1, 500), RNG.uniform(-50, 50, 500), 10 ** RNG.uniform(-12, 2.8, 500), [0.0]])


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize(
    ("op", "reference", "x"),
    [
        (machine.SIN, np.sin, np.concatenate([SPAN, RNG.uniform(-9e4, 9e4, 500), RNG.uniform(1e6, 1e9, 64)])),
        (machine.COS, np.cos, np.concatenate([SPAN, RNG.uniform(-9e4, 9e4, 500), RNG.uniform(1e6, 1e9, 64)])),
        (machine.EXP, np.exp, SPAN),
        (machine.LOG, np.log, np.abs(SPAN[SPAN != 0])),
        (machine.TANH, np.tanh, SPAN),
        (machine.SQRT, np.sqrt, np.abs(SPAN)),
        (machine.ABS, np.abs, SPAN),
    ],
)
def test_agrees_with_numpy_to_the_last_digits(op, reference, x, wide):
    np.testing.assert_allclose(run(op, x, wide), reference(x), rtol=4e-15, atol=4e-16)


def test_edges_are_those_of_ieee_arithmetic():
    x = np.array([0.0, -1.0, np.inf, np.nan])
    np.testing.assert_array_equal(run(machine.LOG, x, True), [-np.inf, np.nan, np.inf, np.nan])
    np.testing.assert_array_equal(run(machine.EXP, np.array([800.0, -800.0, np.nan]), True), [np.inf, 0.0, np.nan])
    assert np.isnan(run(machine.SIN, np.array([np.inf, np.nan]), True)).all()
    assert np.isnan(run(machine.SQRT, np.array([-1.0]), True)).all()
    np.testing.assert_array_equal(run(machine.TANH, np.array([40.0, -40.0]), True), [1.0, -1.0])


def test_forcing_table_stays_inside_its_pieces():
    # one header for each input (start, pieces per unit of time, first row, number of rows), then the cubic pieces
    table = np.array([
        [0.0, 1.0, 2.0, 2.0],
        [1.0, 0.5, 4.0, 1.0],
        [1.0, 2.0, 0.0, 0.0], [3.0, 0.0, 1.0, 0.0],
        [7.0, 0.0, 0.0, 8.0],
    ])  # fmt: skip
    code = np.array([[machine.INPUT, 1, 0, 0, 0], [machine.INPUT, 2, 0, 1, 0]], np.int32)
    R = np.zeros((3, machine.LANES))
    R[0] = [-5.0, 0.0, 0.5, 1.0, 1.5, 2.0, 9.0, np.nan]
    machine.execute_lanes(code, R, table)
    np.testing.assert_allclose(R[1], [1.0, 1.0, 2.0, 3.0, 3.25, 4.0, 4.0, 1.0])
    np.testing.assert_allclose(R[2], [7.0, 7.0, 7.0, 7.0, 7.125, 8.0, 15.0, 7.0])
