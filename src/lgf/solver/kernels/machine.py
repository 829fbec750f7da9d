"""The register machine: runs three-address code over several lanes at once.

A program is an int32 array of rows (operation, destination, a, b, c); registers are the rows of a float64 array, and
the lanes its columns. One machine is eight lanes wide (trajectories: one lane per vector of constants), one is
sixty-four wide (residuals: one lane per sample).
"""

import math

import numpy as np
from numba import njit

from lgf.solver.kernels import FAST, KERNEL
from lgf.solver.kernels.elementary import LARGEST_ANGLE, exponential, hyperbolic_tangent, logarithm, sine

ADD, SUB, MUL, DIV, MADD, NEG, SIN, COS, EXP, LOG, POW, SQRT, ABS, TANH, COPY, FORCE = range(16)

LANES = 8
WIDE = 64
BLOCK = 16  # columns that a linear answer is worked out for at a time


def _make_machine(width):
    @njit(**KERNEL, fastmath=FAST)
    def execute(code, R, table, table_start, table_rate):
        """Run the code on R [registers, width]; `table` holds the sampled forcing as cubic pieces."""
        for i in range(code.shape[0]):
            op = code[i, 0]
            d = np.uint64(code[i, 1])
            a = np.uint64(code[i, 2])
            b = np.uint64(code[i, 3])
            c = np.uint64(code[i, 4])
            if op == MUL:
                for k in range(width):
                    R[d, k] = R[a, k] * R[b, k]
            elif op == MADD:
                for k in range(width):
                    R[d, k] = R[a, k] * R[b, k] + R[c, k]
            elif op == ADD:
                for k in range(width):
                    R[d, k] = R[a, k] + R[b, k]
            elif op == SUB:
                for k in range(width):
                    R[d, k] = R[a, k] - R[b, k]
            elif op == DIV:
                for k in range(width):
                    R[d, k] = R[a, k] / R[b, k]
            elif op == NEG:
                for k in range(width):
                    R[d, k] = -R[a, k]
            elif op == SIN or op == COS:
                turns = op - SIN
                largest = 0.0
                for k in range(width):
                    q = abs(R[a, k])
                    largest = q if q > largest else largest
                if largest < LARGEST_ANGLE:
                    for k in range(width):
                        R[d, k] = sine(R[a, k], turns)
                else:
                    for k in range(width):
                        x = R[a, k]
                        if abs(x) < 1e15:
                            R[d, k] = math.sin(x) if turns == 0 else math.cos(x)
                        else:
                            R[d, k] = np.nan
            elif op == EXP:
                for k in range(width):
                    R[d, k] = exponential(R[a, k])
            elif op == LOG:
                for k in range(width):
                    R[d, k] = logarithm(R[a, k])
            elif op == POW:
                for k in range(width):
                    R[d, k] = R[a, k] ** R[b, k]
            elif op == SQRT:
                for k in range(width):
                    R[d, k] = math.sqrt(R[a, k]) if R[a, k] >= 0.0 else np.nan
            elif op == ABS:
                for k in range(width):
                    R[d, k] = abs(R[a, k])
            elif op == TANH:
                for k in range(width):
                    R[d, k] = hyperbolic_tangent(R[a, k])
            elif op == FORCE:
                pieces = table.shape[0]
                for k in range(width):
                    x = (R[a, k] - table_start) * table_rate
                    x = x if x > 0.0 else 0.0  # NaN too: the index must stay inside the table
                    x = x if x < pieces else np.float64(pieces)
                    j = min(int(x), pieces - 1)
                    s = x - j
                    R[d, k] = ((table[j, 3] * s + table[j, 2]) * s + table[j, 1]) * s + table[j, 0]
            else:
                for k in range(width):
                    R[d, k] = R[a, k]

    return execute


execute_lanes = _make_machine(LANES)
execute_wide = _make_machine(WIDE)

_NO_TABLE = np.zeros((1, 4))


@njit(**KERNEL)
def evaluate_wide(code, outputs, literals, n, p, x, t, states, forcing, R, B):
    """Write the outputs of a program, for these constants, over many samples to the rows of B [outputs, sample].

    states [n + 1, sample] are u .. u^(n), and the forcing is a column beside them.
    """
    N = t.shape[0]
    for j in range(p):
        for k in range(WIDE):
            R[n + 3 + j, k] = x[j]
    for j in range(literals.shape[0]):
        for k in range(WIDE):
            R[n + 3 + p + j, k] = literals[j]
    for first in range(0, N, WIDE):
        width = min(WIDE, N - first)
        for k in range(width):
            R[0, k] = t[first + k]
        for d in range(n + 1):
            for k in range(width):
                R[1 + d, k] = states[d, first + k]
        for k in range(width):
            R[n + 2, k] = forcing[first + k]
        execute_wide(code, R, _NO_TABLE, 0.0, 0.0)
        for j in range(outputs.shape[0]):
            o = np.uint64(outputs[j])
            for k in range(width):
                B[j, first + k] = R[o, k]


@njit(**KERNEL)
def evaluate_each(
    code, code_first, literals, literal_first, outputs, n_registers, n, owner, p, x, t, states, forcing, largest, B
):
    """Write the output of many programs over many samples to B [block, sample, BLOCK], column c to block c // BLOCK.

    Program k is code[code_first[k] : code_first[k + 1]] with its literals, cut out alike, and one output; column c is
    program owner[c] with the first p[owner[c]] of the constants x[c]. A column that is not below `largest` everywhere
    is zero.
    """
    R = np.zeros((n_registers, WIDE))
    row = np.empty((1, t.shape[0]))
    for c in range(owner.shape[0]):
        k = owner[c]
        evaluate_wide(
            code[code_first[k] : code_first[k + 1]], outputs[k : k + 1],
            literals[literal_first[k] : literal_first[k + 1]], n, p[k], x[c], t, states, forcing, R, row,
        )  # fmt: skip
        sound = True
        for i in range(t.shape[0]):
            sound &= abs(row[0, i]) < largest
        for i in range(t.shape[0]):
            B[c // BLOCK, i, c % BLOCK] = row[0, i] if sound else 0.0
