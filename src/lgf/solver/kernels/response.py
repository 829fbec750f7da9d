"""The linear response of a trajectory to terms added to its equation."""

import numpy as np

from lgf.compilation import njit
from lgf.solver.kernels import FASTEST, INNER, KERNEL
from lgf.solver.kernels.lanes import LANES, load, repeated, store
from lgf.solver.kernels.machine import BLOCK, WIDE, run, set_samples

_INLINE = INNER | {"fastmath": FASTEST, "forceinline": True}


@njit(**_INLINE)
def _follow(y, moved, transition, i, rate, half, before, now):
    """Take the deviations y [state, lane] to sample i, half a step from the term before it and half from now."""
    n = y.shape[0]
    store(y, load(y, rate, 0) + half * before, rate, 0)
    for d in range(n):
        total = repeated(0.0)
        for j in range(n):
            total = total + transition[i - 1, d, j] * load(y, j, 0)
        store(moved, total, d, 0)
    for d in range(n):
        store(y, load(moved, d, 0), d, 0)
    store(y, load(y, rate, 0) + half * now, rate, 0)


@njit(**_INLINE)
def _answer(y, sensitivity, i, d, scale, share, term):
    """The deviation of column d at sample i, scaled; of a highest derivative with this share of the term."""
    n = y.shape[0]
    if d < n:
        return scale * load(y, d, 0)
    answer = share * term
    for j in range(n):
        answer = answer + (scale * sensitivity[i, d - n, j]) * load(y, j, 0)
    return answer


@njit(**KERNEL, fastmath=FASTEST)
def respond(transition, sensitivity, steps, columns, begin, state, rate, measured, scale, out, first):
    """Write to out [block, first + row, BLOCK] the response of the measured values to terms added to one equation.

    transition [N - 1, n, n] takes a deviation of the state vector from one sample to the next, sensitivity [N, m, n]
    gives the change of the highest derivatives by the state vector, columns [block, begin + sample, BLOCK] are the
    terms along the trajectory, added to the equation of a state that drives the variable `rate` of the state vector,
    measured lists the columns of the frame that count and scale [measured, N] their weights. Rows run over the
    measured columns, then time.
    """
    N, _, n = sensitivity.shape
    y = np.zeros((n, LANES))
    moved = np.zeros((n, LANES))
    for b in range(columns.shape[0]):
        for part in range(0, BLOCK, LANES):
            y[:] = 0.0
            for i in range(N):
                term = load(columns, b, begin + i, part)
                if i > 0:
                    _follow(
                        y, moved, transition, i, rate, 0.5 * steps[i - 1], load(columns, b, begin + i - 1, part), term
                    )
                for m in range(measured.shape[0]):
                    d = measured[m]
                    s = scale[m, i]
                    answer = _answer(y, sensitivity, i, d, s, s if d - n == state else 0.0, term)
                    store(out, answer, b, first + m * N + i, part)


@njit(**KERNEL, fastmath=FASTEST)
def add_products(
    programs, owner, x, t, columns, inputs, largest, transition, sensitivity, steps, state, rate, measured, scale, own,
    sound, squares, products,
):  # fmt: skip
    """Add the inner products of the responses to many terms, over one experiment: `evaluate_each`, then `respond`.

    Column c is program owner[c] with the first constants of x[c], evaluated at t, columns [column, N] and inputs; own
    [row, k] are the vectors with which its response is multiplied. squares [c] grows by the square of the response,
    products [c, k] by its products with `own`, and sound [c] becomes false if the column is not below `largest`.
    The responses of a block of columns stay in the processor's cache; all of them would not.
    """
    N, n, K = t.shape[0], transition.shape[1], own.shape[1]
    R = np.zeros((programs.n_registers, WIDE))
    along = np.zeros((N, BLOCK))
    y = np.zeros((n, LANES))
    moved = np.zeros((n, LANES))
    square = np.zeros(BLOCK)
    product = np.zeros((K, LANES))
    answers = np.zeros((K, BLOCK))
    for block in range(0, owner.shape[0], BLOCK):
        count = min(BLOCK, owner.shape[0] - block)
        for first in range(0, N, WIDE):
            width = set_samples(R, t, columns, inputs, first)
            for k in range(count):
                o = run(programs, owner[block + k], x[block + k], R)
                fine = True
                for i in range(width):
                    fine &= abs(R[o, i]) < largest
                    along[first + i, k] = R[o, i]
                if not fine:
                    sound[block + k] = False
        for part in range(0, BLOCK, LANES):
            y[:] = 0.0
            product[:] = 0.0
            total_square = repeated(0.0)
            for i in range(N):
                term = load(along, i, part)
                if i > 0:
                    _follow(y, moved, transition, i, rate, 0.5 * steps[i - 1], load(along, i - 1, part), term)
                for m in range(measured.shape[0]):
                    d = measured[m]
                    s = scale[m, i]
                    answer = _answer(y, sensitivity, i, d, s, s if d - n == state else 0.0, term)
                    total_square = total_square + answer * answer
                    for j in range(K):
                        store(product, load(product, j, 0) + own[m * N + i, j] * answer, j, 0)
            store(square, total_square, part)
            for j in range(K):
                store(answers, load(product, j, 0), j, part)
        for k in range(count):
            squares[block + k] += square[k]
            for j in range(K):
                products[block + k, j] += answers[j, k]
