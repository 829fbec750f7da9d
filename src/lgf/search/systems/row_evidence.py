"""What a record says about each right-hand side of a row: the features by which a trained model ranks them.

The features of a right-hand side are free of units and the same for every row, state and grammar:

- its distance to the best of its row in description length, by each noise model and as the lists are merged without a
  model, as it is and as a logarithm;
- its numbers of terms and of constants inside them, its bits, whether it has a common denominator;
- of its terms along the smoothed states, relative to the slope: the largest and the smallest one, the same for the
  parts of them that the other terms cannot say, and what they leave of the slope. Large terms that cancel each other
  are a sign of an imitation, which the description length does not see.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lgf.expression.numeric import evaluate_known
from lgf.expression.tree import ONE, Expression
from lgf.fit.target import Target
from lgf.search.systems.component import Component

_FARTHEST, _FAR = 500.0, 60.0  # distances in description length are not told apart beyond these
_MOST_BITS = 60.0
_LEAST_SHARE = 1e-6
_LEAST_LEFT = 1e-4
_RIDGE = 1e-8

KAPPAS = (0.0, 10.0, 100.0)
"""The noise models of which the evidence is made."""
N_FEATURES = 11 + 2 * len(KAPPAS)


@dataclass(frozen=True, eq=False)
class RowEvidence:
    """Right-hand sides of a row, their ranks [component] without a model and their features [component, feature]."""

    components: Sequence[Component]
    ranks: np.ndarray
    features: np.ndarray


class TermValues:
    """The values of terms along the smoothed states, each computed once for all rows."""

    def __init__(self, target: Target):
        self._target = target
        self._known = target.known_values
        self._place: dict[tuple[Expression, tuple[float, ...]], int] = {}
        self._values: list[np.ndarray] = []

    def shares(self, row: int, components: Sequence[Component]) -> np.ndarray:
        """Sizes of terms relative to the slope of the row, as logarithms [component, 5].

        The largest and smallest term, the same for the parts of them that the other terms cannot say, and what all of
        them leave.
        """
        slope = self._target.columns[self._target.frame.dimension + row]
        size = max(float(np.sqrt(np.mean(slope**2))), 1e-300)
        out = np.empty((len(components), 5))
        alike: dict[tuple[int, bool], list[int]] = {}
        for i, c in enumerate(components):
            alike.setdefault((len(c.terms), c.divisor != ONE), []).append(i)
        for (n, _), some in alike.items():
            summands = self._summands([components[i] for i in some])
            products = summands @ summands.swapaxes(1, 2) / len(slope)
            sizes = np.sqrt(np.diagonal(products, axis1=1, axis2=2))
            scale = 1.0 / np.maximum(sizes, 1e-300)
            gram = products * scale[:, :, None] * scale[:, None, :] + _RIDGE * np.eye(n)
            own = sizes / np.sqrt(np.diagonal(np.linalg.inv(gram), axis1=1, axis2=2))
            left = summands.sum(axis=1) - slope
            out[some] = np.column_stack(
                [
                    np.array([sizes.max(axis=1), sizes.min(axis=1), own.min(axis=1), own.max(axis=1)]).T / size
                    + _LEAST_SHARE,
                    np.sqrt(np.einsum("ij,ij->i", left, left) / len(slope)) / size + _LEAST_LEFT,
                ]
            )
        return np.clip(np.log10(out), -4.0, 4.0)

    def _summands(self, components: Sequence[Component]) -> np.ndarray:
        """The summands [component, term, sample] of components with equally many, 0 where they are not finite.

        All or none have a divisor.
        """
        above = [[self._along(*pair) for pair in zip(c.terms, c.inner, strict=True)] for c in components]
        below = [self._along(c.divisor, c.others) for c in components if c.divisor != ONE]
        values = np.array(self._values)
        with np.errstate(all="ignore"):
            summands = values[above] * np.array([c.coefficients for c in components])[:, :, None]
            if below:
                summands /= values[below][:, None]
        summands[~np.isfinite(summands)] = 0.0
        return summands

    def _along(self, term: Expression, inner: tuple[float, ...]) -> int:
        """The place of the values of a term with these constants."""
        key = term, inner
        if key not in self._place:
            self._place[key] = len(self._values)
            self._values.append(np.broadcast_to(evaluate_known(term, self._known, inner), self._target.t.shape))
        return self._place[key]


def certain(components: Sequence[Component]) -> RowEvidence:
    """The evidence of a row that is known."""
    return RowEvidence(components, np.zeros(len(components)), np.zeros((len(components), N_FEATURES)))


def row_evidence(
    components: Sequence[Component], ranks: np.ndarray, distances: np.ndarray, bits: Sequence[float], shares: np.ndarray
) -> RowEvidence:
    """The evidence of the components.

    ranks [component] are those of the merged lists. distances [component, noise model] are those to the best of the
    row; NaN counts as the farthest of the row. shares [component, 5] are the sizes of the terms (`TermValues.shares`).
    """
    farthest = np.nanmax(np.vstack([distances, np.full(distances.shape[1], _FAR / 2)]), axis=0)
    far = np.column_stack([ranks, np.where(np.isnan(distances), farthest, distances)])
    others = [
        [len(c.terms), min(bits[i], _MOST_BITS), sum(map(len, c.inner)) + len(c.others), c.divisor != ONE]
        for i, c in enumerate(components)
    ]
    near = np.clip(far, 0.0, _FAR)
    features = [np.log1p(np.clip(far, 0.0, _FARTHEST)), near, np.array(others, float).reshape(-1, 4), shares]
    return RowEvidence(components, ranks, np.column_stack(features))
