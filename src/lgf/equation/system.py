"""System: a skeleton with values, the result of a discovery."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lgf.equation.complexity import complexity
from lgf.equation.dimensions import Units, constant_units, describe_units
from lgf.equation.skeleton import Skeleton, read_sides
from lgf.equation.structure import open_constants, operator_form, shifted
from lgf.equation.units import Unit, unit_latex, unit_pretty, unit_text
from lgf.errors import LgfError
from lgf.expression.frame import Frame
from lgf.expression.mathml import Node, markup, mathml
from lgf.expression.parse import read_expression
from lgf.expression.print import display, format_number, latex, plain, python_function
from lgf.expression.sympy_conversion import to_sympy
from lgf.expression.tree import Expression, fill, polynomial, signal, substitute, summands


@dataclass(frozen=True)
class System:
    """The equations of all states with values for their constants, and standard errors if known.

    `formulas` are pairs (input, formula in t) of the inputs that are known as formulas, `units` pairs (quantity, unit)
    of those that have one; the constants get theirs from them.

    >>> system = System.read("prey' = 1.8*prey - 1.5*prey*predator; predator' = prey*predator - 3*predator")
    >>> print(system)
    prey' = 1.8 prey - 1.5 predator*prey
    predator' = -3.0 predator + 1.0 predator*prey
    """

    skeleton: Skeleton
    values: tuple[float, ...]
    errors: tuple[float, ...] | None = None
    formulas: tuple[tuple[str, Expression], ...] = ()
    units: Units = ()

    def __post_init__(self) -> None:
        for name, numbers in (("values", self.values), ("errors", self.errors)):
            if numbers is not None and len(numbers) != self.skeleton.n_constants:
                raise ValueError(f"{len(numbers)} {name} for {self.skeleton.n_constants} open constants; give one each")

    def __repr__(self) -> str:
        return f"System.read({self.text!r})"

    @classmethod
    def read(cls, text: str, inputs: Mapping[str, str] | None = None, frame: Frame | None = None) -> "System":
        """The system in the text, one equation per line; its numbers become the values of the constants.

        `inputs` are formulas in t, such as {"F": "cos(2*t)"}.
        """
        frame, sides = read_sides(text, frame, tuple(inputs or ()))
        rows, values = [], ()
        for left, right in sides:
            left, right, own = open_constants(left, right, left if len(sides) > 1 else None)
            rows.append((shifted(left, len(values)), shifted(right, len(values))))
            values += own
        formulas = tuple((name, read_expression(formula)) for name, formula in (inputs or {}).items())
        return cls(Skeleton(frame, tuple(rows)), values, formulas=formulas)

    @property
    def frame(self) -> Frame:
        """The states and inputs."""
        return self.skeleton.frame

    @cached_property
    def sides(self) -> tuple[tuple[Expression, Expression], ...]:
        """The left and right side of every equation with values; inputs stay symbols."""
        return tuple((fill(left, self.values), fill(right, self.values)) for left, right in self.skeleton.sides)

    @property
    def constants(self) -> dict[str, float]:
        """Values of the constants by name, C0, C1, ..."""
        return {f"C{i}": value for i, value in enumerate(self.values)}

    @property
    def terms(self) -> list[str]:
        """The summand of each constant, with C in its place; of several equations, after the derivative of its own."""
        terms: dict[int, str] = {}
        for highest, sides in zip(self.frame.highest, self.skeleton.sides, strict=True):
            for summand in (s for side in sides for s in summands(side)):
                inside = [n.args[0] for n in summand.nodes() if n.head == "constant"]
                for i in inside:
                    names = ["C" if k == i else format_number(v) for k, v in enumerate(self.values)]
                    where = f"{highest}: " if len(self.frame.states) > 1 else ""
                    terms[i] = where + plain(summand, names)
        return [terms[i] for i in range(len(self.values))]

    @cached_property
    def constant_units(self) -> tuple[Unit | None, ...]:
        """The unit of each constant, {} for a pure number; None where the units of the quantities do not tell."""
        return constant_units(self.skeleton, self.units, self.values) if self.units else (None,) * len(self.values)

    def _unit_texts(self, write: Callable[[Unit], str] = unit_text) -> list[str]:
        return ["" if unit is None else write(unit) for unit in self.constant_units] if self.units else []

    def driven(self, expression: Expression) -> Expression:
        """The expression with the formulas of the inputs in place of their names."""
        return substitute(expression, {signal(name): formula for name, formula in self.formulas})

    def __str__(self) -> str:
        units = self._unit_texts()
        return "\n".join(
            " = ".join(display(self.driven(side), self.values, self.errors, units) for side in pair)
            for pair in self.skeleton.sides
        )

    @property
    def text(self) -> str:
        """The equations at full precision, inputs by name; it reads back exactly."""
        return "\n".join(f"{plain(left)} = {plain(right)}" for left, right in self.sides)

    def latex(self) -> str:
        """The equations in LaTeX, numbers rounded; several are aligned."""
        units = self._unit_texts(unit_latex)
        rows = [[latex(self.driven(e), self.values, self.errors, units) for e in pair] for pair in self.skeleton.sides]
        if len(rows) == 1:
            return " = ".join(rows[0])
        body = " \\\\\n".join(" &= ".join(row) for row in rows)
        return f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}"

    def mathml(self) -> Node:
        """The equations as a tree of MathML, numbers rounded; several are aligned at their equals signs."""
        units = self._unit_texts(unit_pretty)
        rows = [[mathml(self.driven(e), self.values, self.errors, units) for e in pair] for pair in self.skeleton.sides]
        equal = ("mo", "=")
        if len(rows) == 1:
            return ("math", ("mrow", rows[0][0], equal, rows[0][1]))
        lines = (("mtr", ("mtd", left), ("mtd", equal), ("mtd", right)) for left, right in rows)
        return ("math", ("mtable", *lines))

    def _repr_html_(self) -> str:
        return markup(self.mathml())

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def sympy(self) -> Any:
        """The equation as sympy.Eq, with u(t) and Derivative; several are a list."""
        import sympy

        rows = [[to_sympy(self.driven(e)) for e in pair] for pair in self.sides]
        equations = [sympy.Eq(*row, evaluate=False) for row in rows]
        return equations[0] if len(equations) == 1 else equations

    def python(self) -> str:
        """Source of a stand-alone Python function: rhs(t, y), or residual(t, y) if u^(n) cannot be solved for."""
        residual = self.driven(self.sides[0][0] - self.sides[0][1])
        solved = None
        if self.skeleton.right_sides is not None:
            solved = [self.driven(right) for _, right in self.sides]
        else:
            coefficients = polynomial(residual, self.skeleton.highest)
            if coefficients is not None and len(coefficients) == 2:
                solved = [-coefficients[0] / coefficients[1]]
        note = self.text if not self.units else f"{self.text}\n{describe_units(self.units)}"
        return python_function(self.frame, solved, residual, note)

    @cached_property
    def complexity(self) -> int:
        """The paper's complexity, formulas included; SymPy simplifies the equations first, so it takes a while."""
        return sum(complexity(self.driven(left), self.driven(right)) for left, right in self.sides)

    def operator_form(self) -> "System":
        """The same equation with its only input alone on the right: 5.0 u'' + 1.0 u' + 7.0 u = F; without errors."""
        inputs = [s for s in self.frame.input_symbols if s in self.skeleton.symbols]
        if len(self.sides) != 1 or len(inputs) != 1:
            raise LgfError("only one equation with one input can be solved for that input.")
        left, right = self.skeleton.sides[0]
        if right == inputs[0] and inputs[0] not in left.nodes():
            return self
        left, right, values = operator_form(left, right, self.values, inputs[0])
        return System(Skeleton(self.frame, ((left, right),)), values, formulas=self.formulas, units=self.units)
