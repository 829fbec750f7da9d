"""Settings of the discrete flow: sampling, training of its predictors, and its use in a search.

They are separate from the networks, so that a search has them without torch.
"""

from dataclasses import dataclass

from lgf.settings.ranges import Count, Positive, Share, Tally, Weight


@dataclass(frozen=True)
class SamplingSettings:
    """Sampling of the chain; the paper has steps=100, eta=10, exact_guidance=False.

    steps           of equal time, in each of which any number of tokens may jump; None samples without stochasticity in
                    continuous time, one token after the other in random order, and with it in 100 steps
    eta             stochasticity; larger values need more steps
    x1_temperature  of the denoiser's probabilities
    exact_guidance  False takes the Taylor approximation, which suits many tokens of little weight each
    batch           rows sampled at a time
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
    """Use of the flow in a search; shares are of its proposals."""

    guided: bool = True  # towards the objective: in sampling if screening = 1, by screening otherwise
    stability: bool = True  # towards stability too, if it is known
    static: bool = False  # by the order and forcing predictors too, although the masks enforce these
    renoised: Share = 0.7
    whole_summands: Share = 0.5  # share of renoised rows that lose whole summands instead of single tokens
    second_summand: Share = 0.3  # share of these that lose a second one
    least_noise: Share = 0.2  # the share of single tokens that a row loses is drawn between these two
    most_noise: Share = 0.6
    batch: Count = 40  # least number of proposals made at a time
    screening: Count = 3  # proposals made for each one that the predictor passes; 1 = none
    unscreened: Share = 0.15  # share passed at random
    elite: Count = 50
    elite_decay: Positive = 4.0  # candidates are drawn by rank, with mean rank elite / elite_decay
    quantile: Share = 0.07  # the target is to be as good as this share of the evaluated candidates
    temperature: Positive = 1.0
    static_temperature: Positive = 0.25  # of the guidance towards certain knowledge
    least: Count = 100  # evaluations before the predictors are used
    growth: Weight = 2.0  # the predictors are trained again when the evaluations have grown by this factor
    sampling: SamplingSettings = SamplingSettings(steps=8, x1_temperature=1.2)
    predictors: PredictorSettings = PredictorSettings()


@dataclass(frozen=True)
class ConditionalSettings:
    """The list of a conditional flow.

    iterations  at the begin of a search that take the list, in place of an enumeration
    strength    of what the record says, relative to the grammar: 0 lists the grammar's sentences, 1 is the flow as it
                was trained
    batch       partial sentences that are continued at a time
    least       nats below which a sentence is not listed
    most        equations listed
    """

    iterations: Tally = 1
    strength: Weight = 1.0
    batch: Count = 24
    least: Positive = 14.0
    most: Count = 100
