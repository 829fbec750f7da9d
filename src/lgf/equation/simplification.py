"""Simplification of a system on data: removal of negligible summands and factors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lgf.equation.skeleton import Skeleton
from lgf.equation.structure import canonical_sides, shifted
from lgf.equation.system import System
from lgf.expression.numeric import evaluate
from lgf.expression.tree import ONE, ZERO, Expression, rebuild, summands


@dataclass(frozen=True)
class SimplifySettings:
    """Thresholds below which a summand or a factor is negligible.

    The root mean square of a summand is compared with that of the largest one beside it, and the mean absolute
    deviation of a factor with 1; fitted constants stay. The paper compares sums over the data, which depend on units
    and on the number of samples.
    """

    summand: float = 1e-2
    factor: float = 1e-2


def simplify(
    system: System,
    environment: Mapping[str | tuple[str, int], ArrayLike],
    settings: SimplifySettings = SimplifySettings(),
) -> System:
    """The canonical system without negligible summands and factors; the same object if there are none.

    The environment holds the data by symbol, as for `evaluate`. The order of each equation stays. The remaining values
    are not adjusted and lose their errors, so they should be fitted again.
    """
    skeleton = system.skeleton

    def values_of(e: Expression) -> NDArray[np.float64]:
        return evaluate(e, environment, system.values)

    prune = _Pruner(settings, values_of)
    highest = [variable.symbol for variable in skeleton.frame.highest]
    pruned = [prune.equation(*pair, symbol) for pair, symbol in zip(skeleton.sides, highest, strict=True)]
    if tuple(pruned) == skeleton.sides:
        return system
    rows, values = [], ()
    for left, right in pruned:
        left, right, side_values = canonical_sides(left, right, system.values)
        rows.append((shifted(left, len(values)), shifted(right, len(values))))
        values += side_values
    return System(Skeleton(skeleton.frame, tuple(rows)), values, formulas=system.formulas)


def _rms(values: NDArray[np.float64]) -> float:
    with np.errstate(over="ignore"):
        return float(np.sqrt(np.mean(np.square(values))))


@dataclass(frozen=True)
class _Pruner:
    settings: SimplifySettings
    values_of: Callable[[Expression], NDArray[np.float64]]

    def equation(self, left: Expression, right: Expression, highest: Expression) -> tuple[Expression, Expression]:
        """Both sides, pruned as far as the highest derivative stays."""
        largest = max((_rms(self.values_of(s)) for s in (*summands(left), *summands(right))), default=0.0)
        for pruned in (
            (self.side(left, largest), self.side(right, largest)),
            (self.inside(left), self.inside(right)),
        ):
            if any(highest in side.nodes() for side in pruned):
                return pruned
        return left, right

    def side(self, e: Expression, largest: float) -> Expression:
        """One side, pruned of summands that are negligible against those of both sides; a bare symbol stays."""
        if e.head == "symbol":
            return e
        rest = [self.inside(s) for s in summands(e) if not self.negligible(s, largest)]
        return rebuild("+", tuple(rest)) if rest else ZERO

    def inside(self, e: Expression) -> Expression:
        """The expression with the sums and products inside it pruned."""
        if e.is_leaf:
            return e
        args = e.args
        if e.head == "+":
            largest = max(_rms(self.values_of(a)) for a in args)
            args = tuple(a for a in args if not self.negligible(a, largest))
            if not args:
                return ZERO
        elif e.head == "*":
            args = tuple(a for a in args if not self.is_one(a))
            if not args:
                return ONE
        return rebuild(e.head, tuple(self.inside(a) for a in args))

    def negligible(self, summand: Expression, largest: float) -> bool:
        return _rms(self.values_of(summand)) < self.settings.summand * largest

    def is_one(self, factor: Expression) -> bool:
        if factor.head in ("constant", "number"):
            return False
        return float(np.mean(np.abs(self.values_of(factor) - 1.0))) < self.settings.factor
