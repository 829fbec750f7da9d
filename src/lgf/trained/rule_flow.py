"""The conditional flow p(sentence | record), run in NumPy.

Its tokens are the rules of a sentence, and its noise is the mask. A sentence starts as the masked start symbol. The
denoiser gives the distribution of a masked token from the tokens unmasked so far and from the record; unmasking a token
reveals the masked tokens below it. Tokens are unmasked from the top down: the header first, then one summand after the
other. A token that no sentence uses does not exist, so no bits are lost on it: the product of the steps is an exact,
normalised distribution over sentences.

The logits are the logarithms of the grammar's weights plus `strength` times what the network says of the record. Part
of that are the odds of the terms that a rule of a summand leads to (`lgf.language.summand_tree`): one small network
for all terms reads what the projections say of each.
Strength 0 is the grammar itself, so the unconditional flow costs exactly the grammar's bits. Rules that are not allowed
are excluded before the normalisation, as in the grammar.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lgf.grammar import Grammar
from lgf.trained.layers import layer_norm, linear, silu

LARGEST_FEATURE = 6.0
LARGEST_LOG_ODDS = 12.0
BY_TERM = 5
"""Static features of each term; they come first, kind by kind."""


@dataclass(frozen=True)
class RuleFlowSettings:
    """Sizes of the network: the width, the layers that read the record, those of each step, the width of the odds."""

    width: int = 192
    reading: int = 2
    depth: int = 2
    odds: int = 32


@dataclass(frozen=True, eq=False)
class RuleFlow:
    """The trained conditional flow of a grammar; `weights` are named as in `lgf.training.rule_net`."""

    grammar: Grammar
    settings: RuleFlowSettings
    weights: dict[str, np.ndarray]

    @cached_property
    def left_sides(self) -> np.ndarray:
        """The number of the nonterminal of each rule."""
        number = {name: i for i, name in enumerate(self.grammar.nonterminals)}
        return np.array([number[rule.lhs] for rule in self.grammar.rules])

    @cached_property
    def _prior(self) -> np.ndarray:
        return log_weights(self.grammar)

    def read(self, features: np.ndarray) -> np.ndarray:
        """The state [width] of a record with these static features."""
        w = self.weights
        x = _scaled(features, w["mean"], w["deviation"])
        state = _perceptron(w, "enter", x)
        for i in range(self.settings.reading):
            state = self._residual(f"reading.{i}", state)
        return layer_norm(w, "read", state)

    def missing(self, features: np.ndarray) -> np.ndarray:
        """The vectors [..., width] of features of what is missing, added to the state while a summand is said."""
        w = self.weights
        return _perceptron(w, "missing", _scaled(features, w["missing_mean"], w["missing_deviation"]))

    def odds(self, features: np.ndarray, missing: np.ndarray, state: np.ndarray) -> np.ndarray:
        """The odds [group] of the terms beside what was said, relative to the grammar.

        state [width] is the sum of the record's and of what is missing.
        """
        w = self.weights
        groups = len(w["of_term"])
        kinds = _scaled(features, w["mean"], w["deviation"])[: BY_TERM * groups].reshape(BY_TERM, groups)
        lacks = _scaled(missing, w["missing_mean"], w["missing_deviation"])[:groups]
        x = np.concatenate([kinds, lacks[None]]).T
        hidden = silu(linear(w, "evidence", x) + w["of_term"] + linear(w, "context", state))
        log_odds = linear(w, "log_odds", hidden)[:, 0]
        return np.exp(LARGEST_LOG_ODDS * np.tanh(log_odds / LARGEST_LOG_ODDS))

    @cached_property
    def said(self) -> np.ndarray:
        """The vector [rule, width] that each rule said adds to the state."""
        return self.weights["said.weight"]

    @cached_property
    def said_in_summand(self) -> np.ndarray:
        """The vector [rule, width] that each rule adds to the state while its own summand is said."""
        return self.weights["summand.weight"]

    def log_probabilities(
        self, state: np.ndarray, side: np.ndarray, gain: np.ndarray, allowed: np.ndarray, strength: float = 1.0
    ) -> np.ndarray:
        """Log p [n, rule] of the next rule, for the states [n, width] and the nonterminals [n] to be expanded.

        gain [n, rule] is what the rules gain by the odds of the terms they lead to.
        """
        w = self.weights
        hidden = state + w["side.weight"][side]
        for i in range(self.settings.depth):
            hidden = self._residual(f"steps.{i}", hidden)
        logits = self._prior + strength * (linear(w, "leave", layer_norm(w, "last", hidden)) + gain)
        logits = np.where(allowed & (self.left_sides == side[:, None]), logits, -np.inf)
        logits = logits - logits.max(1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(1, keepdims=True))

    def _residual(self, name: str, x: np.ndarray) -> np.ndarray:
        inner = silu(linear(self.weights, f"{name}.1", layer_norm(self.weights, f"{name}.0", x)))
        return x + linear(self.weights, f"{name}.3", inner)


def log_weights(grammar: Grammar) -> np.ndarray:
    """The logarithms of the weights of the rules; of weight 0, that of a weight that is never drawn."""
    return np.log(np.maximum([rule.weight for rule in grammar.rules], 1e-9))


def _scaled(x: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    scaled = (np.asarray(x, np.float32) - mean) / deviation
    return np.clip(scaled, -LARGEST_FEATURE, LARGEST_FEATURE)


def _perceptron(w: dict[str, np.ndarray], name: str, x: np.ndarray) -> np.ndarray:
    return linear(w, f"{name}.3", silu(linear(w, f"{name}.0", x)))
