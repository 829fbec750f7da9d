"""What a fitted equation is worth: the paper's information criterion, and the description length."""

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
    foreign_bits: Weight = 24.0  # of a user's own equation that the grammar cannot derive
    contradiction: Weight = 0.5  # added for each sample where the stability is the opposite of the known one


def objective(
    loss: float, residual: float, n_samples: int, n_constants: int, bits: float, complexity: int,
    initial_length: float = 0.0, floor: float = 0.0, settings: ObjectiveSettings = ObjectiveSettings(),
) -> float:  # fmt: skip
    """The worth of a fit; infinite if it could not be solved.

    description_length: n ln(loss) + k ln(n) + 2 ln(2) * weight * bits, loss being the relative mean square error of
    the solved trajectory, and initial_length for the initial values that are fitted: a higher order has more of them.
    No loss is believed below the `floor`, the error of the solver and of the numbers in the file.
    paper: L_IC = alpha C + (1 - alpha) n L, L being the solution loss, or the residual where the equation was not
    solved.
    """
    if settings.criterion is Criterion.PAPER:
        accuracy = loss if math.isfinite(loss) else residual
        value = settings.alpha * complexity + (1 - settings.alpha) * n_samples * accuracy
    elif not math.isfinite(loss):
        return math.inf
    else:
        fit = n_samples * math.log(max(loss, floor, 1e-16))
        fitted = n_constants * math.log(n_samples) + initial_length
        value = fit + fitted + 2 * math.log(2) * settings.bits_weight * bits
    return value if math.isfinite(value) else math.inf
