"""Proposers and their shares: who is asked for how many proposals."""

from dataclasses import replace

import numpy as np
import pytest

from lgf.data import Knowledge, Observation, Problem
from lgf.equation.skeleton import Skeleton
from lgf.grammar import load_grammar, read_grammar
from lgf.search.candidate import Proposal
from lgf.search.discover import discover
from lgf.search.loop import SearchSettings
from lgf.search.mixture import make_schedule
from lgf.search.proposers.basic import EnumerationProposer, EvolutionProposer, MonteCarloProposer
from lgf.search.select import SelectionSettings
from lgf.search.settings import PRESETS, DiscoverySettings, EnumerationSettings, ProposerShare
from lgf.solver.forcing import Forcing

T = np.linspace(0, 4, 40)
NOISE = 0.02 * np.random.default_rng(0).standard_normal(len(T))
DECAY = Problem((Observation(T, 2 * np.exp(-T / 2) + NOISE),), Knowledge(order=1))

SMALL = DiscoverySettings(search=SearchSettings(first=10, iterations=2), selection=SelectionSettings(n_finalists=1))


class Asked:
    """A proposer that notes what it is asked for, and gives a share of it."""

    def __init__(self, gives=1.0):
        self.asked, self._gives = [], gives

    def tell(self, population):
        pass

    def ask(self, n):
        self.asked.append(n)
        return [Proposal(Skeleton.read("u' = C"), 1.0)] * int(self._gives * n)


def mixture(shares, **own):
    """The proposer that these shares make of the user's own, None being one that cannot be asked."""
    settings = DiscoverySettings(proposers=tuple(ProposerShare(name, share) for name, share in shares.items()))
    makers = {name: lambda *_, proposer=proposer: proposer for name, proposer in own.items()}
    return make_schedule([], {}, settings, 0, makers)[-1][0]


def test_each_proposer_is_asked_for_its_share():
    a, b, c = Asked(), Asked(), Asked()
    proposals = mixture({"a": 0.6, "b": 0.2, "c": 0.2}, a=a, b=b, c=c).ask(100)
    assert len(proposals) == 100
    assert (a.asked, b.asked, c.asked) == ([60], [20], [20])


def test_shares_are_relative_to_each_other():
    a, b = Asked(), Asked()
    mixture({"a": 3, "b": 1}, a=a, b=b).ask(100)
    assert (a.asked, b.asked) == ([75], [25])


def test_what_one_cannot_give_those_after_it_do():
    a, b, c = Asked(gives=0.5), Asked(), Asked()
    assert len(mixture({"a": 0.6, "b": 0.2, "c": 0.2}, a=a, b=b, c=c).ask(100)) == 100
    assert (a.asked, b.asked, c.asked) == ([60], [35], [35])


def test_the_share_of_a_proposer_that_cannot_be_asked_goes_to_the_others():
    a, c = Asked(), Asked()
    mixture({"a": 0.6, "b": 0.2, "c": 0.2}, a=a, b=None, c=c).ask(100)
    assert (a.asked, c.asked) == ([60], [40])
    a, b = Asked(), Asked()
    mixture({"a": 0.5, "b": 0.2, "c": 0.3}, a=a, b=b, c=None).ask(100)
    assert (a.asked, b.asked) == ([50], [50])


def test_reserves_are_asked_only_where_no_proposer_with_a_share_can_be():
    a, b, c = Asked(gives=0.0), Asked(), Asked()
    assert mixture({"a": 1.0, "b": 0.0}, a=a, b=b).ask(10) == []
    assert b.asked == []
    mixture({"a": 1.0, "b": 0.0, "c": 0.0}, a=None, b=b, c=c).ask(10)
    assert (b.asked, c.asked) == ([5], [5])


@pytest.mark.parametrize(
    ("name", "kind"),
    [("enumeration", EnumerationProposer), ("evolution", EvolutionProposer), ("monte carlo", MonteCarloProposer)],
)
def test_the_proposers_of_the_package_go_by_name(name, kind):
    shares = (ProposerShare(name, 1.0),)
    settings = replace(SMALL, enumeration=EnumerationSettings(iterations=0), proposers=shares)
    found = discover(DECAY, load_grammar("standard"), settings)
    assert [iteration.origin for iteration in found.history] == [kind.__name__] * 2
    assert found.evaluations == 20, "the second iteration goes on where the first ended"


def test_a_grammar_without_summands_is_drawn_from():
    grammar = read_grammar("template: explicit\nS -> C*u | C*u + S | C*t | C*t*u | C*u^2 | C*exp(C*t)")
    found = discover(DECAY, grammar, replace(SMALL, search=SearchSettings(first=4, iterations=2)))
    assert {c.proposal.origin for c in found.population} >= {"monte carlo"}


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_without_a_model_or_of_an_order_that_models_do_not_know_is_searched_all_the_same(preset):
    settings = replace(PRESETS[preset], search=SearchSettings(first=8, max_evaluations=16))
    third = replace(DECAY, knowledge=Knowledge(order=3))
    found = discover(third, load_grammar("standard"), settings)
    assert found.evaluations == 16
    assert found.best.skeleton.frame.orders == (3,)


@pytest.mark.parametrize("order", [1, 2])
def test_plain_equations_are_tried_whatever_the_lists_say(order):
    problem = Problem(
        (replace(DECAY.observations[0], inputs={"a": Forcing.from_samples(T, np.sin(T))}),), Knowledge(order=order)
    )
    settings = replace(SMALL, search=SearchSettings(first=4, iterations=2))
    found = discover(problem, load_grammar("standard"), settings)
    (frame,) = problem.frames
    linear = "C*u' + C*u" if order == 2 else "C*u"
    for text in (f"{linear} + C*a + C", f"{linear} + C*u^2 + C*a + C"):
        skeleton = Skeleton.read(f"{frame.highest[0]} = {text}", frame)
        assert found.population.get(skeleton.structure) is not None, text
