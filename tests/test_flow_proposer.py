"""The proposer on the trained flow, with the model that comes with the package."""

from dataclasses import replace

import numpy as np
import pytest

from lgf.choosing import model_named, proposer_for
from lgf.data import DataError, Knowledge, Observation, Problem, complete
from lgf.discovery.candidate import Population
from lgf.discovery.discovering import PRESETS, DiscoverySettings, without_model
from lgf.discovery.evaluation import Evaluator
from lgf.discovery.language import make_language
from lgf.discovery.proposing import EnumerationProposer, MixedProposer
from lgf.discovery.target import make_target
from lgf.flow_proposer import FlowProposer, FlowSettings
from lgf.grammar import load_grammar, unpad
from lgf.latent.autoencoder import decode
from lgf.latent.bundle import load_bundle, save_bundle
from lgf.latent.sampling import sample
from lgf.ode.skeleton import Equation, Skeleton
from lgf.ode.solving import solve
from lgf.training.measures import skeleton

T = np.linspace(0, 5, 60)


@pytest.fixture(scope="module")
def bundle():
    return load_bundle("standard")


@pytest.fixture(scope="module")
def stage(bundle):
    truth = solve(Equation(Skeleton.read("u' = 2.1*u - 0.5*u^2"), ()), (0.13,), T).u
    noisy = truth + 0.05 * truth.std() * np.random.default_rng(0).standard_normal(len(T))
    problem = Problem((Observation(T, noisy, initial=(0.13,)),), Knowledge(order=1))
    target = make_target(problem, 1, [complete(problem.observations[0], 1)])
    language = make_language(bundle.grammar, problem, target)
    evaluator = Evaluator({1: target}, problem.knowledge)
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
    assert all(Skeleton.read(text).order == 1 for text in found)
    assert len(set(found)) > 20


def test_guided_proposals_fit_better_than_unguided(bundle, stage):
    language, target, population = stage
    evaluator = Evaluator({1: target})
    guided = FlowProposer(bundle, [language], 0, FlowSettings(renoised=0.0))
    free = FlowProposer(bundle, [language], 0, FlowSettings(renoised=0.0, guided=False, screening=1))
    medians = []
    for proposer in (guided, free):
        proposer.tell(population)
        medians.append(np.median([evaluator(p).objective for p in proposer.ask(150)]))
    assert medians[0] < medians[1]


def test_asked_for_nothing_it_gives_nothing(bundle, stage):
    language, _, _ = stage
    assert FlowProposer(bundle, [language]).ask(0) == []


def test_the_model_of_a_grammar_is_found_by_its_rules(tmp_path, bundle, stage):
    language, target, _ = stage
    make = proposer_for(load_grammar("standard"))
    assert isinstance(make([language], {1: target}, DiscoverySettings(), 0), MixedProposer)
    assert isinstance(make([language], {1: target}, PRESETS["paper"], 0), FlowProposer)
    other = replace(load_grammar("b1"), name="standard")
    assert proposer_for(other) is without_model
    save_bundle(bundle, tmp_path / "mine")
    grammar, folder = model_named(tmp_path / "mine")
    assert grammar.fingerprint == bundle.grammar.fingerprint
    assert folder == str(tmp_path / "mine")
    assert proposer_for(grammar, folder) is not without_model
    assert model_named("standard") == (load_grammar("standard"), None)


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(DataError, match="no model is called"):
        model_named(tmp_path)


def test_the_guides_of_order_lead_to_the_order_of_the_language(bundle, stage):
    language, _, _ = stage
    guides = FlowProposer(bundle, [language], 0, FlowSettings(static=True))._guides(language, objective=False)
    tokens = sample(bundle.denoiser, 60, 0, [replace(guides[0], temperature=0.25)])
    found = [skeleton(bundle.grammar, d) for d in unpad(bundle.grammar, decode(bundle.autoencoder, tokens))]
    assert sum(s is not None and s.order == language.order for s in found) >= 50
