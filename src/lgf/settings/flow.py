"""Settings of the discrete flow (sampling, and its use in a search) and of the conditional flow.

They are separate from the networks, so that a search has them without these.
"""

from dataclasses import dataclass

from lgf.settings.ranges import Count, Tally, Weight


@dataclass(frozen=True)
class FlowSettings:
    """Use of the paper's flow in a search."""

    guided: bool = True  # towards the objective
    stability: bool = True  # towards stability too, if it is known
    static: bool = True  # by the order and forcing predictors too, although the masks enforce these
    steps: Count = 100  # of equal time, in each of which any number of tokens may jump
    eta: Weight = 10.0  # stochasticity; larger values need more steps


@dataclass(frozen=True)
class ConditionalSettings:
    """The list of a conditional flow."""

    iterations: Tally = 1  # at the begin of a search that take the list, in place of an enumeration
    most: Count = 100  # equations listed
