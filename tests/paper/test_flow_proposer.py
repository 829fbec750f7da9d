"""The proposer on the trained flow, with the model that comes with the package."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import rankdata

from lgf.data import Knowledge, Observation, Problem
from lgf.equation.skeleton import Skeleton
from lgf.equation.system import System
from lgf.errors import LgfError
from lgf.expression.frame import Frame
from lgf.fit.target_assembly import make_target
from lgf.grammar import load_grammar, unpad
from lgf.language.language import make_language
from lgf.language.sentences import grammar_frame
from lgf.paper.autoencoder.autoencoder import decode
from lgf.paper.bundle import load_bundle, save_bundle
from lgf.paper.discovery.proposer import FlowProposer, _ranks
from lgf.paper.flow.sampling import sample
from lgf.paper.training.stages import skeleton
from lgf.runs.presets import model_named, proposers_for
from lgf.search.candidate import Population
from lgf.search.evaluate import Evaluator
from lgf.search.mixture import make_schedule
from lgf.search.proposers.basic import DeferredProposer, EnumerationProposer, MixedProposer
from lgf.search.settings import PRESETS, DiscoverySettings
from lgf.settings.flow import FlowSettings
from lgf.smoothing.complete import complete
from lgf.solver.solve import solve
from lgf.solver.stability import Stability, StabilityKind

T = np.linspace(0, 5, 60)


@pytest.fixture(scope="module")
def bundle():
    return load_bundle("standard")


@pytest.fixture(scope="module")
def stage(bundle):
    truth = solve(System.read("u' = 2.1*u - 0.5*u^2"), (0.13,), T).u
    noisy = truth + 0.05 * truth.std() * np.random.default_rng(0).standard_normal(len(T))
    problem = Problem((Observation(T, noisy, initial=(0.13,)),), Knowledge(order=1))
    (frame,) = problem.frames
    target = make_target(problem, frame, [complete(problem.observations[0], frame)])
    language = make_language(bundle.grammar, problem, frame, target.ranges)
    evaluator = Evaluator({frame: target}, problem.knowledge)
    population = Population()
    for proposal in EnumerationProposer([language]).ask(150):
        if population.claim(proposal.skeleton.structure):
            population.add(evaluator(proposal))
    return language, target, population


def test_proposals_keep_to_what_is_known_and_repeat_by_seed(bundle, stage):
    language, _, population = stage

    def ask():
        proposer = FlowProposer(bundle, [language], seed=3)
        proposer.tell(population)
        return [str(p.skeleton) for p in (*proposer.ask(25), *proposer.ask(25))]

    found = ask()
    assert found == ask()
    assert len(found) >= 40
    assert all(Skeleton.read(text).frame == language.frame for text in found)
    assert len(set(found)) > 20


def test_guided_proposals_fit_no_worse_than_free_ones(bundle, stage):
    """On this easy record guidance gains little."""
    language, target, population = stage
    evaluator = Evaluator({target.frame: target})
    medians = []
    for guided in (False, True):
        proposer = FlowProposer(bundle, [language], 0, FlowSettings(guided=guided))
        for _ in range(4):
            proposer.tell(population)
        medians.append(np.median([evaluator(p).objective for p in proposer.ask(300)]))
    assert medians[1] <= medians[0]


def test_stability_guides_towards_what_is_known(bundle, stage):
    """As if every equation that contains u^2 were unstable."""
    language, _, population = stage
    judged = Population()
    for candidate in population:
        verdict = StabilityKind.UNSTABLE if "u^2" in str(candidate.skeleton) else StabilityKind.STABLE
        judged.add(replace(candidate, stability=Stability(verdict, "")))
    shares = []
    for known in (True, None, False):
        settings = FlowSettings(guided=False, static=False)
        proposer = FlowProposer(bundle, [replace(language, stable=known)], 0, settings)
        for _ in range(6):
            proposer.tell(judged)
        shares.append(np.mean(["u^2" in str(p.skeleton) for p in proposer.ask(200)]))
    assert shares[0] < shares[1] < shares[2]
    assert shares[2] > shares[0] + 0.2


def test_asked_for_nothing_it_gives_nothing(bundle, stage):
    language, _, _ = stage
    assert FlowProposer(bundle, [language]).ask(0) == []


def test_the_model_of_a_grammar_is_found_by_its_rules(tmp_path, bundle, stage):
    language, target, _ = stage
    flow = proposers_for(load_grammar("standard"))
    for preset, proposer in (("default", MixedProposer), ("paper", DeferredProposer)):
        assert isinstance(make_schedule([language], {target.frame: target}, PRESETS[preset], 0, flow)[-1][0], proposer)
    other = replace(load_grammar("b1"), name="standard")
    assert proposers_for(other) == {}
    save_bundle(bundle, tmp_path / "mine")
    grammar, folder = model_named(tmp_path / "mine")
    assert grammar.fingerprint == bundle.grammar.fingerprint
    assert folder == str(tmp_path / "mine")
    assert list(proposers_for(grammar, folder)) == ["flow"]
    assert model_named("standard") == (load_grammar("standard"), None)


def test_the_flow_is_not_asked_for_an_order_that_its_model_does_not_know(stage):
    language, target, _ = stage
    make = proposers_for(load_grammar("standard"))["flow"]
    third = Frame((("u", 3),))
    assert make([replace(language, frame=third)], {third: target}, PRESETS["paper"], 0) is None
    assert make([language], {target.frame: target}, DiscoverySettings(), 0) is not None


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(LgfError, match="no model is called"):
        model_named(tmp_path)


def test_the_guides_of_order_lead_to_the_order_of_the_language(bundle, stage):
    language, _, _ = stage
    proposer = FlowProposer(bundle, [language], 0, FlowSettings())
    for order in (1, 2):
        guides = proposer._guides(replace(language, frame=grammar_frame(order, False)))[:1]
        tokens = sample(bundle.denoiser, 200, 0, guides)
        found = [skeleton(bundle.grammar, d) for d in unpad(bundle.grammar, decode(bundle.autoencoder, tokens))]
        assert np.mean([s is not None and s.frame.orders == (order,) for s in found]) >= 0.9


def test_ranks_are_those_of_scipy():
    values = np.random.default_rng(0).integers(8, size=50).astype(float)
    np.testing.assert_array_equal(_ranks(values), rankdata(values))
