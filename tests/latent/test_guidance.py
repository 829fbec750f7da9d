import numpy as np
import pytest
import torch
from torch.nn import functional

from lgf.grammar import spell, unpad
from lgf.latent.autoencoder import decode
from lgf.latent.flow import Noise, noised
from lgf.latent.guidance import (
    Guide,
    Predictor,
    PredictorSettings,
    exact_log_ratio,
    predict,
    taylor_log_ratio,
    train_predictor,
)
from lgf.latent.layout import Layout
from lgf.latent.sampling import SamplingSettings, sample


def share_with_velocity(small, tokens):
    sentences = [spell(small.grammar, d) for d in unpad(small.grammar, decode(small.autoencoder, tokens))]
    return np.mean(["u'" in s for s in sentences])


@pytest.mark.parametrize(("target", "wanted"), [(1, 1.0), (0, 0.0)])
def test_guidance_gives_what_is_wanted(small, target, wanted):
    guides = [Guide(small.predictor, target)]
    assert abs(share_with_velocity(small, sample(small.denoiser, 200, 0, guides)) - wanted) < 0.1


def test_unguided_samples_follow_the_data(small):
    tokens = sample(small.denoiser, 400, seed=0)
    assert abs(share_with_velocity(small, tokens) - small.second_order.mean()) < 0.1
    lengths = [len(d) for d in unpad(small.grammar, decode(small.autoencoder, tokens))]
    known = [len(d) for d in unpad(small.grammar, small.derivations)]
    assert np.mean(lengths) == pytest.approx(np.mean(known), rel=0.1)


def test_taylor_agrees_with_the_exact_ratio(small):
    torch.manual_seed(0)
    x1 = torch.from_numpy(small.tokens[:40]).long()
    t = torch.rand(40)
    x = noised(small.autoencoder.layout, Noise.MASK, x1, t)
    objective = small.second_order * 1.0 + (small.tokens == 3).mean(1)
    continuous = Predictor(small.autoencoder.layout, classes=0, width=64)
    continuous = train_predictor(continuous, small.tokens, objective, 0, PredictorSettings(steps=200))
    guides = [Guide(small.predictor, 1, temperature=2.0), Guide(continuous, 0.2)]
    exact, taylor = exact_log_ratio(guides, x, t), taylor_log_ratio(guides, x, t)
    masked = x == small.autoencoder.layout.mask
    correlation = np.corrcoef(exact[masked].flatten().numpy(), taylor[masked].flatten().numpy())[0, 1]
    assert correlation > 0.99


def test_exact_ratio_is_that_of_two_evaluations(small):
    x = torch.from_numpy(small.tokens[:3]).long()
    t = torch.tensor([0.2, 0.5, 0.9])
    guide = Guide(small.predictor, 0, temperature=0.5)
    changed = x.clone()
    changed[:, 5] = 2

    def value(rows):
        hot = functional.one_hot(rows, small.autoencoder.layout.states).float()
        return small.predictor(hot, t)[:, 0].detach() / 0.5

    torch.testing.assert_close(exact_log_ratio([guide], x, t)[:, 5, 2], value(changed) - value(x))


def test_exact_and_taylor_guidance_sample_alike(small):
    guides = [Guide(small.predictor, 0)]
    exact = sample(small.denoiser, 40, 0, guides, SamplingSettings(steps=10, exact_guidance=True))
    assert share_with_velocity(small, exact) < 0.25


def test_predictors_do_not_see_the_order_of_slots(small):
    layout = small.autoencoder.layout
    shuffled = layout.shuffled(torch.from_numpy(small.tokens[:50]).long()).numpy()
    np.testing.assert_allclose(
        predict(small.predictor, shuffled), predict(small.predictor, small.tokens[:50]), rtol=1e-4
    )


@pytest.mark.parametrize("layout", [Layout(6), Layout(0, 3, 4), Layout(2, 2, 3)])
def test_a_continuous_predictor_learns_mean_and_spread(layout):
    rng = np.random.default_rng(0)
    tokens = rng.integers(9, size=(3000, layout.tokens))
    y = (tokens == 4).sum(1) - (tokens == 0).sum(1) + 0.1 * rng.standard_normal(3000)
    model = train_predictor(Predictor(layout, classes=0, width=64), tokens, y, 0, PredictorSettings(steps=300))
    assert np.corrcoef(predict(model, tokens), y)[0, 1] > 0.9
    clean, noisy = model.sigma(torch.tensor([1.0, 0.0])).tolist()
    assert clean < noisy
    assert noisy == pytest.approx(y.std(), rel=0.25)


def test_training_goes_on_from_where_it_was_and_leaves_the_old_one(small):
    before = {name: value.clone() for name, value in small.predictor.state_dict().items()}
    once = train_predictor(small.predictor, small.tokens, small.second_order, 1, PredictorSettings(steps=5))
    again = train_predictor(small.predictor, small.tokens, small.second_order, 1, PredictorSettings(steps=5))
    assert all((once.state_dict()[name] == again.state_dict()[name]).all() for name in before)
    assert all((small.predictor.state_dict()[name] == value).all() for name, value in before.items())
    accuracy = (predict(once, small.tokens).argmax(1) == small.second_order).mean()
    assert accuracy > 0.95
