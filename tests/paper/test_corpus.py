import json

import numpy as np
import pytest

from lgf.errors import LgfError
from lgf.grammar import load_grammar, read_grammar, spell, unpad
from lgf.language.sentences import grammar_frame, skeleton_of
from lgf.paper.behavioural_distance import behaviour, behavioural_distance
from lgf.paper.corpus import BEHAVIOUR_SIZE, Corpus, make_corpus, project
from lgf.paper.derivations.parsing import parse

SIZE = 150
ARRAYS = ("derivations", "order", "forced", "behaviour")


@pytest.fixture(scope="module", params=["b1", "b2", "b3", "standard"])
def made(request):
    grammar = load_grammar(request.param)
    return grammar, make_corpus(grammar, SIZE, seed=3)


def skeletons(grammar, corpus):
    """The equations of the corpus, read anew from its derivations."""
    labels = zip(corpus.order.tolist(), corpus.forced.tolist(), strict=True)
    for derivation, (order, forced) in zip(unpad(grammar, corpus.derivations), labels, strict=True):
        yield skeleton_of(grammar.template, spell(grammar, derivation), grammar_frame(order, forced))


def test_labels_are_those_of_the_equations(made):
    grammar, corpus = made
    assert len(corpus) == SIZE
    found = list(skeletons(grammar, corpus))
    assert corpus.order.tolist() == [s.frame.orders[0] for s in found]
    assert corpus.forced.tolist() == [s.forced for s in found]
    assert set(corpus.order.tolist()) <= {1, 2}
    used = {rule for derivation in unpad(grammar, corpus.derivations) for rule in derivation}
    assert all((grammar.rules[rule].order or 0) <= 2 for rule in used)


def test_every_structure_occurs_once_and_none_is_trivial(made):
    grammar, corpus = made
    structures = [s.structure for s in skeletons(grammar, corpus)]
    assert len(set(structures)) == SIZE
    assert all(" + " in text for text in structures)


def test_behaviour_keeps_distances(made):
    grammar, corpus = made
    exact = [behaviour(s) for s in list(skeletons(grammar, corpus))[:40]]
    pairs = [(i, j) for i in range(40) for j in range(i)]
    wanted = np.array([behavioural_distance(exact[i], exact[j]) for i, j in pairs])
    one, other = (np.array([corpus.behaviour[pair[k]] for pair in pairs], float) for k in (0, 1))
    error = np.log(np.maximum(np.sum((one - other) ** 2, axis=1), 1.0)) - wanted
    assert wanted.std() > 3
    # the log of a mean of 256 squares of normal numbers scatters by sqrt(2/256) = .09
    assert np.median(np.abs(error)) < 0.15
    assert np.quantile(np.abs(error), 0.95) < 0.6


def test_projection_of_known_differences():
    rng = np.random.default_rng(0)
    mean, deviation = rng.standard_normal((2, 300, 1000))
    vectors = project(mean, deviation)
    assert vectors.shape == (300, BEHAVIOUR_SIZE)
    exact = np.mean((mean[:150] - mean[150:]) ** 2 + (deviation[:150] - deviation[150:]) ** 2, axis=1)
    ratio = np.sum((vectors[:150] - vectors[150:]) ** 2, axis=1) / exact
    assert ratio.mean() == pytest.approx(1, abs=0.03)
    assert ratio.std() == pytest.approx(np.sqrt(2 / BEHAVIOUR_SIZE), abs=0.02)
    spike = np.zeros((2, 1000))
    spike[1, 7] = 3e9
    assert np.sum(project(*spike) ** 2) == pytest.approx(9e18 / 1000)


def test_the_same_seed_gives_the_same_corpus():
    grammar = load_grammar("b3")
    one, two, other = (make_corpus(grammar, 60, seed) for seed in (5, 5, 6))
    for name in ARRAYS:
        assert np.array_equal(getattr(one, name), getattr(two, name)), name
    assert not np.array_equal(one.derivations, other.derivations)


def test_what_was_drawn_from_the_twin_is_parsed():
    grammar = load_grammar("b2")
    corpus = make_corpus(grammar, 60, seed=0)
    assert corpus.facts["drawn_from"] == "b2_corpus"
    for derivation in unpad(grammar, corpus.derivations):
        assert parse(grammar, spell(grammar, derivation)) == derivation
    changed = read_grammar(grammar.text.replace("max_length: 70", "max_length: 60"))
    assert changed.name == "b2"
    assert make_corpus(changed, 5, seed=0).facts["drawn_from_fingerprint"] == changed.fingerprint


def test_a_small_grammar_is_exhausted():
    grammar = read_grammar("template: explicit\nS -> C*u | C*u' {order 2} | C*u + S | 0*u", name="small")
    told = []
    corpus = make_corpus(grammar, 100, seed=0, progress=lambda done, size: told.append((done, size)))
    assert told[-1] == (3, 100)
    structures = {s.structure for s in skeletons(grammar, corpus)}
    assert structures == {"C*u' + C*u", "C*u'' + C*u'", "C*u'' + C*u' + C*u"}


def test_saved_and_loaded(tmp_path, made):
    grammar, corpus = made
    corpus.save(tmp_path)
    loaded = Corpus.load(tmp_path, grammar)
    assert isinstance(loaded.derivations, np.memmap)
    for name in ARRAYS:
        assert np.array_equal(getattr(loaded, name), getattr(corpus, name)), name
    assert loaded.facts == corpus.facts
    assert loaded.facts["seed"] == 3
    assert loaded.facts["fingerprint"] == grammar.fingerprint


def test_complaints(tmp_path):
    grammar = load_grammar("b3")
    with pytest.raises(LgfError, match="holds no complete corpus"):
        Corpus.load(tmp_path)
    make_corpus(grammar, 5, seed=0).save(tmp_path)
    with pytest.raises(ValueError, match=r"belongs to grammar 'b3'.*not to 'b1'"):
        Corpus.load(tmp_path, load_grammar("b1"))
    np.save(tmp_path / "order.npy", np.zeros(4, dtype=np.int8))
    with pytest.raises(ValueError, match=r"'order': 4.*not 5; make it again"):
        Corpus.load(tmp_path)
    facts = json.loads((tmp_path / "corpus.json").read_text())
    assert facts["versions"]["lgf"]
