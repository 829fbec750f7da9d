"""The trained ranking of the right-hand sides of a row: p(right-hand side | record) among those of a list.

It is a conditional logit: a right-hand side has the weight exp(w . features), see `row_evidence`, and the weights of a
list are normalised. So ranks of different rows are logarithms of probabilities, and add up to that of a system. The
seventeen numbers w are learned on simulated systems (`python -m benchmarks rows`), the same for every row and number
of states.
"""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from lgf.errors import LgfError
from lgf.search.systems.component import Component
from lgf.search.systems.row_evidence import N_FEATURES, RowEvidence

FILE = "rows.safetensors"


@dataclass(frozen=True, eq=False)
class RowRanking:
    """The means and deviations of the features, and the weights of the features so scaled."""

    mean: np.ndarray
    deviation: np.ndarray
    weights: np.ndarray

    def log_probabilities(self, features: np.ndarray) -> np.ndarray:
        """Log p [component] of the right-hand sides of one row with these features."""
        scores = (features - self.mean) / self.deviation @ self.weights
        return scores - np.logaddexp.reduce(scores)

    def ranked(self, evidence: RowEvidence) -> list[Component]:
        """The right-hand sides, the most probable first; ranks are -2 log p, as description lengths are."""
        ranks = -2.0 * self.log_probabilities(evidence.features)
        return [evidence.components[i].ranked(float(ranks[i])) for i in np.argsort(ranks, kind="stable")]


@cache
def load_row_ranking() -> RowRanking:
    """The ranking that comes with the package; LgfError if it is damaged."""
    try:
        arrays = load(files("lgf").joinpath("models", "systems", FILE).read_bytes())
        shapes = {name: value.shape for name, value in arrays.items()}
        if shapes != dict.fromkeys(("mean", "deviation", "weights"), (N_FEATURES,)):
            raise ValueError("its weights have other names or sizes than expected")
        if not all(np.isfinite(value).all() for value in arrays.values()):
            raise ValueError("its weights are not finite")
    except (OSError, SafetensorError, ValueError, TypeError) as error:
        raise LgfError(f"the ranking of right-hand sides is damaged: {error}; install the package again.") from error
    return RowRanking(**arrays)
