"""The ways of proposing that `efficiency` compares: of equations of one state, and of systems.

Those for systems are parts of the plan of `lgf.search.proposers.components`, and the enumeration of whole systems.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice

from lgf.data.row_knowledge import RowKnowledge
from lgf.fit.segments import Shooting
from lgf.fit.target import Target
from lgf.grammar import load_grammar
from lgf.language.language import Language
from lgf.language.system_language import SystemLanguage
from lgf.paper.bundle import load_bundle
from lgf.paper.discovery.proposer import FlowProposer
from lgf.runs.presets import proposers_for
from lgf.search.candidate import Population, Proposal
from lgf.search.mixture import CONDITIONAL, FLOW, MakeProposer, make_schedule
from lgf.search.proposers.basic import EnumerationProposer, EvolutionProposer, MonteCarloProposer, Proposer
from lgf.search.proposers.components import SEGMENTS, ComponentProposer, ComponentSettings
from lgf.search.settings import DiscoverySettings, EnumerationSettings, ProposerShare
from lgf.search.systems.combinations import combinations
from lgf.search.systems.component import Component, propose_components
from lgf.search.systems.component_lists import ComponentSelection
from lgf.search.systems.term_grid import make_term_grid
from lgf.settings.flow import FlowSettings

MODEL = "standard"
BASE = "missing terms after 8 enumerated"
"""The same search of one state without a network, with which the others are compared."""

UNGUIDED = FlowSettings(guided=False, stability=False, static=False, steps=10, eta=0.0)
# The mixture of version 0.2.
WITH_FLOW = (*DiscoverySettings().proposers[:4], ProposerShare(FLOW, 0.1), *DiscoverySettings().proposers[4:])
GUIDED = FlowSettings(steps=10, eta=0.0)

Schedule = Sequence[tuple[Proposer, int]]
Way = Callable[[Language, Target, int], Schedule]
SystemWay = Callable[[SystemLanguage, Target], Proposer]


def _mixture(settings: DiscoverySettings = DiscoverySettings(), *networks: str) -> Way:
    """The search of the product, with these networks."""
    return lambda language, target, seed: make_schedule(
        [language], {target.frame: target}, settings, seed, {name: _networks()[name] for name in networks}
    )


@cache
def _networks() -> dict[str, MakeProposer]:
    return proposers_for(load_grammar(MODEL))


def _latent(language: Language, seed: int, settings: FlowSettings) -> Proposer:
    return FlowProposer(load_bundle(MODEL), [language], seed, settings)


def _listed(language: Language, target: Target, seed: int) -> Proposer:
    proposer = _networks()[CONDITIONAL]([language], {target.frame: target}, DiscoverySettings(), seed)
    assert proposer is not None
    return proposer


WAYS: dict[str, Way] = {
    "monte carlo": lambda language, target, seed: [(MonteCarloProposer([language], seed), 1)],
    "enumeration": lambda language, target, seed: [(EnumerationProposer([language]), 1)],
    "evolution": lambda language, target, seed: [
        (EnumerationProposer([language]), 1),
        (EvolutionProposer([language], seed), 1),
    ],
    # ten iterations, the first ones of eight, each later one a quarter of those before
    "missing terms after 100 enumerated": _mixture(DiscoverySettings(enumeration=EnumerationSettings(iterations=10))),
    BASE: _mixture(),
    "latent flow": lambda language, target, seed: [(_latent(language, seed, UNGUIDED), 1)],
    "conditional flow": lambda language, target, seed: [(_listed(language, target, seed), 1)],
    "conditional flow, then latent flow with the paper's guides": lambda language, target, seed: [
        (_listed(language, target, seed), 1),
        (_latent(language, seed, GUIDED), 1),
    ],
    "default": _mixture(DiscoverySettings(), CONDITIONAL),
    "default and the latent flow": _mixture(DiscoverySettings(proposers=WITH_FLOW), FLOW, CONDITIONAL),
}


class EnumeratedSystems:
    """The systems of fewest bits, whatever the record says; their constants start at the fits of the rows."""

    in_batches = True
    _CHEAPEST = 300  # right-hand sides of a row

    def __init__(self, language: SystemLanguage, target: Target):
        self._language = language
        self._shooting = Shooting(SEGMENTS[:1])
        selection = ComponentSelection(language, target, make_term_grid(language, target), target.columns)
        lists = [self._cheapest(selection, row) for row in range(len(language.frame.states))]
        self._systems = combinations(lists, self._CHEAPEST * 10)

    def _cheapest(self, selection: ComponentSelection, row: int) -> list[Component]:
        cheapest = selection.cheapest(row, self._CHEAPEST)
        return [replace(c, rank=self._language.bits(row, c.terms)) for c in cheapest]

    def ask(self, n: int) -> list[Proposal]:
        """The next systems."""
        known = RowKnowledge(self._language.frame)
        found = (propose_components(self._language, known, c, self._shooting, "enumeration") for c in self._systems)
        return list(islice((p for p in found if p is not None), n))

    def tell(self, population: Population) -> None:
        """Does nothing: the order is that of the grammar."""


def _plan(settings: ComponentSettings) -> SystemWay:
    return lambda language, target: ComponentProposer(language, target, RowKnowledge(language.frame), settings)


SYSTEM_BASE = "default without the ranking"
"""The same search of systems without what was learned, with which the others are compared."""
_MANY = 1000  # combinations, more than are tried
SYSTEM_WAYS: dict[str, SystemWay] = {
    "enumeration": EnumeratedSystems,
    # from the first of the lists
    "missing terms": _plan(
        ComponentSettings(ranked=False, combinations=1, cheap=0, swept=1, second_passes=0, second_swept=1)
    ),
    "lists": _plan(ComponentSettings(ranked=False, combinations=_MANY)),
    "ranked lists": _plan(ComponentSettings(combinations=_MANY)),
    SYSTEM_BASE: _plan(ComponentSettings(ranked=False)),
    "default": _plan(ComponentSettings()),
}
