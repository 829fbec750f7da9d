"""Settings of the discrete flow (sampling, and its use in a search) and of the conditional flow.

They are separate from the networks, so that a search has them without these.
"""

from dataclasses import dataclass

from lgf.settings.ranges import Count, Positive, Share, Tally, Weight


@dataclass(frozen=True)
class SamplingSettings:
    """Sampling of the chain; the paper has steps=100, eta=10, exact_guidance=False.

    steps           of equal time, in each of which any number of tokens may jump; None samples without stochasticity in
                    continuous time, one token after the other in random order, and every other chain in 100 steps
    eta             stochasticity; larger values need more steps
    x1_temperature  of the denoiser's probabilities
    exact_guidance  False takes the Taylor approximation, which suits many tokens of little weight each
    """

    steps: Count | None = None
    eta: Weight = 0.0
    x1_temperature: Positive = 1.0
    exact_guidance: bool = True


@dataclass(frozen=True)
class FlowSettings:
    """Use of the flow in a search; shares are of its proposals."""

    guided: bool = True  # towards the objective: in sampling if screening = 1, by screening otherwise
    stability: bool = True  # towards stability too, if it is known
    static: bool = False  # by the order and forcing predictors too, although the masks enforce these
    renoised: Share = 0.7
    screening: Count = 3  # proposals made for each one that the predictor passes; 1 = none
    growth: Weight = 2.0  # the predictors are trained again when the evaluations have grown by this factor
    predictor_steps: Count = 50  # of a training of the predictors
    sampling: SamplingSettings = SamplingSettings(steps=8, x1_temperature=1.2)


@dataclass(frozen=True)
class ConditionalSettings:
    """The list of a conditional flow."""

    iterations: Tally = 1  # at the begin of a search that take the list, in place of an enumeration
    most: Count = 100  # equations listed
