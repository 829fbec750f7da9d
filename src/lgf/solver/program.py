"""Compilation of a skeleton to register code.

Registers: 0 is t; then come the columns of the frame (the state vector, then the highest derivatives), its inputs, the
open constants, the literals and the results.

Each skeleton gives a `flow`, the rates of the state vector, for the integrator; and for each equation a `basis`, its
residual split into one column per constant that enters linearly and a fixed part, for variable projection.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lgf.equation.skeleton import Skeleton
from lgf.expression.frame import Frame, Variable
from lgf.expression.functions import FUNCTIONS
from lgf.expression.tree import MINUS_ONE, SIGNAL, Expression, T, mul, polynomial, power, signal, substitute
from lgf.solver.constant_roles import Role, divisors, linear_columns, role_of
from lgf.solver.kernels import machine
from lgf.solver.kernels.integrator import GENERAL, Flow
from lgf.solver.kernels.machine import Program, Programs

Formulas = tuple[tuple[str, Expression], ...]
"""(input, formula in t) of the inputs with formulas."""


@dataclass(frozen=True)
class CompiledEquation:
    """One equation for variable projection: how its constants enter its residual."""

    basis: Program  # one output per linear constant, then the fixed part
    linear: np.ndarray  # int32, the constants that enter the residual linearly
    nonlinear: np.ndarray  # int32, its other constants
    roles: tuple[Role, ...]  # one per nonlinear constant
    divisors: tuple[tuple[int, Expression], ...]  # (i, g) of every divisor 1 + C_i*g whose g holds no constant


@dataclass(frozen=True)
class CompiledSkeleton:
    """The programs of a skeleton, and the roles of its constants for the fit."""

    frame: Frame
    n_constants: int
    flow: Flow
    equations: tuple[CompiledEquation, ...]


@lru_cache(maxsize=1024)  # a candidate is compiled for its fit, refit, judgement and linearisation
def compile_skeleton(skeleton: Skeleton, formulas: Formulas = ()) -> CompiledSkeleton:
    """The programs of a skeleton; in `flow` the given formulas are compiled in, other inputs are read from a table.

    >>> compiled = compile_skeleton(Skeleton.read("u'' = C*u + C*sin(C*t)"))
    >>> compiled.flow.degree, compiled.equations[0].linear.tolist(), compiled.equations[0].nonlinear.tolist()
    (1, [0, 1], [2])
    """
    frame, n_constants = skeleton.frame, skeleton.n_constants
    known = {signal(name): formula for name, formula in formulas}
    degree, results = _rates(skeleton, known)
    flow = Flow(
        _emit(results, frame, n_constants, tabulated=True), degree, frame.dimension, np.array(frame.rates, np.int64)
    )
    explicit = skeleton.right_sides
    equations = []
    for i, residual in enumerate(skeleton.residuals):
        columns, fixed = linear_columns(residual)
        linear = [index for index, _ in columns]
        own = sorted({n.args[0] for n in residual.nodes() if n.head == "constant"})
        nonlinear = [c for c in own if c not in set(linear)]
        equations.append(
            CompiledEquation(
                basis=_emit([column for _, column in columns] + [fixed], frame, n_constants),
                linear=np.array(linear, np.int32),
                nonlinear=np.array(nonlinear, np.int32),
                roles=tuple(role_of(residual, c) for c in nonlinear),
                divisors=tuple(divisors(residual if explicit is None else explicit[i])),
            )
        )
    return CompiledSkeleton(frame, n_constants, flow, tuple(equations))


def _rates(skeleton: Skeleton, known: dict[Expression, Expression]) -> tuple[int, list[Expression]]:
    """(degree in the highest derivative, the output expressions of the flow); see `Flow`."""
    frame = skeleton.frame
    right_sides = skeleton.right_sides
    if right_sides is None:
        driven = substitute(skeleton.residuals[0], known)
        coefficients = polynomial(driven, skeleton.highest)
        if coefficients is None:
            return GENERAL, [driven]
        if len(coefficients) != 2:
            return len(coefficients) - 1, list(coefficients)
        right_sides = (mul(MINUS_ONE, coefficients[0], power(coefficients[1], MINUS_ONE)),)
    else:
        right_sides = tuple(substitute(right, known) for right in right_sides)
    of_highest = dict(zip(frame.highest, right_sides, strict=True))
    rates = (Variable(v.name, v.derivative + 1) for v in frame.variables)
    return 1, [of_highest.get(rate) or rate.symbol for rate in rates]


class _Emitter:
    """A collector of instructions; equal subexpressions are computed once."""

    def __init__(self, frame: Frame, n_constants: int):
        self.variables = frame.positions
        self.inputs_at = 1 + len(frame.columns)
        self.inputs = {name: self.inputs_at + i for i, name in enumerate(frame.inputs)}
        self.constants_at = self.inputs_at + len(frame.inputs)
        self.literals_at = self.constants_at + n_constants
        self.literals: dict[float, int] = {}
        self.rows: list[tuple[int, int, int, int]] = []
        self.known: dict[Expression | tuple[int, int, int, int], int] = {}

    # Temporaries are numbered from -1 downwards until the number of literals is known.
    def row(self, op: int, a: int, b: int = 0, c: int = 0) -> int:
        if op in (machine.ADD, machine.MUL) and a > b:
            a, b = b, a
        key = (op, a, b, c)
        register = self.known.get(key)
        if register is None:
            self.rows.append(key)
            register = self.known[key] = -len(self.rows)
        return register

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
            if e == T:
                return 0
            return self.inputs[e.args[0]] if e.args[1] == SIGNAL else 1 + self.variables[Variable(*e.args)]
        register = self.known.get(e)
        if register is None:
            register = self.known[e] = self._compute(e)
        return register

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
        return self.row(FUNCTIONS[e.head].code, self.register(e.args[0]))

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


@lru_cache(maxsize=4096)  # the terms of a grammar are compiled again for every record of a batch
def compile_expression(expression: Expression, frame: Frame, n_constants: int) -> Program:
    """The program of a single expression, inputs taken from their registers."""
    return _emit([expression], frame, n_constants)


def concatenate(programs: Sequence[Program], n_constants: np.ndarray) -> Programs:
    """The programs of one output each, end to end."""
    return Programs(
        np.concatenate([program.code for program in programs]),
        np.cumsum([0, *(len(program.code) for program in programs)]),
        np.concatenate([program.literals for program in programs]),
        np.cumsum([0, *(len(program.literals) for program in programs)]),
        np.concatenate([program.outputs[:1] for program in programs]),
        max(program.n_registers for program in programs),
        programs[0].constants_at,
        n_constants,
    )


def _emit(expressions: Sequence[Expression], frame: Frame, n_constants: int, tabulated: bool = False) -> Program:
    """The program of these expressions; if `tabulated`, it first looks its inputs up in a table."""
    emitter = _Emitter(frame, n_constants)
    outputs = [emitter.register(e) for e in expressions]
    temporaries_at = emitter.literals_at + len(emitter.literals)

    def place(register: int) -> int:
        return register if register >= 0 else temporaries_at - register - 1

    rows = [(op, temporaries_at + i, place(a), place(b), place(c)) for i, (op, a, b, c) in enumerate(emitter.rows)]
    if tabulated:
        rows = [*_look_ups(expressions, frame, emitter.inputs_at), *rows]
    return Program(
        code=np.array(rows, np.int32).reshape(-1, 5),
        literals=np.array(list(emitter.literals), np.float64),
        outputs=np.array([place(r) for r in outputs], np.int32),
        n_registers=temporaries_at + len(emitter.rows),
        constants_at=emitter.constants_at,
    )


def _look_ups(expressions: Iterable[Expression], frame: Frame, at: int) -> list[tuple[int, int, int, int, int]]:
    """One instruction for every input that occurs."""
    symbols = {node for e in expressions for node in e.nodes() if node.head == "symbol"}
    return [(machine.INPUT, at + i, 0, i, 0) for i, s in enumerate(frame.input_symbols) if s in symbols]
