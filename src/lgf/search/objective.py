"""The objective of a fitted equation: description length, or the paper's information criterion."""

import math
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


def description_length(
    length: float, n_samples: int, n_columns: int, n_constants: int, bits: float, n_initial: int = 0,
    initial_length: float = 0.0, random_length: float = 0.0,
) -> float:  # fmt: skip
    """The description length of a fit; infinite if the equation could not be solved.

    length + (k ln(n / columns) + initial_length) n / (n - m - 2) + random_length + 2 ln(2) bits
    length is -2 log L. initial_length is the length of the n_initial fitted initial values, random_length that of
    constants that vary by experiment. m = k + n_initial numbers are fitted; the factor is the correction for few
    samples of Hurvich and Tsai's AIC_c.
    """
    freedom = n_samples - n_constants - n_initial - 2
    if freedom <= 0 or not math.isfinite(length):
        return math.inf
    fitted = n_constants * math.log(n_samples / max(n_columns, 1)) + initial_length
    return length + fitted * n_samples / freedom + random_length + 2 * math.log(2) * bits


def paper_objective(
    loss: float, residual: float, n_samples: int, complexity: int, alpha: float = 0.1, gate: float = 0.0
) -> float:
    """L_IC = alpha C + (1 - alpha) n L.

    L is the solution loss. For an equation that was not solved it is the residual, at least `gate`: the paper takes the
    residual only where it is above this threshold.
    """
    accuracy = loss if math.isfinite(loss) else max(residual, gate)
    value = alpha * complexity + (1 - alpha) * n_samples * accuracy
    return value if math.isfinite(value) else math.inf
