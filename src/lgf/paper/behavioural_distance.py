"""The behaviour of a skeleton: mean and deviation of its vector field under random constants; behavioural distance.

This is the paper's d_VF with five clarifications. All skeletons share one fixed matrix of random constants, because
independent draws would put an equation as far from itself as from others. The grid starts above zero. Logarithms and
powers are of absolute values. Values are clipped before the moments. The highest derivative, which operators contain
but the paper's grid lacks, has a fixed quasi-random value at every point.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lgf.equation.skeleton import Skeleton
from lgf.errors import LgfError
from lgf.expression.frame import Frame
from lgf.expression.tree import ZERO, Expression, function, power, rebuild, substitute
from lgf.paper.moments import moments
from lgf.solver.program import compile_expression

MOST_CONSTANTS = 64


@dataclass(frozen=True)
class BehaviourGrid:
    """The sampling grid of the vector field: the paper's, from 0.1 on so that functions are defined.

    u'' is drawn between the limits of d2u; values are clipped at `largest` before the moments.
    """

    t: tuple[float, float, int] = (0.1, 10.0, 8)
    u: tuple[float, float, int] = (0.1, 100.0, 16)
    du: tuple[float, float, int] = (0.1, 500.0, 16)
    d2u: tuple[float, float] = (-500.0, 500.0)
    constants: tuple[float, float] = (-10.0, 10.0)
    n_draws: int = 25
    largest: float = 1e10  # the paper's, for numerical stability
    seed: int = 0

    @cached_property
    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """(t [N], states [3, N]): u, u' on the grid, u'' quasi-random."""
        from scipy.stats import qmc  # takes long to import, and only training needs it

        axes = [np.linspace(low, high, n) for low, high, n in (self.t, self.u, self.du)]
        t, u, du = (a.ravel() for a in np.meshgrid(*axes, indexing="ij"))
        low, high = self.d2u
        d2u = low + (high - low) * qmc.Halton(1, scramble=False).random(len(t) + 1)[1:, 0]
        return t, np.array([u, du, d2u])

    @cached_property
    def draws(self) -> np.ndarray:
        """The fixed matrix of constants [n_draws, MOST_CONSTANTS]."""
        return np.random.default_rng(self.seed).uniform(*self.constants, size=(self.n_draws, MOST_CONSTANTS))


def behaviour(skeleton: Skeleton, grid: BehaviourGrid = BehaviourGrid()) -> tuple[np.ndarray, np.ndarray]:
    """(mean [N], deviation [N]) of the operator over the grid; the forcing is left out."""
    frame = skeleton.frame
    if len(frame.states) > 1 or frame.orders[0] > 2 or skeleton.n_constants > MOST_CONSTANTS:
        raise LgfError(
            f"behaviour is defined for one state up to order 2 and {MOST_CONSTANTS} constants, got "
            f"{', '.join(map(str, frame.highest))} and {skeleton.n_constants} constants."
        )
    unforced = substitute(skeleton.residuals[0], dict.fromkeys(frame.input_symbols, ZERO))
    program = compile_expression(_real_valued(unforced), Frame(((frame.names[0], 2),)), skeleton.n_constants)
    t, states = grid.points
    constants = np.ascontiguousarray(grid.draws[:, : skeleton.n_constants])
    return moments(program, constants, t, states, grid.largest)


def behavioural_distance(one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]) -> float:
    """d_VF: log of the mean squared difference of means and deviations, not below zero."""
    mean = np.mean((one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2)
    return float(max(np.log(mean), 0.0)) if mean > 0 else 0.0


def _real_valued(expression: Expression) -> Expression:
    """The expression with log, sqrt and non-integer powers taken of absolute values."""
    if expression.is_leaf:
        return expression
    args = tuple(_real_valued(a) for a in expression.args)
    if expression.head in ("log", "sqrt"):
        return function(expression.head, function("abs", args[0]))
    if expression.head == "^" and not (args[1].head == "number" and args[1].args[0].is_integer()):
        return power(function("abs", args[0]), args[1])
    return rebuild(expression.head, args)
