"""Eight numbers at a time against NumPy."""

import numpy as np
from numba import njit

from lgf.solver.kernels.lanes import (
    LANES,
    absolute,
    anywhere,
    exponent,
    has_bit,
    load,
    mantissa,
    power_of_two,
    repeated,
    root,
    rounded,
    store,
    where,
)


@njit(error_model="numpy")
def compute(rows, cube):
    a, b = load(rows, 0, 0), load(rows, 1, 0)
    store(rows, 2.0 * a - b / 3.0, 2, 0)
    store(rows, where(a > b, a, -b), 3, 0)
    store(rows, power_of_two(rounded(a)), 4, 0)
    store(rows, exponent(b), 5, 0)
    store(rows, mantissa(b), 6, 0)
    store(rows, where(has_bit(rounded(a), 2), repeated(1.0), repeated(0.0)), 7, 0)
    store(cube, root(absolute(a)), 1, 2, 0)
    return anywhere(a > 4.0), anywhere(a > 6.0)


def test_arithmetic_and_bits_agree_with_numpy():
    a, b = np.linspace(-5.2, 5.2, LANES), np.geomspace(1e-200, 1e200, LANES)
    rows, cube = np.zeros((8, LANES)), np.zeros((2, 3, LANES))
    rows[:2] = a, b
    assert compute(rows, cube) == (True, False)
    m, e = np.frexp(b)
    whole = np.rint(a).astype(int)
    expected = [2 * a - b / 3, np.where(a > b, a, -b), 2.0**whole, e, m, (whole & 2) / 2]
    np.testing.assert_allclose(rows[2:], expected, rtol=1e-15)
    np.testing.assert_array_equal(cube[1, 2], np.sqrt(np.abs(a)))


def test_a_place_in_the_middle_of_a_row_is_read_and_written():
    @njit
    def move(wide):
        store(wide, load(wide, 0, LANES), 1, 2 * LANES)

    wide = np.arange(6.0 * LANES).reshape(2, -1)
    move(wide)
    np.testing.assert_array_equal(wide[1, 2 * LANES :], wide[0, LANES : 2 * LANES])
