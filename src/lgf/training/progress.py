"""Progress: what a training reports while it runs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """Progress of a training after an epoch. For the corpus, epochs count sentences and there is no loss."""

    stage: str
    epoch: int
    epochs: int
    loss: float | None
    validation_loss: float | None
    exact: float | None
    seconds_left: float
