from itertools import permutations

import numpy as np
import pytest
import torch

from lgf.paper.flow import sampling
from lgf.paper.flow.denoiser import DenoiserSettings, noised
from lgf.paper.flow.guidance import Guide
from lgf.paper.flow.sampling import jump_rates, sample
from lgf.paper.layout import HEADER, Layout
from lgf.paper.training import denoiser as flow
from lgf.paper.training.trained_weights import to_denoiser

PAIR = Layout(header=2, levels=3)
JOINT = np.array([[0.30, 0.05, 0.05], [0.02, 0.20, 0.08], [0.05, 0.05, 0.20]])
LIKES = np.array([[0.1, 0.9, 0.5], [0.8, 0.2, 0.9], [0.3, 0.6, 0.1]], dtype=np.float32)


class ExactDenoiser:
    """The true p(x_1 | x_t, t) of two tokens with the joint distribution JOINT."""

    layout = PAIR

    def __call__(self, x, t, where=None):
        posterior = self.posterior(x)
        marginals = np.stack([posterior.sum(2), posterior.sum(1)], 1)
        return np.log(np.maximum(marginals / marginals.sum(-1, keepdims=True), 1e-30))

    def posterior(self, x):
        """p(both tokens of x_1 | x_t), up to a factor."""
        likelihood = []
        for place in range(2):
            here = x[:, place, None] == np.arange(3)
            likelihood.append((here | (x[:, place, None] == 3)).astype(float))
        return JOINT * likelihood[0][:, :, None] * likelihood[1][:, None]


class ExactPredictor:
    """The true p(y | x_t, t) of a yes (1) that both tokens of x_1 decide, LIKES being p(yes | x_1)."""

    layout, classes = PAIR, 2

    def changed(self, x, t, where):
        """Log-probabilities [m, S, 2] with each token `where` changed to each state."""
        row, token = where.nonzero()
        rows = np.repeat(x[row][:, None], 4, axis=1)
        rows[np.arange(len(row)), :, token] = np.arange(4)
        posterior = ExactDenoiser().posterior(rows.reshape(-1, 2))
        yes = (posterior * LIKES).sum((1, 2)) / np.maximum(posterior.sum((1, 2)), 1e-30)
        return np.log(np.maximum(np.stack([1 - yes, yes], -1), 1e-30)).reshape(-1, 4, 2)


def exact_log_ratio(guides, x, t, where):
    """Log-ratios [n, D, S] of p(yes | x with one token changed) to p(yes | x)."""
    (guide,) = guides
    values = guide.predictor.changed(x, t, where)[..., int(guide.target)]
    ratio = np.zeros((*x.shape, 4))
    ratio[where] = values - np.take_along_axis(values, x[where][:, None], -1)
    return ratio


def empirical(tokens):
    counts = np.zeros((3, 3))
    np.add.at(counts, (tokens[:, 0], tokens[:, 1]), 1)
    return counts / len(tokens)


@pytest.mark.parametrize("eta", [0.0, 1.5])
def test_the_chain_ends_in_the_exact_joint_distribution(eta):
    tokens = sample(ExactDenoiser(), 8_000, seed=1, steps=120, eta=eta)
    assert np.abs(empirical(tokens) - JOINT).max() < 0.02


def test_one_token_after_the_other_gives_the_exact_joint_distribution():
    tokens = sample(ExactDenoiser(), 8_000, seed=1)
    assert np.abs(empirical(tokens) - JOINT).max() < 0.02


@pytest.mark.parametrize(("steps", "eta"), [(None, 0.0), (60, 0.0), (60, 1.5), (100, 10.0)])
def test_guided_by_the_exact_predictor_the_chain_ends_in_the_exact_conditional(steps, eta, monkeypatch):
    monkeypatch.setattr(sampling, "taylor_log_ratio", exact_log_ratio)
    tokens = sample(ExactDenoiser(), 8_000, 1, [Guide(ExactPredictor(), 1)], steps, eta)
    expected = JOINT * LIKES / (JOINT * LIKES).sum()
    assert np.abs(expected - JOINT).max() > 0.15
    assert np.abs(empirical(tokens) - expected).max() < 0.02


def test_much_stochasticity_keeps_the_distribution():
    tokens = sample(ExactDenoiser(), 8_000, 1, steps=100, eta=10.0)
    assert np.abs(empirical(tokens) - JOINT).max() < 0.02


def test_same_seed_same_tokens():
    one, two, other = (sample(ExactDenoiser(), 40, seed) for seed in (5, 5, 6))
    assert (one == two).all()
    assert (one != other).any()


def test_stochasticity_satisfies_detailed_balance():
    """With p the point mass at x_1, the rates' part in eta must leave p(x_t | x_1) as it is."""
    t, levels, x1 = 0.4, 3, 2
    states = 4
    marginal = np.zeros(states)
    marginal[3] = 1 - t
    marginal[x1] += t
    p = np.broadcast_to(np.eye(levels)[x1], (states, 1, levels))
    x = np.arange(states)[:, None]
    times = np.full(states, t)
    part = (jump_rates(p, x, times, 2.0) - jump_rates(p, x, times, 0.0))[:, 0, :states]
    there = marginal[:, None] * part
    reached = marginal > 0
    np.testing.assert_allclose(there[reached][:, reached], there.T[reached][:, reached])


def test_noise_keeps_a_share_t():
    layout = Layout(header=50, levels=9)
    rng = np.random.default_rng(0)
    x1 = rng.integers(9, size=(400, 50))
    torch.manual_seed(0)
    x = noised(layout, x1, np.full(400, 0.3), rng)
    assert abs((x == x1).mean() - 0.3) < 0.02
    x = flow.noised(layout, torch.from_numpy(x1), torch.full((400,), 0.3)).numpy()
    assert abs((x == x1).mean() - 0.3) < 0.02


@pytest.mark.parametrize("architecture", ["blocks", "mlp"])
@pytest.mark.parametrize("layout", [Layout(4, 3, 5), Layout(0, 3, 5), Layout(8)])
def test_the_loss_of_an_untrained_denoiser_is_that_of_chance(architecture, layout):
    torch.manual_seed(0)
    model = flow.Denoiser(layout, DenoiserSettings(architecture, width=16, depth=2, heads=2))
    x = torch.randint(layout.levels, (7, layout.tokens))
    assert flow.flow_loss(model, x).item() == pytest.approx(np.log(9), abs=0.8)


def test_exchanging_slots_exchanges_the_outputs():
    layout = Layout(4, 3, 5)
    torch.manual_seed(0)
    model = to_denoiser(flow.Denoiser(layout, DenoiserSettings(width=16, depth=2, heads=2)))
    rng = np.random.default_rng(0)
    x, t = rng.integers(layout.states, size=(6, layout.tokens)), rng.random(6, dtype=np.float32)
    places = np.concatenate([np.arange(4), 4 + np.array([10, 11, 12, 13, 14, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9])])
    np.testing.assert_allclose(model(x[:, places], t), model(x, t)[:, places], rtol=1e-4, atol=1e-5)


def test_shuffling_moves_whole_slots_only():
    layout = Layout(2, 3, 2)
    torch.manual_seed(0)
    rows = flow.shuffled(layout, torch.arange(8).expand(50, 8))
    assert (rows[:, :2] == torch.tensor([0, 1])).all()
    slots = [(2, 3), (4, 5), (6, 7)]
    assert {tuple(row[2:].tolist()) for row in rows} == {a + b + c for a, b, c in permutations(slots)}
    assert layout.blocks().tolist() == [HEADER, HEADER, 0, 0, 1, 1, 2, 2]
