"""What a record says about each right-hand side of a row: the features by which a trained model ranks them.

The features of a right-hand side are free of units and the same for every row, state and grammar:

- its distance to the best of its row in description length, by each noise model and as the lists are merged without a
  model, as it is and as a logarithm;
- its numbers of terms and of constants inside them, its bits, whether it has a common denominator;
- of its terms along the smoothed states, relative to the slope: the largest and the smallest one, the same for the
  parts of them that the other terms cannot say, and what they leave of the slope. Large terms that cancel each other
  are a sign of an imitation, which the description length does not see.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from lgf.expression.numeric import evaluate_known
from lgf.expression.tree import ONE, Expression
from lgf.fit.target import Target
from lgf.search.systems.component import Component
from lgf.search.systems.term_grid import TermGrid
from lgf.solver.kernels.machine import BLOCK, evaluate_each

_FARTHEST, _FAR = 500.0, 60.0  # distances in description length are not told apart beyond these
_MOST_BITS = 60.0
_LEAST_SHARE = 1e-6
_LEAST_LEFT = 1e-4
_RIDGE = 1e-8

KAPPAS = (0.0, 10.0, 100.0)
"""The noise models of which the evidence is made."""
N_FEATURES = 11 + 2 * len(KAPPAS)


_Valued = tuple[Expression, tuple[float, ...]]
"""A term or divisor with the constants inside it."""


@dataclass(frozen=True, eq=False)
class RowEvidence:
    """Right-hand sides of a row, their ranks [component] without a model and their features [component, feature]."""

    components: Sequence[Component]
    ranks: np.ndarray
    features: np.ndarray


class TermValues:
    """The values of terms along the smoothed states, each computed once for all rows."""

    def __init__(self, target: Target, terms: TermGrid):
        self._target, self._terms = target, terms
        self._place: dict[_Valued, int] = {}
        self._values = np.zeros((0, len(target.t)))

    def shares(self, row: int, components: Sequence[Component]) -> np.ndarray:
        """Sizes of terms relative to the slope of the row, as logarithms [component, 5].

        The largest and smallest term, the same for the parts of them that the other terms cannot say, and what all of
        them leave.
        """
        slope = self._target.columns[self._target.frame.dimension + row]
        size = max(float(np.sqrt(np.mean(slope**2))), 1e-300)
        self._evaluate(dict.fromkeys(valued for c in components for valued in _valued(c)))
        alike: dict[tuple[int, bool], list[int]] = {}
        for i, c in enumerate(components):
            alike.setdefault((len(c.terms), c.divisor != ONE), []).append(i)
        every = np.vstack([self._values, slope])
        products = every @ every.T / len(slope)  # of all terms and the slope: most components need no more
        out = np.empty((len(components), 5))
        for (n, divided), some in alike.items():
            place = np.array([[self._place[v] for v in _valued(components[i])] for i in some])
            coefficients = np.array([components[i].coefficients for i in some])
            if divided:
                with np.errstate(all="ignore"):
                    summands = coefficients[:, :, None] * self._values[place[:, 1:]] / self._values[place[:, :1]]
                summands[~np.isfinite(summands)] = 0.0
                gram, moment = summands @ summands.swapaxes(1, 2) / len(slope), summands @ slope / len(slope)
            else:
                gram = products[place[:, :, None], place[:, None, :]] * coefficients[:, :, None]
                gram, moment = gram * coefficients[:, None, :], products[place, -1] * coefficients
            sizes = np.sqrt(np.diagonal(gram, axis1=1, axis2=2))
            left = np.sqrt(np.maximum(gram.sum(axis=(1, 2)) - 2.0 * moment.sum(axis=1) + products[-1, -1], 0.0))
            scale = 1.0 / np.maximum(sizes, 1e-300)
            inverse = np.linalg.inv(gram * scale[:, :, None] * scale[:, None, :] + _RIDGE * np.eye(n))
            own = sizes / np.sqrt(np.diagonal(inverse, axis1=1, axis2=2))
            out[some] = np.column_stack([sizes.max(axis=1), sizes.min(axis=1), own.min(axis=1), own.max(axis=1), left])
        least = [_LEAST_SHARE] * 4 + [_LEAST_LEFT]
        return np.clip(np.log10(out / size + least), -4.0, 4.0)

    def _evaluate(self, wanted: Iterable[_Valued]) -> None:
        """Evaluates what was not evaluated before; 0 where a value is not finite."""
        new = [valued for valued in wanted if valued not in self._place]
        self._place |= {valued: len(self._values) + i for i, valued in enumerate(new)}
        target, terms = self._target, self._terms
        values = np.zeros((len(new), len(target.t)))
        numbers = np.array([terms.position.get(term, -1) for term, _ in new], np.int64)
        inside = np.zeros((len(new), terms.values.shape[1]))
        for i, (term, inner) in enumerate(new):
            if numbers[i] >= 0:
                inside[i, : len(inner)] = inner
            else:
                values[i] = evaluate_known(term, target.known_values, inner)
        known = numbers >= 0
        blocks = np.zeros((-(-int(known.sum()) // BLOCK), len(target.t), BLOCK))
        evaluate_each(
            terms.programs, numbers[known], inside[known], target.t, target.columns, target.inputs, np.inf, blocks
        )
        values[known] = blocks.swapaxes(1, 2).reshape(-1, len(target.t))[: int(known.sum())]
        self._values = np.vstack([self._values, np.where(np.isfinite(values), values, 0.0)])


def _valued(component: Component) -> list[_Valued]:
    """The divisor, if there is one, and the terms, each with the constants inside it."""
    terms = list(zip(component.terms, component.inner, strict=True))
    return terms if component.divisor == ONE else [(component.divisor, component.others), *terms]


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
