"""Decoding that the encoder checks, with a decoder that is wrong in some choices."""

from dataclasses import dataclass

import numpy as np
import pytest
from benchmarks.checked_decoding import checked_share, decode_checked
from numpy.typing import NDArray

from lgf.grammar import Grammar, load_grammar, pad, sample
from lgf.paper.autoencoder.autoencoder import encode, exact_share
from lgf.paper.autoencoder.sequence_autoencoder import SequenceAutoencoder
from lgf.paper.layout import Layout

TOKENS = 24


@dataclass(frozen=True)
class Uncertain(SequenceAutoencoder):
    """An autoencoder that knows some sentences; it prefers another rule at the first `wrong` choices, a little."""

    known: NDArray[np.int64]
    wrong: int

    def latent(self, arranged: NDArray[np.int64]) -> NDArray[np.float32]:
        """A random projection of the one-hot rules."""
        projection = np.random.default_rng(0).normal(size=(arranged.shape[1], self.grammar.n_rules + 1, TOKENS))
        return projection[np.arange(arranged.shape[1]), arranged].sum(1).astype(np.float32) / 4

    def logits(self, codes: NDArray[np.float32]) -> NDArray[np.float32]:
        """Those of the known sentences in their order, whatever the codes are."""
        logits = np.zeros((*self.known.shape, self.grammar.n_rules + 1), dtype=np.float32)
        for row, rules in enumerate(self.known):
            logits[row, np.arange(len(rules)), rules] = 4.0
            for place, rival in self._choices(rules)[: self.wrong]:
                logits[row, place, rival] = 4.5
        return logits

    def _choices(self, rules: NDArray[np.int64]) -> list[tuple[int, int]]:
        """Places with a choice, from the end, each with another rule of the same nonterminal."""
        sides = [rule.lhs for rule in self.grammar.rules]
        others = [
            (place, next((r for r, side in enumerate(sides) if side == sides[rule] and r != rule), None))
            for place, rule in reversed(list(enumerate(rules)))
            if rule < self.grammar.n_rules
        ]
        return [(place, rival) for place, rival in others if rival is not None]


def uncertain(wrong: int) -> Uncertain:
    grammar: Grammar = load_grammar("b1")
    sentences = list(dict.fromkeys(sample(grammar, np.random.default_rng(0), 60)))
    known = np.asarray(pad(grammar, sentences), dtype=np.int64)
    return Uncertain(grammar, Layout(TOKENS, levels=9), {}, known, wrong)


@pytest.mark.parametrize("wrong", [1, 2])
def test_one_or_two_wrong_choices_are_found_by_the_code(wrong: int):
    model = uncertain(wrong)
    assert exact_share(model, model.known) < 0.15
    assert checked_share(model, model.known) > 0.75


def test_a_code_that_no_likely_sentence_has_gets_the_likeliest():
    model = uncertain(0)
    tokens = (encode(model, model.known) + 1) % 9
    assert (decode_checked(model, tokens) == model.known).all()
