"""The network of the conditional flow in torch, for training; `lgf.latent.rule_flow` runs the same in NumPy."""

import math

import numpy as np
import torch
from torch import Tensor, nn

from lgf.grammar import Grammar
from lgf.latent.rule_flow import LARGEST_FEATURE, RuleFlow, RuleFlowSettings, log_weights
from lgf.training.examples import Examples

DROPOUT = 0.1
STEPS = 5  # of each sentence that are used in a batch


class RuleNet(nn.Module):
    """p(next rule | rules said so far, record); see `RuleFlow` for what the parts do."""

    mean: Tensor
    deviation: Tensor
    missing_mean: Tensor
    missing_deviation: Tensor
    prior: Tensor
    left_sides: Tensor

    def __init__(self, grammar: Grammar, settings: RuleFlowSettings, static: int, missing: int):
        super().__init__()
        self.grammar, self.settings = grammar, settings
        width, rules = settings.width, grammar.n_rules
        for name, size in (("mean", static), ("missing_mean", missing)):
            self.register_buffer(name, torch.zeros(size))
        for name, size in (("deviation", static), ("missing_deviation", missing)):
            self.register_buffer(name, torch.ones(size))
        self.enter = nn.Sequential(
            nn.Linear(static, 2 * width), nn.SiLU(), nn.Dropout(DROPOUT), nn.Linear(2 * width, width)
        )
        self.reading = nn.ModuleList(_residual(width, 2 * width) for _ in range(settings.reading))
        self.read = nn.LayerNorm(width)
        self.missing = nn.Linear(missing, width)
        self.said = nn.Embedding(rules, width)
        self.summand = nn.Embedding(rules, width)
        self.side = nn.Embedding(len(grammar.nonterminals), width)
        self.steps = nn.ModuleList(_residual(width, width) for _ in range(settings.depth))
        self.last = nn.LayerNorm(width)
        self.leave = nn.Linear(width, rules)
        for embedding in (self.said, self.summand, self.side):
            nn.init.normal_(embedding.weight, std=0.3)
        nn.init.zeros_(self.leave.bias)
        nn.init.normal_(self.leave.weight, std=0.01)  # training starts at the grammar
        number = {name: i for i, name in enumerate(grammar.nonterminals)}
        left_sides = torch.tensor([number[rule.lhs] for rule in grammar.rules])
        self.register_buffer("left_sides", left_sides, persistent=False)
        self.register_buffer("prior", torch.from_numpy(log_weights(grammar)).float(), persistent=False)

    def scale(self, examples: Examples) -> None:
        """Sets the means and deviations of the features."""
        features = torch.from_numpy(examples.features.astype(np.float32))
        used = examples.block.max(1)[:, None] > np.arange(examples.missing.shape[1])
        missing = torch.from_numpy(examples.missing[used].astype(np.float32))
        self.mean.copy_(features.mean(0))
        self.deviation.copy_(features.std(0) + 1e-3)
        if len(missing) > 1:
            self.missing_mean.copy_(missing.mean(0))
            self.missing_deviation.copy_(missing.std(0) + 1e-3)

    def embed(self, features: Tensor) -> Tensor:
        """The states [n, width] of records."""
        x = ((features - self.mean) / self.deviation).clamp(-LARGEST_FEATURE, LARGEST_FEATURE)
        state = self.enter(x)
        for layer in self.reading:
            state = state + layer(state)
        return self.read(state)

    def lacks(self, features: Tensor) -> Tensor:
        """The vectors [n, width] of features of what is missing."""
        x = (features - self.missing_mean) / self.missing_deviation
        return self.missing(x.clamp(-LARGEST_FEATURE, LARGEST_FEATURE))

    def log_probabilities(self, state: Tensor, side: Tensor, allowed: Tensor) -> Tensor:
        """Log p [n, rule] of the next rule."""
        hidden = state + self.side(side)
        for layer in self.steps:
            hidden = hidden + layer(hidden)
        logits = self.prior + self.leave(self.last(hidden))
        usable = allowed & (self.left_sides == side[:, None])
        return logits.masked_fill(~usable, -1e9).log_softmax(-1)

    def flow(self) -> RuleFlow:
        """The same network in NumPy."""
        weights = {name: value.detach().numpy().copy() for name, value in self.state_dict().items()}
        return RuleFlow(self.grammar, self.settings, weights)


def _residual(width: int, inner: int) -> nn.Sequential:
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, inner), nn.SiLU(), nn.Linear(inner, width))


class RuleLoss:
    """The bits of the sentences of rows of examples, by all steps in evaluation and by some at random in training."""

    def __init__(self, net: RuleNet, examples: Examples):
        self.net, self.examples = net, examples
        self._lengths = (examples.rules < net.grammar.n_rules).sum(1)

    def __call__(self, rows: Tensor) -> Tensor:
        """The mean bits of the rows."""
        return self.bits(rows.numpy()).mean()

    def bits(self, rows: np.ndarray) -> Tensor:
        """The bits of each row, estimated by some of its steps if the network is in training mode."""
        net, e = self.net, self.examples
        rules = torch.from_numpy(e.rules[rows].astype(np.int64))
        block = torch.from_numpy(e.block[rows].astype(np.int64))
        lengths = torch.from_numpy(self._lengths[rows])
        n, most = len(rows), int(lengths.max())
        rules, block = rules[:, :most], block[:, :most]
        used = torch.arange(most) < lengths[:, None]
        if net.training:
            keys = torch.rand(n, most).masked_fill(~used, 2.0)
            kept = keys.argsort(1).argsort(1) < STEPS
            chosen = kept & used
            weight = lengths / chosen.sum(1)
        else:
            chosen, weight = used, torch.ones(n)
        owner, step = chosen.nonzero(as_tuple=True)
        one_hot = nn.functional.one_hot(rules, net.grammar.n_rules + 1)[:, :, :-1].float()
        before = one_hot.cumsum(1) - one_hot  # rules said before each step
        first = ((block[:, None, :] < block[:, :, None]) & used[:, None, :]).sum(
            2
        )  # the step at which the step's block begins
        at = before[owner, step]
        within = (at - before[owner, first[owner, step]]) * (block[owner, step] > 0)[:, None]
        state = net.embed(torch.from_numpy(e.features[rows].astype(np.float32)))
        lacks = net.lacks(torch.from_numpy(e.missing[rows].astype(np.float32)))
        lacks = torch.cat([torch.zeros(n, 1, lacks.shape[2]), lacks], 1)
        hidden = state[owner] + at @ net.said.weight + within @ net.summand.weight + lacks[owner, block[owner, step]]
        allowed = np.unpackbits(e.allowed[rows], axis=1, count=net.grammar.n_rules).astype(bool)
        target = rules[owner, step]
        log_p = net.log_probabilities(hidden, net.left_sides[target], torch.from_numpy(allowed)[owner])
        step_bits = -log_p.gather(1, target[:, None])[:, 0] / math.log(2)
        return torch.zeros(n).index_add(0, owner, step_bits * weight[owner])
