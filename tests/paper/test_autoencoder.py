import numpy as np
import pytest
import torch
from benchmarks.model_metrics import behavioural_correlation, edits, latent, nearest

from lgf.grammar import join, load_grammar, pad, restrict, sample, spell, split, unpad
from lgf.paper.autoencoder.autoencoder import AutoencoderSettings, decode, design, encode, exact_share
from lgf.paper.derivations.crossover import crossover
from lgf.paper.derivations.rule_slots import left_sides, occurrences
from lgf.paper.training.autoencoder import autoencoder_loss, behavioural_loss, new_autoencoder, squared_distances
from lgf.paper.training.denoiser import shuffled
from lgf.paper.training.trained_weights import arrays


def test_unseen_sentences_come_back(small):
    unseen = pad(small.grammar, sample(small.grammar, np.random.default_rng(99), 500))
    assert exact_share(small.autoencoder, unseen) > 0.97


def test_random_codes_are_complete_sentences_by_allowed_rules_only(small):
    layout = small.autoencoder.layout
    tokens = np.random.default_rng(1).integers(layout.levels, size=(300, layout.tokens))
    derivations = unpad(small.grammar, decode(small.autoencoder, tokens))
    assert all(spell(small.grammar, d) for d in derivations)
    assert len(set(derivations)) > 250
    allowed = restrict(small.grammar, order=1)
    for derivation in unpad(small.grammar, decode(small.autoencoder, tokens, allowed)):
        assert "u'" not in spell(small.grammar, derivation)


def test_exchanged_slots_say_the_same_summands(small):
    layout = small.autoencoder.layout
    moved = shuffled(layout, torch.from_numpy(small.tokens[:200]).long()).numpy()
    before = unpad(small.grammar, decode(small.autoencoder, small.tokens[:200]))
    after = unpad(small.grammar, decode(small.autoencoder, moved))
    for one, other in zip(before, after, strict=True):
        a, b = split(small.grammar, one), split(small.grammar, other)
        assert a.header == b.header
        assert sorted(a.summands) == sorted(b.summands)


def test_a_change_of_one_slot_changes_one_summand(small):
    layout = small.autoencoder.layout
    found = edits(small.autoencoder, small.derivations[:500], seed=0)
    assert found.changed > 0.3
    assert found.next < found.changed
    assert found.summand + found.header > 0.98
    slot = np.flatnonzero(layout.blocks() == 1)
    tokens = small.tokens[:300].copy()
    tokens[:, slot] = np.random.default_rng(0).integers(layout.levels, size=(300, len(slot)))
    before = unpad(small.grammar, decode(small.autoencoder, small.tokens[:300]))
    for one, other in zip(before, unpad(small.grammar, decode(small.autoencoder, tokens)), strict=True):
        a, b = split(small.grammar, one).summands, split(small.grammar, other).summands
        if len(a) == len(b) == 3:
            assert (a[0], a[2]) == (b[0], b[2])


def test_dropping_every_summand_leaves_the_linear_slot(small):
    rows = [d for d in unpad(small.grammar, small.derivations) if "L" in {small.grammar.rules[r].lhs for r in d}]
    rows = [d for d in rows if len(split(small.grammar, d).summands) == 1][:100]
    tokens = encode(small.autoencoder, pad(small.grammar, rows))
    slots = small.autoencoder.layout.blocks() >= 0
    empty = encode(small.autoencoder, pad(small.grammar, [next(d for d in map(tuple, rows))]))[0]
    absent = empty[small.autoencoder.layout.blocks() == 2]
    tokens[:, slots] = np.tile(absent, small.autoencoder.layout.slots)
    linear = [r for r, rule in enumerate(small.grammar.rules) if rule.lhs == "L"]
    kept = [
        set(linear) & set(before) == set(linear) & set(after)
        for before, after in zip(rows, unpad(small.grammar, decode(small.autoencoder, tokens)), strict=True)
    ]
    assert np.mean(kept) > 0.95


def test_too_large_a_sentence_is_refused(small):
    few = [d for d in unpad(small.grammar, small.derivations) if len(split(small.grammar, d).summands) <= 1]
    smaller = design(small.grammar, small.settings, pad(small.grammar, few))
    model = smaller.with_weights(arrays(new_autoencoder(smaller)))
    with pytest.raises(ValueError, match="holds at most"):
        encode(model, small.derivations)


def test_crossed_summands_are_summands_of_the_grammar():
    grammar = load_grammar("b3")
    known = [s for d in sample(grammar, np.random.default_rng(0), 60, max_order=2) for s in split(grammar, d).summands]
    known = [s for s in known if len(s) <= 15]
    new = crossover(grammar, known, 300, np.random.default_rng(0), 15)
    assert len(set(new) - set(known)) > 50
    header = split(grammar, sample(grammar, np.random.default_rng(1), 1)[0]).header
    for summand in new:
        assert len(summand) <= 15
        assert spell(grammar, join(grammar, header, [summand]))


def test_occurrences_count_earlier_uses_of_the_left_hand_side():
    grammar = load_grammar("b3")
    (derivation,) = sample(grammar, np.random.default_rng(5), 1)
    seen: dict[str, int] = {}
    expected = []
    for rule in derivation:
        lhs = grammar.rules[rule].lhs
        expected.append(seen.get(lhs, 0))
        seen[lhs] = seen.get(lhs, 0) + 1
    assert occurrences(left_sides(grammar), np.array(derivation)).tolist() == expected


@pytest.mark.parametrize("name", ["b1", "b2", "b3", "standard"])
def test_every_grammar_has_both_autoencoders(name):
    grammar = load_grammar(name)
    rows = pad(grammar, sample(grammar, np.random.default_rng(0), 60, max_order=2))
    for architecture in ("blocks", "sequence"):
        if architecture == "sequence" and grammar.max_length < 30:
            continue
        settings = AutoencoderSettings(architecture, width=16, depth=1, positions=6)
        torch.manual_seed(0)
        described = design(grammar, settings, rows)
        model = new_autoencoder(described)
        behaviour = torch.randn(60, 256)
        loss = autoencoder_loss(model, model.arrange(rows), behaviour, settings)
        loss.backward()
        assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
        ready = described.with_weights(arrays(model))
        tokens = encode(ready, rows)
        assert tokens.shape == (60, model.layout.tokens)
        assert all(spell(grammar, d) for d in unpad(grammar, decode(ready, tokens, max_order=2)))


def test_the_papers_autoencoder_begins_with_a_code_for_each_sentence_and_learns_a_few():
    grammar = load_grammar("b1")
    rows = pad(grammar, sample(grammar, np.random.default_rng(0), 20))
    described = design(grammar, AutoencoderSettings("sequence"), rows)
    torch.manual_seed(0)
    model = new_autoencoder(described)
    arranged = model.arrange(rows)
    model.initialise(arranged)
    n_sentences = len(np.unique(rows, axis=0))
    assert len(np.unique(encode(described.with_weights(arrays(model)), rows), axis=0)) == n_sentences
    optimiser = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(60):
        loss = autoencoder_loss(model, arranged, None, described.settings)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert exact_share(described.with_weights(arrays(model)), rows) > 0.5


def test_behavioural_loss_is_the_sum_over_pairs():
    torch.manual_seed(0)
    z, behaviour = torch.randn(6, 3), 20 * torch.randn(6, 256)
    expected = []
    for i in range(6):
        for j in range(6):
            field = max(2 * np.log(max(float((behaviour[i] - behaviour[j]).norm()), 1e-9)), 0)
            expected.append((float((z[i] - z[j]).norm()) - 0.1 * field) ** 2)
    assert behavioural_loss(z, behaviour, 0.1).item() == pytest.approx(np.mean(expected), rel=1e-3)


def test_gradient_is_finite_for_equal_rows():
    z = torch.ones(3, 4, requires_grad=True)
    behavioural_loss(z, torch.ones(3, 256), 0.1).backward()
    assert z.grad.isfinite().all()


def test_behavioural_training_orders_the_latent(small):
    """Behaviours add up over rules, with magnitudes far apart as those of real terms are."""
    rows = small.derivations[:300]
    rng = np.random.default_rng(0)
    size = small.grammar.n_rules
    vectors = rng.standard_normal((size + 1, 256)) * 10 ** rng.uniform(0, 7, (size + 1, 1))
    vectors[size] = 0
    behaviour = vectors[rows].sum(1)
    correlations, losses = [], []
    for weight in (0.0, 0.1):
        settings = AutoencoderSettings(header_tokens=4, summand_tokens=4, width=32, depth=1, weight=weight)
        torch.manual_seed(0)
        described = design(small.grammar, settings, rows)
        model = new_autoencoder(described)
        arranged, target = model.arrange(rows), torch.from_numpy(behaviour).float()
        optimiser = torch.optim.AdamW(model.parameters(), 5e-3)
        for _ in range(120):
            optimiser.zero_grad()
            part = torch.randint(len(rows), (64,))
            autoencoder_loss(model, arranged[part], target[part], settings).backward()
            optimiser.step()
        ready = described.with_weights(arrays(model))
        correlations.append(behavioural_correlation(ready, rows, behaviour))
        losses.append(behavioural_loss(torch.from_numpy(latent(ready, rows)), target, 0.1).item())
    assert correlations[1] > correlations[0]
    assert losses[1] < losses[0] / 2


def test_nearest_are_in_order_of_distance(small):
    places = latent(small.autoencoder, small.derivations[:50])
    distances = squared_distances(torch.from_numpy(places).double()).numpy()[7]
    found = nearest(small.autoencoder, small.derivations[:50], 7, 5)
    assert 7 not in found
    np.testing.assert_allclose(distances[found], np.sort(np.delete(distances, 7))[:5], rtol=1e-3, atol=1e-3)
