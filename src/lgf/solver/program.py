"""A skeleton turned into register code.

Registers: 0 is t; 1 + k is the k-th derivative of u, for k = 0 .. order (the highest too); order + 2 is the forcing;
then come the open constants, the literals and the temporaries. A system of first-order equations uses the registers
1 .. n for its states.

Each skeleton gives two programs: `flow`, the derivatives of the states, for the integrator; and `basis`, the residual
split into one column per constant that enters linearly and a fixed part, for variable projection.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lgf.equation.skeleton import Skeleton
from lgf.expression.tree import MINUS_ONE, Expression, F, mul, polynomial, power, substitute, symbol
from lgf.solver.constant_roles import Role, divisors, linear_columns, role_of
from lgf.solver.kernels import machine

_FUNCTION_CODES = {
    "sin": machine.SIN,
    "cos": machine.COS,
    "exp": machine.EXP,
    "log": machine.LOG,
    "sqrt": machine.SQRT,
    "abs": machine.ABS,
    "tanh": machine.TANH,
}

GENERAL = -1  # the highest derivative is found by Newton's method on the residual


@dataclass(frozen=True)
class Program:
    """Register code with its literals and the registers that hold its results."""

    code: np.ndarray  # int32 [instructions, 5]
    literals: np.ndarray  # float64
    outputs: np.ndarray  # int32
    n_registers: int


@dataclass(frozen=True)
class CompiledSkeleton:
    """The programs of a skeleton, and what the fit must know about its constants."""

    order: int
    n_constants: int
    degree: int  # in the highest derivative: 1 means `flow` gives it directly, GENERAL means Newton's method
    flow: Program
    basis: Program  # one output per linear constant, then the fixed part
    linear: np.ndarray  # int32, the constants that enter the residual linearly
    nonlinear: np.ndarray  # int32, the others
    roles: tuple[Role, ...]  # one per nonlinear constant
    divisors: tuple[tuple[int, Expression], ...]  # (i, g) of every divisor 1 + C_i*g whose g holds no constant


@lru_cache(maxsize=1024)  # a candidate is fitted, refitted, judged and linearised
def compile_skeleton(skeleton: Skeleton, forcing: Expression | None = None) -> CompiledSkeleton:
    """The programs of a skeleton; in `flow` a forcing given as formula is compiled in, otherwise read from a table.

    >>> compiled = compile_skeleton(Skeleton.read("u'' = C*u + C*sin(C*t)"))
    >>> compiled.degree, compiled.linear.tolist(), compiled.nonlinear.tolist()
    (1, [0, 1], [2])
    """
    order, n_constants = skeleton.order, skeleton.n_constants
    residual = skeleton.residual
    columns, fixed = linear_columns(residual)
    linear = [index for index, _ in columns]
    basis = _emit([column for _, column in columns] + [fixed], order, n_constants)
    nonlinear = [i for i in range(n_constants) if i not in set(linear)]

    given = {} if forcing is None else {symbol("F"): forcing}
    if skeleton.explicit is not None:
        degree, results = 1, [substitute(skeleton.explicit, given)]
    else:
        driven = substitute(residual, given)
        coefficients = polynomial(driven, skeleton.highest)
        if coefficients is None:
            degree, results = GENERAL, [driven]
        elif len(coefficients) == 2:
            degree, results = 1, [mul(MINUS_ONE, coefficients[0], power(coefficients[1], MINUS_ONE))]
        else:
            degree, results = len(coefficients) - 1, list(coefficients)
    if degree == 1:
        results = [symbol("u", k) for k in range(1, order)] + results
    flow = _emit(results, order, n_constants, tabulated=True)
    return CompiledSkeleton(
        order=order,
        n_constants=n_constants,
        degree=degree,
        flow=flow,
        basis=basis,
        linear=np.array(linear, np.int32),
        nonlinear=np.array(nonlinear, np.int32),
        roles=tuple(role_of(residual, i) for i in nonlinear),
        divisors=tuple(divisors(residual if skeleton.explicit is None else skeleton.explicit)),
    )


class _Emitter:
    """Collects instructions; equal subexpressions are computed once."""

    def __init__(self, order: int, n_constants: int):
        self.forcing_at = order + 2
        self.constants_at = order + 3
        self.literals_at = order + 3 + n_constants
        self.literals: dict[float, int] = {}
        self.rows: list[tuple[int, int, int, int]] = []
        self.known: dict[Expression | tuple[int, int, int, int], int] = {}

    # Temporaries are numbered from -1 downwards until the number of literals is known.
    def row(self, op: int, a: int, b: int = 0, c: int = 0) -> int:
        if op in (machine.ADD, machine.MUL) and a > b:
            a, b = b, a
        key = (op, a, b, c)
        found = self.known.get(key)
        if found is None:
            self.rows.append(key)
            found = self.known[key] = -len(self.rows)
        return found

    def literal(self, value: float) -> int:
        position = self.literals.setdefault(value, len(self.literals))
        return self.literals_at + position

    def register(self, e: Expression) -> int:
        head = e.head
        if head == "constant":
            return self.constants_at + e.args[0]
        if head == "number":
            return self.literal(e.args[0])
        if head == "symbol":
            name, derivative = e.args
            if name == "t":
                return 0
            if name == "F":
                return self.forcing_at
            return 1 + derivative if name == "u" else 1 + int(name[1:])
        found = self.known.get(e)
        if found is None:
            found = self.known[e] = self._compute(e)
        return found

    def _compute(self, e: Expression) -> int:
        if e.head == "+":
            return self._sum(e.args)
        if e.head == "*":
            return self._product(e.args)
        if e.head == "^":
            base, exponent = e.args
            if exponent.head == "number":
                n = exponent.args[0]
                if n == int(n) and abs(n) <= 12:
                    whole = self._integer_power(self.register(base), int(abs(n)))
                    return whole if n > 0 else self.row(machine.DIV, self.literal(1.0), whole)
                if n == 0.5:
                    return self.row(machine.SQRT, self.register(base))
            return self.row(machine.POW, self.register(base), self.register(exponent))
        return self.row(_FUNCTION_CODES[e.head], self.register(e.args[0]))

    def _integer_power(self, register: int, n: int) -> int:
        if n == 1:
            return register
        half = self._integer_power(register, n // 2)
        square = self.row(machine.MUL, half, half)
        return self.row(machine.MUL, square, register) if n % 2 else square

    def _sum(self, terms: tuple[Expression, ...]) -> int:
        total: int | None = None
        for term in terms:
            negative, factors = False, term.args if term.head == "*" else (term,)
            if factors[0].head == "number" and factors[0].args[0] == -1.0 and len(factors) > 1:
                negative, factors = True, factors[1:]
            numerator, denominator = self._numerator_denominator(factors)
            if total is not None and not negative and not denominator and len(numerator) > 1:
                total = self.row(machine.MADD, self._chain(numerator[:-1]), numerator[-1], total)
                continue
            value = self._quotient(numerator, denominator)
            if total is None:
                total = self.row(machine.NEG, value) if negative else value
            else:
                total = self.row(machine.SUB if negative else machine.ADD, total, value)
        assert total is not None
        return total

    def _product(self, factors: tuple[Expression, ...]) -> int:
        if factors[0].head == "number" and factors[0].args[0] == -1.0:
            return self.row(machine.NEG, self._quotient(*self._numerator_denominator(factors[1:])))
        return self._quotient(*self._numerator_denominator(factors))

    def _numerator_denominator(self, factors: tuple[Expression, ...]) -> tuple[list[int], list[int]]:
        """Registers above and below the fraction line, constants last so that the rest can be shared."""
        above: list[int] = []
        below: list[int] = []
        for f in sorted(factors, key=lambda f: f.head == "constant"):
            if f.head == "^" and f.args[1].head == "number" and -12 <= f.args[1].args[0] < 0:
                below.append(self.register(power(f.args[0], mul(MINUS_ONE, f.args[1]))))
            else:
                above.append(self.register(f))
        return above, below

    def _quotient(self, above: list[int], below: list[int]) -> int:
        numerator = self._chain(above) if above else self.literal(1.0)
        return self.row(machine.DIV, numerator, self._chain(below)) if below else numerator

    def _chain(self, registers: list[int]) -> int:
        result = registers[0]
        for r in registers[1:]:
            result = self.row(machine.MUL, result, r)
        return result


def compile_expression(expression: Expression, order: int, n_constants: int) -> Program:
    """The program of a single expression, the forcing taken from its register."""
    return _emit([expression], order, n_constants)


def compile_system(right_sides: list[Expression], n_constants: int = 0) -> Program:
    """The flow of the first-order system x0' = right_sides[0], x1' = right_sides[1], ..."""
    return _emit(list(right_sides), len(right_sides), n_constants, tabulated=True)


def _emit(expressions: list[Expression], order: int, n_constants: int, tabulated: bool = False) -> Program:
    """The program of these expressions; `tabulated` says that it must look the forcing up before anything else."""
    emitter = _Emitter(order, n_constants)
    outputs = [emitter.register(e) for e in expressions]
    temporaries_at = emitter.literals_at + len(emitter.literals)

    def place(register: int) -> int:
        return register if register >= 0 else temporaries_at - register - 1

    rows = [(op, temporaries_at + i, place(a), place(b), place(c)) for i, (op, a, b, c) in enumerate(emitter.rows)]
    if tabulated and any(node == F for e in expressions for node in e.nodes()):
        rows.insert(0, (machine.FORCE, emitter.forcing_at, 0, 0, 0))
    return Program(
        code=np.array(rows, np.int32).reshape(-1, 5),
        literals=np.array(list(emitter.literals), np.float64),
        outputs=np.array([place(r) for r in outputs], np.int32),
        n_registers=temporaries_at + len(emitter.rows),
    )
