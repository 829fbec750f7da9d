import numpy as np
import pytest
from benchmarks.flow import exact_log_ratio

from lgf.grammar import spell, unpad
from lgf.paper.autoencoder.autoencoder import decode
from lgf.paper.bundle import load_bundle
from lgf.paper.flow.denoiser import noised
from lgf.paper.flow.guidance import Guide, taylor_log_ratio
from lgf.paper.flow.predictor import new_predictor, predict
from lgf.paper.flow.predictor_training import train_predictor
from lgf.paper.flow.sampling import sample
from lgf.paper.layout import Layout


def share_with_velocity(small, tokens):
    sentences = [spell(small.grammar, d) for d in unpad(small.grammar, decode(small.autoencoder, tokens))]
    return np.mean(["u'" in s for s in sentences])


@pytest.mark.parametrize(("target", "wanted"), [(1, 1.0), (0, 0.0)])
def test_guidance_gives_what_is_wanted(small, target, wanted):
    guides = [Guide(small.predictor, target, temperature=0.5)]
    assert abs(share_with_velocity(small, sample(small.denoiser, 200, 0, guides)) - wanted) < 0.2


def test_unguided_samples_follow_the_data(small):
    tokens = sample(small.denoiser, 400, seed=0)
    assert abs(share_with_velocity(small, tokens) - small.second_order.mean()) < 0.1
    lengths = [len(d) for d in unpad(small.grammar, decode(small.autoencoder, tokens))]
    known = [len(d) for d in unpad(small.grammar, small.derivations)]
    assert np.mean(lengths) == pytest.approx(np.mean(known), rel=0.1)


@pytest.mark.parametrize("settings", [(None, 0.0), (10, 0.0), (20, 3.0)])
def test_a_guide_towards_at_least_as_good_gives_more_of_the_good(small, settings):
    lengths = np.array([len(d) for d in unpad(small.grammar, small.derivations)], float)
    scores = (lengths - lengths.mean()) / lengths.std()
    new = new_predictor(small.autoencoder.layout, 0, seed=0, width=64)
    predictor = train_predictor(new, small.tokens, scores, 0, 600)
    shortest = np.quantile(lengths, 0.2)
    guides = [Guide(predictor, float(np.quantile(scores, 0.2)))]
    shares = []
    for led in ([], guides):
        rows = decode(small.autoencoder, sample(small.denoiser, 200, 0, led, *settings))
        shares.append(np.mean([len(d) <= shortest for d in unpad(small.grammar, rows)]))
    assert shares[0] < 0.4
    assert shares[1] > 0.65  # 0.76 on average over seeds, within 0.05


def test_taylor_agrees_with_the_exact_ratio_of_a_score_that_many_tokens_add_up_to():
    """The paper's layout: one block of many tokens, each of little weight."""
    layout = Layout(header=68)
    rng = np.random.default_rng(0)
    tokens = rng.integers(9, size=(3000, 68))
    score = (rng.standard_normal((68, 9))[np.arange(68), tokens]).sum(1) / np.sqrt(68)
    order = train_predictor(new_predictor(layout, 2, seed=0, width=64), tokens, score > 0, 0, 400)
    objective = train_predictor(new_predictor(layout, 0, seed=0, width=64), tokens, score, 0, 400)
    assert np.corrcoef(predict(objective, tokens), score)[0, 1] > 0.8
    t = rng.random(40, dtype=np.float32)
    x = noised(layout, tokens[:40], t, rng)
    guides = [Guide(order, 1, temperature=2.0), Guide(objective, -1.0)]
    exact, taylor = exact_log_ratio(guides, x, t, x >= 0), taylor_log_ratio(guides, x, t, x >= 0)
    assert np.corrcoef(exact.flatten(), taylor.flatten())[0, 1] > 0.99


def test_taylor_is_rough_where_a_token_decides_much():
    """A shipped model: a few tokens say a summand, and one summand may decide the order."""
    bundle = load_bundle("standard")
    tokens = sample(bundle.denoiser, 100, 0, steps=10)
    rng = np.random.default_rng(0)
    t = rng.random(100, dtype=np.float32)
    x = noised(bundle.denoiser.layout, tokens, t, rng)
    guides, masked = [Guide(bundle.predictors["order"], 2)], x == bundle.denoiser.layout.mask
    exact, taylor = (ratio(guides, x, t, masked)[masked] for ratio in (exact_log_ratio, taylor_log_ratio))
    assert 0.7 < np.corrcoef(exact.flatten(), taylor.flatten())[0, 1] < 0.9


def test_predictors_do_not_see_the_order_of_slots(small):
    header, slots = small.autoencoder.layout.cut(small.tokens[:50])
    moved = np.concatenate([header, slots[:, ::-1].reshape(50, -1)], 1)
    np.testing.assert_allclose(predict(small.predictor, moved), predict(small.predictor, small.tokens[:50]), rtol=1e-4)


@pytest.mark.parametrize("layout", [Layout(6), Layout(0, 3, 4), Layout(2, 2, 3)])
def test_a_continuous_predictor_learns_mean_and_spread(layout):
    rng = np.random.default_rng(0)
    tokens = rng.integers(9, size=(3000, layout.tokens))
    y = (tokens == 4).sum(1) - (tokens == 0).sum(1) + 0.1 * rng.standard_normal(3000)
    model = train_predictor(new_predictor(layout, 0, seed=0, width=64), tokens, y, 0, 400)
    assert np.corrcoef(predict(model, tokens), y)[0, 1] > 0.9
    clean, noisy = model.sigma(np.array([1.0, 0.0])).tolist()
    assert clean < noisy
    assert noisy == pytest.approx(y.std(), rel=0.25)


def test_training_goes_on_from_where_it_was_and_leaves_the_old_one(small):
    before = {name: value.copy() for name, value in small.predictor.weights.items()}
    once = train_predictor(small.predictor, small.tokens, small.second_order, 1, 5)
    again = train_predictor(small.predictor, small.tokens, small.second_order, 1, 5)
    assert all((once.weights[name] == again.weights[name]).all() for name in before)
    assert all((small.predictor.weights[name] == value).all() for name, value in before.items())
    accuracy = (predict(once, small.tokens).argmax(1) == small.second_order).mean()
    assert accuracy > 0.9
