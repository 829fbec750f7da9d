import argparse
import json

import numpy as np
import pytest
import torch
from torch import nn

from benchmarks import model_metrics
from lgf.errors import LgfError
from lgf.paper.autoencoder.autoencoder import decode, encode
from lgf.paper.bundle import load_bundle
from lgf.paper.training.recipe import Recipe, load_recipe
from lgf.paper.training.stages import train
from lgf.trained.rule_flow_file import FILE, load_rule_flow, rule_flow_facts
from lgf.training import conditional
from lgf.training.loop import fit
from lgf.training.recipe import TrainingRecipe

TINY = """
name = "tiny"
grammar = "{grammar}"
[corpus]
size = 120
[autoencoder]
width = 16
header_tokens = 4
summand_tokens = 4
training = {{ epochs = 2, batch = 32 }}
[denoiser]
width = 16
depth = 1
heads = 2
training = {{ epochs = 2, batch = 32 }}
[predictors]
own_samples = 50
epochs = 1
"""

GRAMMAR = """
template: given forcing
max_length: 20
summand: T
S -> T | T + S
T -> C*M | C*M*X
M -> u | diff(u, t) | diff(diff(u, t), t) | u^2 | u^3
X -> t | sin(C*t) | exp(C*t)
"""


@pytest.fixture
def recipe(tmp_path):
    (tmp_path / "own.grammar").write_text(GRAMMAR)
    (tmp_path / "tiny.toml").write_text(TINY.format(grammar="own.grammar"))
    return tmp_path / "tiny.toml"


def test_a_misspelt_key_is_named(recipe):
    recipe.write_text(recipe.read_text().replace("header_tokens", "header_token"))
    with pytest.raises(LgfError, match=r"tiny.toml has a key 'autoencoder.header_token'.*header_tokens, summand"):
        load_recipe(recipe)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('name = "tiny"', "", "lacks the key 'name'"),
        ("size = 120", "size = 1", "corpus.size = 1"),
        ("[corpus]", "[corpus", "not TOML"),
    ],
)
def test_wrong_recipes_are_refused_in_a_sentence(recipe, old, new, complaint):
    recipe.write_text(recipe.read_text().replace(old, new))
    with pytest.raises(LgfError, match=complaint) as caught:
        load_recipe(recipe)
    assert "\n" not in str(caught.value)


def test_the_paper_s_denoiser_trains_too(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr(model_metrics, "DRAWN", 60)
    recipe.write_text(recipe.read_text().replace("depth = 1", 'depth = 1\narchitecture = "mlp"'))
    train(recipe, tmp_path / "out")
    model_metrics.main(argparse.Namespace(recipe=recipe, model=tmp_path / "out"))
    metrics = load_bundle(tmp_path / "out").metrics
    assert 0 < metrics["free_samples_valid"] <= 1
    assert metrics["random_codes_complete"] == 1.0


def test_a_users_grammar_trains_to_a_bundle(recipe, tmp_path):
    seen = []
    bundle = train(recipe, tmp_path / "out", progress=seen.append)
    assert [p.stage for p in seen if p.epoch == p.epochs][:2] == ["corpus", "autoencoder"]
    assert all((p.exact is None) == ("autoencoder" not in p.stage) for p in seen)
    assert seen[0].seconds_left >= 0
    loaded = load_bundle(tmp_path / "out")
    assert loaded.metrics == json.loads(json.dumps(bundle.metrics))
    assert set(loaded.predictors) == {"order"}
    assert loaded.recipe["corpus"]["size"] == 120
    rows = decode(loaded.autoencoder, np.zeros((3, loaded.autoencoder.layout.tokens)))
    assert encode(loaded.autoencoder, rows).shape == (3, loaded.autoencoder.layout.tokens)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["model.json", "times.json", "weights.safetensors"]
    times = json.loads((tmp_path / "out" / "times.json").read_text())
    assert list(times)[:4] == ["corpus", "autoencoder", "denoiser", "predictors"]
    assert all(seconds["processor"] >= 0 and seconds["clock"] >= 0 for seconds in times.values())


class Interrupted(Exception):
    pass


def line_fit(checkpoint=None, stop_after=None, epochs=6, **settings):
    torch.manual_seed(0)
    x = torch.linspace(-1, 1, 80)[:, None]
    y = 2 * x + 0.1 * torch.sin(20 * x)
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(1, 8), nn.Dropout(0.2), nn.Tanh(), nn.Linear(8, 1))

    def report(progress):
        if progress.epoch == stop_after:
            raise Interrupted

    def loss(rows):
        return ((model(x[rows]) - y[rows]) ** 2).mean()

    recipe = TrainingRecipe(epochs=epochs, batch=16, **settings)
    best = fit(model, loss, 60, 20, recipe, seed=5, stage="line", checkpoint=checkpoint, progress=report)
    return best, model.state_dict()


@pytest.mark.parametrize("settings", [{}, {"optimiser": "muon"}])
def test_a_resumed_training_ends_as_an_uninterrupted_one(tmp_path, settings):
    whole = line_fit(**settings)
    with pytest.raises(Interrupted):
        line_fit(tmp_path / "line.safetensors", stop_after=3, **settings)
    resumed = line_fit(tmp_path / "line.safetensors", **settings)
    assert resumed[0] == whole[0]
    assert all((resumed[1][name] == value).all() for name, value in whole[1].items())


def test_patience_ends_a_training_early_with_its_best_weights():
    epochs = []
    model = nn.Linear(1, 1)

    def loss(rows):
        # The training rows pull away from what validates.
        target = 5.0 if rows[0] < 10 and len(rows) < 10 else 0.0
        return ((model.bias - target) ** 2).mean() + 0 * model.weight.sum()

    settings = TrainingRecipe(epochs=50, batch=5, learning_rate=0.1)
    best = fit(
        model, loss, 10, 10, settings, seed=0, stage="away", patience=3,
        progress=lambda p: epochs.append(p.validation_loss),
    )  # fmt: skip
    assert len(epochs) < 50
    assert best == min(epochs)


def test_a_training_that_diverges_goes_on_from_its_best_weights_at_half_the_rate():
    torch.manual_seed(0)
    x = torch.randn(80, 3)
    model, seen, steps = nn.Linear(3, 1), [], 0

    def loss(rows):
        nonlocal steps
        steps += model.training
        wrong = ((model(x[rows]) - x[rows].sum(1, keepdim=True)) ** 2).mean()
        return -wrong if model.training and 30 < steps <= 40 else wrong  # the fourth epoch climbs

    settings = TrainingRecipe(epochs=20, batch=6, learning_rate=0.1, weight_decay=0.0)
    best = fit(model, loss, 60, 20, settings, seed=0, stage="", progress=lambda p: seen.append(p.validation_loss))
    assert seen[3] > 5 * min(seen[:3])  # it diverged
    assert seen[4] < 1.5 * min(seen[:3])  # and came back at once
    assert best < 0.1 * min(seen[:3])


def test_recipes_of_the_repository_are_sound(pytestconfig):
    folder = pytestconfig.rootpath / "recipes"
    recipes = [path for path in sorted(folder.rglob("*.toml")) if path.stem != "systems"]
    assert {path.stem for path in recipes} >= {"b1", "b2", "b3", "standard"}
    for path in recipes:
        assert isinstance(load_recipe(path), Recipe)


EXPLICIT = """
template: explicit
max_length: 12
summand: T
S -> L [0.5] | L + T [0.5]
L -> C*u | C + C*u
T -> C*u^2 | C*sin(C*t) | C*u^3
"""

CONDITIONAL = """
[conditional]
width = 8
epochs = 2
[conditional.pairs]
size = 60
chunk = 25
"""


def test_a_conditional_flow_is_trained_with_the_bundle_and_resumed_from_its_chunks(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr(conditional, "_HELD_OUT", 0.2)
    (tmp_path / "own.grammar").write_text(EXPLICIT)
    recipe.write_text(recipe.read_text().replace("size = 120", "size = 10") + CONDITIONAL)

    def stop(progress):
        if progress.stage == "pairs" and progress.epoch == 50:
            raise Interrupted

    with pytest.raises(Interrupted):
        train(recipe, tmp_path / "out", progress=stop)
    assert len(list((tmp_path / "out" / "work" / "pairs").iterdir())) == 2
    seen = []
    bundle = train(recipe, tmp_path / "out", resume=True, progress=seen.append)
    assert [p.epoch for p in seen if p.stage == "pairs"] == [60]
    train(recipe, tmp_path / "again")
    one, again = (load_rule_flow(tmp_path / name, bundle.grammar) for name in ("out", "again"))
    assert all(np.array_equal(value, again.weights[name]) for name, value in one.weights.items())
    facts = rule_flow_facts((tmp_path / "out" / FILE).read_bytes())
    assert facts["metrics"]["bits"] < facts["metrics"]["grammar_bits"] + 0.5


def test_a_conditional_flow_needs_an_explicit_grammar(recipe, tmp_path):
    recipe.write_text(recipe.read_text() + CONDITIONAL)
    with pytest.raises(LgfError, match="leave the table"):
        train(recipe, tmp_path / "out")
