"""Settings of the discrete flow: how its chain is walked, how its predictors learn, how a search asks it.

They stand apart from the networks, so that a search has them without torch.
"""

from dataclasses import dataclass

from lgf.settings.ranges import Count, Positive, Share, Weight


@dataclass(frozen=True)
class SamplingSettings:
    """How the chain is walked; the paper's are steps=100, eta=10, exact_guidance=False.

    steps           of equal time, in each of which any number of tokens may jump; None walks the chain of masking
                    noise without stochasticity as it is in continuous time, one token after the other in random
                    order, and every other chain in 100 steps
    eta             stochasticity; the more of it, the more steps are needed (with uniform noise and 10 over 400)
    x1_temperature  of the denoiser's probabilities
    exact_guidance  or the Taylor approximation, which suits many tokens of little weight each
    batch           rows walked at a time
    """

    steps: Count | None = None
    eta: Weight = 0.0
    x1_temperature: Positive = 1.0
    exact_guidance: bool = True
    batch: Count = 500


@dataclass(frozen=True)
class PredictorSettings:
    """Training of a predictor, in steps of batches drawn at random."""

    steps: Count = 50
    batch: Count = 128
    learning_rate: Positive = 3e-3
    weight_decay: Weight = 1e-2


@dataclass(frozen=True)
class FlowSettings:
    """How the flow is asked; shares are of the proposals it makes."""

    guided: bool = True  # by the objective: in sampling if screening = 1, by screening otherwise
    stability: bool = True  # by stability too, where it is known
    static: bool = False  # by the order and forcing predictors of the model too, although the masks enforce these
    renoised: Share = 0.7
    whole_summands: Share = 0.5  # share of renoised rows that lose whole summands instead of single tokens
    second_summand: Share = 0.3  # share of these that lose a second one
    least_noise: Share = 0.2  # the share of single tokens that a row loses is drawn between these two
    most_noise: Share = 0.6
    batch: Count = 40  # proposals made at least, at a time
    screening: Count = 3  # proposals made for each one that the predictor passes; 1 = none
    unscreened: Share = 0.15  # share passed at random
    elite: Count = 50
    elite_decay: Positive = 4.0  # candidates are drawn by rank, with a mean rank of the elite over this
    quantile: Share = 0.07  # "at least as good as" this share of what was seen
    temperature: Positive = 1.0
    static_temperature: Positive = 0.25  # of the guides towards what is known for certain
    least: Count = 100  # evaluations before the predictors are trusted
    growth: Weight = 2.0  # the predictors are trained again when so many times more was evaluated
    sampling: SamplingSettings = SamplingSettings(steps=8, x1_temperature=1.2)
    predictors: PredictorSettings = PredictorSettings()
