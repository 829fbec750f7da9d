"""The networks that NumPy runs, against their twins in torch that training uses."""

import numpy as np
import pytest
import torch
from tests.paper import torch_predictor
from torch.nn import functional

from lgf.grammar import load_grammar, pad, sample
from lgf.paper.autoencoder.autoencoder import AutoencoderSettings, Design, design
from lgf.paper.bundle import load_bundle
from lgf.paper.flow.denoiser import DenoiserSettings, denoiser_shapes
from lgf.paper.flow.guidance import Guide, taylor_log_ratio
from lgf.paper.flow.predictor import Predictor, new_predictor, predictor_shapes
from lgf.paper.flow.predictor_training import AdamW, loss_slopes
from lgf.paper.layout import Layout
from lgf.paper.training import denoiser as flow
from lgf.paper.training.autoencoder import new_autoencoder
from lgf.paper.training.trained_weights import arrays, to_denoiser
from lgf.trained.folders import model_names

LAYOUTS = [Layout(4, 3, 5), Layout(0, 3, 5), Layout(8)]
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


def tokens_and_times(layout, n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(layout.states, size=(n, layout.tokens)), rng.random(n, dtype=np.float32)


def loaded(module, weights):
    """The torch network with these weights."""
    module.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in weights.items()})
    return module.eval()


def twin(numbers: Predictor) -> torch_predictor.Predictor:
    module = torch_predictor.Predictor(numbers.layout, numbers.classes, numbers.width)
    return loaded(module, numbers.weights)


def hot(layout, x):
    return functional.one_hot(torch.from_numpy(x), layout.states).float()


@torch.no_grad()
def compare(bundle_or_pair, x, t):
    numbers, module = bundle_or_pair
    np.testing.assert_allclose(numbers(x, t), module(torch.from_numpy(x), torch.from_numpy(t)).numpy(), **CLOSE)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("architecture", ["blocks", "mlp"])
def test_denoisers_are_equal(architecture, layout):
    torch.manual_seed(0)
    settings = DenoiserSettings(architecture, width=24, depth=3, heads=2, dropout=0.2)
    module = flow.Denoiser(layout, settings).eval()
    numbers = to_denoiser(module)
    x, t = tokens_and_times(layout, 40)
    compare((numbers, module), x, t)
    where = np.random.default_rng(1).random(x.shape) < 0.1
    np.testing.assert_allclose(numbers(x, t, where)[where], numbers(x, t)[where], **CLOSE)
    assert denoiser_shapes(layout, settings) == {name: value.shape for name, value in numbers.weights.items()}


@pytest.mark.parametrize("name", model_names())
@torch.no_grad()
def test_shipped_networks_are_equal(name):
    bundle = load_bundle(name)
    layout = bundle.denoiser.layout
    x, t = tokens_and_times(layout, 200)
    compare((bundle.denoiser, loaded(flow.Denoiser(layout, bundle.denoiser.settings), bundle.denoiser.weights)), x, t)
    for numbers in bundle.predictors.values():
        expected = twin(numbers)(hot(layout, x), torch.from_numpy(t)).numpy()
        np.testing.assert_allclose(np.exp(numbers(x, t)), np.exp(expected), **CLOSE)
    described = Design(bundle.grammar, bundle.settings, bundle.autoencoder.extent)
    module = loaded(new_autoencoder(described), bundle.autoencoder.weights)
    rows = pad(bundle.grammar, sample(bundle.grammar, np.random.default_rng(0), 300, max_order=2))
    rows = rows[[bundle.autoencoder.fits(tuple(r for r in row if r < bundle.grammar.n_rules)) for row in rows]]
    assert len(rows) > 50
    arranged = bundle.autoencoder.arrange(rows)
    expected = module.latent(torch.from_numpy(arranged)).numpy()
    np.testing.assert_allclose(bundle.autoencoder.latent(arranged), expected, **CLOSE)


@pytest.mark.parametrize(("name", "architecture"), [("b3", "blocks"), ("b3", "sequence"), ("standard", "blocks")])
@torch.no_grad()
def test_autoencoders_are_equal(name, architecture):
    grammar = load_grammar(name)
    rows = pad(grammar, sample(grammar, np.random.default_rng(0), 60, max_order=2))
    described = design(grammar, AutoencoderSettings(architecture, width=24, depth=2, positions=6), rows)
    torch.manual_seed(0)
    module = new_autoencoder(described)
    numbers = described.with_weights(arrays(module))
    assert described.shapes() == {name: value.shape for name, value in numbers.weights.items()}
    latent = module.latent(module.arrange(rows)).numpy()
    np.testing.assert_allclose(numbers.latent(numbers.arrange(rows)), latent, **CLOSE)
    codes = np.random.default_rng(1).uniform(-1, 1, latent.shape).astype(np.float32)
    if architecture == "sequence":
        np.testing.assert_allclose(numbers.logits(codes), module._logits(torch.from_numpy(codes)).numpy(), **CLOSE)
        return
    header, slots = described.layout.cut(codes)
    parts = {"header": (header, module.header), "summand": (slots, module.summand)}
    for coder, (part, network) in parts.items():
        if network is not None:
            expected = network.decode(torch.from_numpy(part)).numpy()
            np.testing.assert_allclose(numbers.decoded(coder, part), expected, **CLOSE)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("classes", [0, 3])
def test_predictors_and_their_taylor_ratios_are_equal(layout, classes):
    torch.manual_seed(0)
    module = torch_predictor.Predictor(layout, classes, width=24)
    numbers = Predictor(layout, classes, 24, arrays(module))
    assert predictor_shapes(layout, classes, 24) == {name: value.shape for name, value in numbers.weights.items()}
    x, t = tokens_and_times(layout, 30)
    rows, times = hot(layout, x).requires_grad_(), torch.from_numpy(t)
    out = module(rows, times)
    np.testing.assert_allclose(numbers(x, t), out.detach().numpy(), **CLOSE)
    guide = Guide(numbers, 1, temperature=0.5)
    z = (1 - out[:, 0]) / module.sigma(times)
    value = (out[:, 1] if classes else torch.special.log_ndtr(z)) / 0.5
    np.testing.assert_allclose(guide.log_probability(numbers(x, t), t), value.detach().numpy(), **CLOSE)
    (slope,) = torch.autograd.grad(value.sum(), rows)
    where = np.random.default_rng(1).random(x.shape) < 0.7
    expected = (slope - slope.gather(-1, torch.from_numpy(x)[..., None])).numpy() * where[..., None]
    np.testing.assert_allclose(taylor_log_ratio([guide], x, t, where), expected, **CLOSE)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("classes", [0, 2])
def test_steps_of_a_predictor_are_those_of_torch(layout, classes):
    numbers = new_predictor(layout, classes, seed=1, width=24)
    module = twin(numbers)
    optimiser, theirs = (
        AdamW(numbers.weights, 3e-3, 1e-2),
        torch.optim.AdamW(module.parameters(), 3e-3, weight_decay=1e-2),
    )
    rng = np.random.default_rng(2)
    for step in range(5):
        x, t = tokens_and_times(layout, 50, seed=step)
        labels = rng.integers(classes, size=50) if classes else rng.standard_normal(50).astype(np.float32)
        loss, slopes = loss_slopes(numbers.with_weights(optimiser.weights), x, t, labels)
        out, y, times = module(hot(layout, x), torch.from_numpy(t)), torch.from_numpy(labels), torch.from_numpy(t)
        if classes:
            expected = functional.nll_loss(out, y)
        else:
            sigma = module.sigma(times)
            expected = (((y - out[:, 0]) / sigma) ** 2 / 2 + sigma.log()).mean()
        theirs.zero_grad()
        expected.backward()
        assert loss == pytest.approx(expected.item(), rel=1e-5)
        for name, value in module.named_parameters():
            grad = np.zeros(value.shape) if value.grad is None else value.grad.numpy()
            np.testing.assert_allclose(slopes[name], grad, atol=1e-6, err_msg=name)
        theirs.step()
        optimiser.step(slopes)
    for name, value in module.named_parameters():
        if value.grad is not None:  # torch decays no weight without a gradient
            np.testing.assert_allclose(optimiser.weights[name], value.detach().numpy(), atol=2e-5, err_msg=name)
