"""Simplification of a system against data: negligible summands and factors go."""

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
    """When a summand or a factor is negligible.

    As in the paper (relative=False): a summand whose squares sum to less than `summand` over the data, a factor whose
    absolute deviations from 1 sum to less than `factor`. These depend on units and on the number of samples;
    relative=True compares instead the root mean square of a summand with that of the largest one beside it, and takes
    the mean deviation of a factor, sparing constants, which a fit has chosen.
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
    """The system without what is negligible on these data, in canonical form; the same object if nothing is.

    The environment holds the data by symbol, as for `evaluate`. The order of each equation stays. The values that
    remain are not adjusted and lose their errors: fit again.
    """
    skeleton = system.skeleton

    def values_of(e: Expression) -> NDArray[np.float64]:
        return evaluate(e, environment, system.values)

    size = np.broadcast_shapes(*(np.shape(v) for v in environment.values()))
    prune = _Pruning(settings, values_of, int(np.prod(size)))
    highest = [variable.symbol for variable in skeleton.frame.highest]
    pruned = [prune.equation(*pair, symbol) for pair, symbol in zip(skeleton.sides, highest, strict=True)]
    if tuple(pruned) == skeleton.sides:
        return system
    rows, values = [], ()
    for left, right in pruned:
        left, right, own = canonical_sides(left, right, system.values)
        rows.append((shifted(left, len(values)), shifted(right, len(values))))
        values += own
    return System(Skeleton(skeleton.frame, tuple(rows)), values, formulas=system.formulas)


def _rms(values: NDArray[np.float64]) -> float:
    with np.errstate(over="ignore"):
        return float(np.sqrt(np.mean(np.square(values))))


@dataclass(frozen=True)
class _Pruning:
    settings: SimplifySettings
    values_of: Callable[[Expression], NDArray[np.float64]]
    n_samples: int

    def equation(self, left: Expression, right: Expression, highest: Expression) -> tuple[Expression, Expression]:
        """Both sides without what is negligible, as long as the highest derivative stays."""
        largest = max((_rms(self.values_of(s)) for s in (*summands(left), *summands(right))), default=0.0)
        for pruned in (
            (self.side(left, largest), self.side(right, largest)),
            (self.inside(left), self.inside(right)),
        ):
            if any(highest in side.nodes() for side in pruned):
                return pruned
        return left, right

    def side(self, e: Expression, largest: float) -> Expression:
        """One side of the equation: its summands are compared with those of both sides, a bare symbol stays."""
        if e.head == "symbol":
            return e
        rest = [self.inside(s) for s in summands(e) if not self.negligible(s, largest)]
        return rebuild("+", tuple(rest)) if rest else ZERO

    def inside(self, e: Expression) -> Expression:
        """The expression with its own sums and products pruned."""
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
