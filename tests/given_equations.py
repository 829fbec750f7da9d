"""Fits of given equations, without a search."""

from lgf import LatentGrammarFlow
from lgf.search.settings import DiscoverySettings, EnumerationSettings, ProposerShare


class Silent:
    """A proposer that proposes nothing, so that only the equations given are fitted."""

    def ask(self, n):
        return []

    def tell(self, population):
        pass


def fitted(equations, t, values, knowledge=None, **data):
    """The estimator fitted with these equations only."""
    settings = DiscoverySettings(enumeration=EnumerationSettings(iterations=0), proposers=(ProposerShare("none", 1.0),))
    return LatentGrammarFlow(
        knowledge, settings=settings, initial_equations=equations, proposers={"none": lambda *_: Silent()}
    ).fit(t, values, **data)
