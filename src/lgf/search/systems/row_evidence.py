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
    """Right-hand sides of a row and their features [component, feature]."""

    components: Sequence[Component]
    features: np.ndarray


class TermShares:
    """The sizes of the terms of a row along the smoothed states, relative to the slope of the row."""

    def __init__(self, target: Target, row: int):
        self._known = target.known_values
        self._slope = target.columns[target.frame.dimension + row]
        self._size = max(float(np.sqrt(np.mean(self._slope**2))), 1e-300)
        self._values: dict[tuple[Expression, tuple[float, ...]], np.ndarray] = {}

    def features(self, component: Component) -> list[float]:
        """The logarithms of the largest and smallest term, of the same beside the others, and of what is left."""
        pairs = zip(component.terms, component.coefficients, component.inner, strict=True)
        columns = np.array([coefficient * self._along(term, inner) for term, coefficient, inner in pairs])
        if component.divisor != ONE:
            with np.errstate(all="ignore"):
                columns = columns / self._along(component.divisor, component.others)
        columns = np.where(np.isfinite(columns), columns, 0.0)
        sizes = np.sqrt(np.mean(columns**2, axis=1))
        unit = columns / np.maximum(sizes, 1e-300)[:, None]
        gram = unit @ unit.T / len(self._slope) + _RIDGE * np.eye(len(unit))
        own = sizes / np.sqrt(np.diag(np.linalg.inv(gram)))
        left = float(np.sqrt(np.mean((columns.sum(axis=0) - self._slope) ** 2)))
        shares = np.array([sizes.max(), sizes.min(), own.min(), own.max()]) / self._size
        logarithms = np.log10(np.append(shares + _LEAST_SHARE, left / self._size + _LEAST_LEFT))
        return np.clip(logarithms, -4.0, 4.0).tolist()

    def _along(self, term: Expression, inner: tuple[float, ...]) -> np.ndarray:
        key = term, inner
        if key not in self._values:
            values = evaluate_known(term, self._known, inner)
            self._values[key] = np.broadcast_to(values, self._slope.shape)
        return self._values[key]


def certain(components: Sequence[Component]) -> RowEvidence:
    """The evidence of a row that is known."""
    return RowEvidence(components, np.zeros((len(components), N_FEATURES)))


def row_evidence(
    components: Sequence[Component], distances: np.ndarray, bits: Sequence[float], shares: TermShares
) -> RowEvidence:
    """The evidence of the components, whose rank is that of the merged lists.

    distances [component, noise model] are those to the best of the row; NaN counts as the farthest of the row.
    """
    farthest = np.nanmax(np.vstack([distances, np.full(distances.shape[1], _FAR / 2)]), axis=0)
    far = np.column_stack([[c.rank for c in components], np.where(np.isnan(distances), farthest, distances)])
    others = [
        [
            len(component.terms), min(bits[i], _MOST_BITS), sum(map(len, component.inner)) + len(component.others),
            component.divisor != ONE, *shares.features(component),
        ]
        for i, component in enumerate(components)
    ]  # fmt: skip
    near = np.clip(far, 0.0, _FAR)
    return RowEvidence(
        components,
        np.column_stack([np.log1p(np.clip(far, 0.0, _FARTHEST)), near, np.array(others).reshape(len(components), -1)]),
    )
