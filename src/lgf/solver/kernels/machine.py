"""The register machine: runs three-address code over several lanes at once.

Code is an int32 array of rows (operation, destination, a, b, c); registers are the rows of a float64 array, and the
lanes its columns. One machine is eight lanes wide (trajectories: one lane per vector of constants), one is sixty-four
wide (residuals: one lane per sample).
"""

import math
from typing import NamedTuple

import numpy as np
from numba import float64, int32, int64, types

from lgf.compilation import linked, njit
from lgf.expression.functions import FUNCTIONS
from lgf.solver.kernels import BORROWS, FAST, INNER, INNER_ONLY, KERNEL, LINKED
from lgf.solver.kernels.elementary import LARGEST_ANGLE, exponential, hyperbolic_tangent, logarithm, sine
from lgf.solver.kernels.lanes import LANES, absolute, anywhere, load, root, store

ADD, SUB, MUL, DIV, MADD, NEG = range(6)
SIN, COS, EXP, LOG, SQRT, ABS, TANH = (FUNCTIONS[n].code for n in ("sin", "cos", "exp", "log", "sqrt", "abs", "tanh"))
POW, INPUT = 10, 14

WIDE = 64
LARGEST_VALUE = 1e100  # of a term on the data; the squares of larger ones leave the range of numbers
BLOCK = 16  # columns for which a linear response is computed at a time


class Program(NamedTuple):
    """Register code; the registers are time, the frame's columns, its inputs, the constants, literals and results.

    Inputs are either written to their registers or looked up by the code itself in a table (see `execute`).
    """

    code: np.ndarray  # int32 [instructions, 5]
    literals: np.ndarray  # float64
    outputs: np.ndarray  # int32, the registers of the results
    n_registers: int
    constants_at: int  # the register of the first constant


PROGRAM = types.NamedTuple((int32[:, ::1], float64[::1], int32[::1], int64, int64), Program)


def _make_machine(width, options):
    @njit(**options, fastmath=FAST)
    def execute(code, R, table):
        """Run the code on R [registers, width].

        table [rows, 4] holds the sampled inputs: row i says (start, pieces per unit of time, first row, number) of the
        cubic pieces of input i, which follow. The number has a half added if the pieces are constant and jump, which
        is for the integrator to know.
        """
        for i in range(code.shape[0]):
            op = code[i, 0]
            d = np.uint64(code[i, 1])
            a = np.uint64(code[i, 2])
            b = np.uint64(code[i, 3])
            c = np.uint64(code[i, 4])
            if op == MUL:
                for k in range(0, width, LANES):
                    store(R, load(R, a, k) * load(R, b, k), d, k)
            elif op == MADD:
                for k in range(0, width, LANES):
                    store(R, load(R, a, k) * load(R, b, k) + load(R, c, k), d, k)
            elif op == ADD:
                for k in range(0, width, LANES):
                    store(R, load(R, a, k) + load(R, b, k), d, k)
            elif op == SUB:
                for k in range(0, width, LANES):
                    store(R, load(R, a, k) - load(R, b, k), d, k)
            elif op == DIV:
                for k in range(0, width, LANES):
                    store(R, load(R, a, k) / load(R, b, k), d, k)
            elif op == NEG:
                for k in range(0, width, LANES):
                    store(R, -load(R, a, k), d, k)
            elif op == SIN or op == COS:
                turns = np.float64(op - SIN)
                for k in range(0, width, LANES):
                    x = load(R, a, k)
                    if not anywhere(absolute(x) >= LARGEST_ANGLE):
                        store(R, sine(x, turns), d, k)
                    else:
                        for j in range(k, k + LANES):
                            angle = R[a, j]
                            if abs(angle) < 1e15:
                                R[d, j] = math.sin(angle) if op == SIN else math.cos(angle)
                            else:
                                R[d, j] = np.nan
            elif op == EXP:
                for k in range(0, width, LANES):
                    store(R, exponential(load(R, a, k)), d, k)
            elif op == LOG:
                for k in range(0, width, LANES):
                    store(R, logarithm(load(R, a, k)), d, k)
            elif op == POW:
                for k in range(width):
                    R[d, k] = R[a, k] ** R[b, k]
            elif op == SQRT:
                for k in range(0, width, LANES):
                    store(R, root(load(R, a, k)), d, k)
            elif op == ABS:
                for k in range(0, width, LANES):
                    store(R, absolute(load(R, a, k)), d, k)
            elif op == TANH:
                for k in range(0, width, LANES):
                    store(R, hyperbolic_tangent(load(R, a, k)), d, k)
            else:
                start = table[b, 0]
                rate = table[b, 1]
                first = int(table[b, 2])
                pieces = int(table[b, 3])
                for k in range(width):
                    x = (R[a, k] - start) * rate
                    x = x if x > 0.0 else 0.0  # NaN too: the index must stay inside the table
                    x = x if x < pieces else np.float64(pieces)
                    j = min(int(x), pieces - 1)
                    s = x - j
                    j += first
                    R[d, k] = ((table[j, 3] * s + table[j, 2]) * s + table[j, 1]) * s + table[j, 0]

    return execute


execute_lanes = _make_machine(LANES, KERNEL | BORROWS)
execute_wide = _make_machine(WIDE, LINKED | INNER_ONLY)

EXECUTE = types.none(int32[:, ::1], float64[:, ::1], types.Array(float64, 2, "C", readonly=True))
execute = linked(execute_wide, EXECUTE)

NO_TABLE = np.zeros((0, 4))


@njit(**INNER)
def set_constants(R, at, x, literals):
    """Write the constants x and the literals of a program to the registers from `at` on."""
    p = x.shape[0]
    for j in range(p + literals.shape[0]):
        value = x[j] if j < p else literals[j - p]
        for k in range(WIDE):
            R[at + j, k] = value


@njit(**INNER)
def set_samples(R, t, columns, inputs, first):
    """Write up to WIDE samples of the time, the columns and the inputs to the registers; returns how many."""
    width = min(WIDE, t.shape[0] - first)
    n = columns.shape[0]
    for k in range(width):
        R[0, k] = t[first + k]
    for d in range(n):
        for k in range(width):
            R[1 + d, k] = columns[d, first + k]
    for d in range(inputs.shape[0]):
        for k in range(width):
            R[1 + n + d, k] = inputs[d, first + k]
    return width


@njit(**LINKED)
def evaluate_wide(program, x, t, columns, inputs, R, B):
    """Write the outputs of a program, for the constants x, over many samples to the rows of B [outputs, sample].

    columns [column, sample] are the variables of the frame, inputs [input, sample] the known inputs.
    """
    set_constants(R, program.constants_at, x, program.literals)
    for first in range(0, t.shape[0], WIDE):
        width = set_samples(R, t, columns, inputs, first)
        execute(program.code, R, NO_TABLE)
        for j in range(program.outputs.shape[0]):
            o = np.uint64(program.outputs[j])
            for k in range(width):
                B[j, first + k] = R[o, k]


EVALUATE = types.none(
    PROGRAM, float64[::1], float64[::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1]
)
evaluate = linked(evaluate_wide, EVALUATE)


@njit(**KERNEL)
def evaluate_lanes(program, x, t, columns, inputs, R, B):
    """`evaluate_wide` for several vectors of constants x [lane, p], to B [lane, outputs, sample].

    columns [lane, column, sample]; one lane of them serves all x.
    """
    for lane in range(x.shape[0]):
        evaluate(program, x[lane], t, columns[min(lane, columns.shape[0] - 1)], inputs, R, B[lane])


class Programs(NamedTuple):
    """Many programs of one output each, end to end: program k is code[code_first[k] : code_first[k + 1]], and so on."""

    code: np.ndarray
    code_first: np.ndarray
    literals: np.ndarray
    literal_first: np.ndarray
    outputs: np.ndarray
    n_registers: int  # the most of any
    constants_at: int
    p: np.ndarray  # [program] how many constants


PROGRAMS = types.NamedTuple(
    (int32[:, ::1], int64[::1], float64[::1], int64[::1], int32[::1], int64, int64, int64[::1]), Programs
)


@njit(**INNER)
def run(programs, k, x, R):
    """Run program k with the first constants of x on registers that hold samples; returns that of the output."""
    literals = programs.literals[programs.literal_first[k] : programs.literal_first[k + 1]]
    set_constants(R, programs.constants_at, x[: programs.p[k]], literals)
    execute(programs.code[programs.code_first[k] : programs.code_first[k + 1]], R, NO_TABLE)
    return np.uint64(programs.outputs[k])


@njit(**INNER)
def evaluate_one(programs, k, x, t, columns, inputs, largest, R, row):
    """Write the output of program k over many samples to the row; whether it is below `largest` everywhere."""
    sound = True
    for first in range(0, t.shape[0], WIDE):
        width = set_samples(R, t, columns, inputs, first)
        o = run(programs, k, x, R)
        for i in range(width):
            row[first + i] = R[o, i]
            sound &= abs(R[o, i]) < largest
    return sound


@njit(**KERNEL)
def evaluate_each(programs, owner, x, t, columns, inputs, largest, B):
    """Write the output of many programs over many samples to B [block, sample, BLOCK], column c to block c // BLOCK.

    Column c is program owner[c] with the first constants of x[c]. A column that is not below `largest` everywhere is
    zero.
    """
    R = np.zeros((programs.n_registers, WIDE))
    row = np.empty(t.shape[0])
    for c in range(owner.shape[0]):
        sound = evaluate_one(programs, owner[c], x[c], t, columns, inputs, largest, R, row)
        for i in range(t.shape[0]):
            B[c // BLOCK, i, c % BLOCK] = row[i] if sound else 0.0
