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

    The paper (relative=False) removes a summand whose squares sum to less than `summand` over the data, and a factor
    whose absolute deviations from 1 sum to less than `factor`. These sums depend on units and on the number of samples.
    relative=True compares the root mean square of a summand with that of the largest one beside it, and takes the mean
    deviation of a factor; fitted constants stay.
    """

    summand: float = 1e-2
    factor: float = 1e-2
    factors: bool = True
    relative: bool = True


PAPER = SimplifySettings(relative=False)


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

    size = np.broadcast_shapes(*(np.shape(v) for v in environment.values()))
    prune = _Pruner(settings, values_of, int(np.prod(size)))
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
    n_samples: int

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
        elif e.head == "*" and self.settings.factors:
            args = tuple(a for a in args if not self.is_one(a))
            if not args:
                return ONE
        return rebuild(e.head, tuple(self.inside(a) for a in args))

    def negligible(self, summand: Expression, largest: float) -> bool:
        rms = _rms(self.values_of(summand))
        if self.settings.relative:
            return rms < self.settings.summand * largest
        return rms**2 * self.n_samples < self.settings.summand

    def is_one(self, factor: Expression) -> bool:
        if self.settings.relative and factor.head in ("constant", "number"):
            return False
        deviation = float(np.mean(np.abs(self.values_of(factor) - 1.0)))
        return deviation * (1 if self.settings.relative else self.n_samples) < self.settings.factor
