"""The objective of a fitted equation: description length, or the paper's information criterion."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from lgf.settings.ranges import Share, Weight


class Criterion(StrEnum):
    """The objectives to choose from; smaller is better."""

    DESCRIPTION_LENGTH = "description_length"
    PAPER = "paper"


@dataclass(frozen=True)
class ObjectiveSettings:
    """Weights of the criteria."""

    criterion: Criterion = Criterion.DESCRIPTION_LENGTH
    alpha: Share = 0.1  # weight of the complexity in the paper's criterion
    bits_weight: Weight = 1.0  # weight of the grammar's bits in the description length
    foreign_bits: Weight = 24.0  # length of a user's equation that the grammar cannot derive
    contradiction: Weight = 0.5  # penalty per sample if the stability contradicts the user's


def objective(
    loss: float, residual: float, n_samples: int, n_constants: int, bits: float, complexity: int,
    n_initial: int = 0, initial_length: float = 0.0, random_length: float = 0.0, floor: float = 0.0,
    settings: ObjectiveSettings = ObjectiveSettings(), columns: Sequence[tuple[int, float]] = (), gate: float = 0.0,
) -> float:  # fmt: skip
    """The objective of a fit; infinite if the equation could not be solved.

    description_length: n ln(loss) + (k ln(n) + initial_length) n / (n - m - 2) + random_length + 2 ln(2) weight bits.
    The loss is the relative mean square error of the solved trajectory, at least `floor`: the error of the solver and
    of the rounded data. initial_length is the length of the n_initial fitted initial values, random_length that of
    constants that vary by experiment. m = k + n_initial numbers are fitted; the factor is the correction for few
    samples of Hurvich and Tsai's AIC_c. With `columns`, pairs (samples, loss), each measured column has a variance of
    its own: n ln(loss) is the sum over the columns, and k ln(n) takes their mean number of samples.
    paper: L_IC = alpha C + (1 - alpha) n L. L is the solution loss. For an equation that was not solved it is the
    residual, at least `gate`: the paper takes the residual only where it is above this threshold.
    """
    if settings.criterion is Criterion.PAPER:
        accuracy = loss if math.isfinite(loss) else max(residual, gate)
        value = settings.alpha * complexity + (1 - settings.alpha) * n_samples * accuracy
    elif not math.isfinite(loss):
        return math.inf
    else:
        freedom = n_samples - n_constants - n_initial - 2
        if freedom <= 0:
            return math.inf
        fit = sum(n * math.log(max(part, floor, 1e-16)) for n, part in columns or ((n_samples, loss),))
        per_constant = math.log(n_samples / max(len(columns), 1))
        fitted = (n_constants * per_constant + initial_length) * n_samples / freedom + random_length
        value = fit + fitted + 2 * math.log(2) * settings.bits_weight * bits
    return value if math.isfinite(value) else math.inf
