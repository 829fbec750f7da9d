"""The network of the conditional flow in torch, for training; `lgf.trained.rule_flow` runs the same in NumPy."""

import math

import numpy as np
import torch
from torch import Tensor, nn

from lgf.grammar import Grammar
from lgf.language.summand_tree import SummandTree, summand_tree
from lgf.trained.rule_flow import BY_TERM, LARGEST_FEATURE, LARGEST_LOG_ODDS, RuleFlow, RuleFlowSettings, log_weights
from lgf.training.examples import Examples

DROPOUT = 0.1


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
        self.enter, self.missing = _perceptron(static, width), _perceptron(missing, width)
        self.reading = nn.ModuleList(_residual(width, 2 * width) for _ in range(settings.reading))
        self.read = nn.LayerNorm(width)
        self.said = nn.Embedding(rules, width)
        self.summand = nn.Embedding(rules, width)
        self.side = nn.Embedding(len(grammar.nonterminals), width)
        self.steps = nn.ModuleList(_residual(width, width) for _ in range(settings.depth))
        self.last = nn.LayerNorm(width)
        self.leave = nn.Linear(width, rules)
        self.groups = missing - 2  # the last two are of the whole
        self.of_term = nn.Parameter(torch.zeros(self.groups, settings.odds))
        self.evidence = nn.Linear(BY_TERM + 1, settings.odds)
        self.context = nn.Linear(width, settings.odds)
        self.log_odds = nn.Linear(settings.odds, 1)
        for embedding in (self.said, self.summand, self.side):
            nn.init.normal_(embedding.weight, std=0.3)
        nn.init.zeros_(self.leave.bias)
        nn.init.normal_(self.leave.weight, std=0.01)  # training starts at the grammar
        nn.init.zeros_(self.log_odds.bias)
        nn.init.normal_(self.log_odds.weight, std=0.01)
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
        state = self.enter(_scaled(features, self.mean, self.deviation))
        for layer in self.reading:
            state = state + layer(state)
        return self.read(state)

    def lacks(self, features: Tensor) -> Tensor:
        """The vectors [n, width] of features of what is missing."""
        return self.missing(_scaled(features, self.missing_mean, self.missing_deviation))

    def odds(self, features: Tensor, missing: Tensor, state: Tensor) -> Tensor:
        """The odds [n, group] of the terms beside what was said; the states [n, width] are of both."""
        kinds = _scaled(features, self.mean, self.deviation)[:, : BY_TERM * self.groups]
        lacks = _scaled(missing, self.missing_mean, self.missing_deviation)[:, : self.groups]
        x = torch.cat([kinds.unflatten(1, (BY_TERM, self.groups)), lacks[:, None]], 1).transpose(1, 2)
        hidden = nn.functional.silu(self.evidence(x) + self.of_term + self.context(state)[:, None])
        log_odds = self.log_odds(hidden)[:, :, 0]
        return (LARGEST_LOG_ODDS * (log_odds / LARGEST_LOG_ODDS).tanh()).exp()

    def log_probabilities(self, state: Tensor, side: Tensor, gain: Tensor, allowed: Tensor) -> Tensor:
        """Log p [n, rule] of the next rule."""
        hidden = state + self.side(side)
        for layer in self.steps:
            hidden = hidden + layer(hidden)
        logits = self.prior + self.leave(self.last(hidden)) + gain
        usable = allowed & (self.left_sides == side[:, None])
        return logits.masked_fill(~usable, -1e9).log_softmax(-1)

    def flow(self) -> RuleFlow:
        """The same network in NumPy."""
        weights = {name: value.detach().numpy().copy() for name, value in self.state_dict().items()}
        return RuleFlow(self.grammar, self.settings, weights)


def _scaled(x: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    return ((x - mean) / deviation).clamp(-LARGEST_FEATURE, LARGEST_FEATURE)


def _perceptron(inputs: int, width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, 2 * width), nn.SiLU(), nn.Dropout(DROPOUT), nn.Linear(2 * width, width))


def _residual(width: int, inner: int) -> nn.Sequential:
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, inner), nn.SiLU(), nn.Linear(inner, width))


class RuleLoss:
    """The bits of the sentences of rows of examples."""

    def __init__(self, net: RuleNet, examples: Examples):
        self.net, self.examples = net, examples
        self._lengths = (examples.rules < net.grammar.n_rules).sum(1)
        tree = summand_tree(net.grammar)
        self._nodes = _nodes(tree, examples, self._lengths)
        self._chances = torch.from_numpy(tree.chances)

    def __call__(self, rows: Tensor) -> Tensor:
        """The mean bits of the rows."""
        return self.bits(rows.numpy()).mean()

    def bits(self, rows: np.ndarray) -> Tensor:
        """The bits of each row."""
        net, e = self.net, self.examples
        rules = torch.from_numpy(e.rules[rows].astype(np.int64))
        block = torch.from_numpy(e.block[rows].astype(np.int64))
        lengths = torch.from_numpy(self._lengths[rows])
        n, most = len(rows), int(lengths.max())
        rules, block = rules[:, :most], block[:, :most]
        used = torch.arange(most) < lengths[:, None]
        owner, step = used.nonzero(as_tuple=True)
        one_hot = nn.functional.one_hot(rules, net.grammar.n_rules + 1)[:, :, :-1].float()
        before = one_hot.cumsum(1) - one_hot  # rules said before each step
        first = ((block[:, None, :] < block[:, :, None]) & used[:, None, :]).sum(
            2
        )  # the step at which the step's block begins
        at = before[owner, step]
        within = (at - before[owner, first[owner, step]]) * (block[owner, step] > 0)[:, None]
        features, missing = (torch.from_numpy(x[rows].astype(np.float32)) for x in (e.features, e.missing))
        state, lacks = net.embed(features), net.lacks(missing)
        gain = self._gain(owner, block[owner, step], self._nodes[rows][owner, step], features, missing, state, lacks)
        lacks = torch.cat([torch.zeros(n, 1, lacks.shape[2]), lacks], 1)
        hidden = state[owner] + at @ net.said.weight + within @ net.summand.weight + lacks[owner, block[owner, step]]
        allowed = np.unpackbits(e.allowed[rows], axis=1, count=net.grammar.n_rules).astype(bool)
        target = rules[owner, step]
        log_p = net.log_probabilities(hidden, net.left_sides[target], gain, torch.from_numpy(allowed)[owner])
        step_bits = -log_p.gather(1, target[:, None])[:, 0] / math.log(2)
        return torch.zeros(n).index_add(0, owner, step_bits)

    def _gain(
        self,
        owner: Tensor,
        block: Tensor,
        nodes: np.ndarray,
        features: Tensor,
        missing: Tensor,
        state: Tensor,
        lacks: Tensor,
    ) -> Tensor:
        """What each rule gains by the odds of the terms it leads to [step, rule]; see `SummandTree.gain`."""
        gain = torch.zeros(len(owner), self.net.grammar.n_rules)
        inside = torch.from_numpy(np.flatnonzero(nodes >= 0))
        if len(inside) == 0:
            return gain
        # the steps of a summand have the same odds
        summands, which = (owner * missing.shape[1] + block - 1)[inside].unique(return_inverse=True)
        of, at = summands // missing.shape[1], summands % missing.shape[1]
        odds = self.net.odds(features[of], missing[of, at], state[of] + lacks[of, at])
        odds = torch.cat([odds, torch.ones(len(odds), 1)], 1)
        node = torch.from_numpy(nodes)[inside]
        parts, order = [], []
        for k in node.unique().tolist():
            here = (node == k).nonzero()[:, 0]
            parts.append((odds[which[here]] @ self._chances[k].T).log())
            order.append(inside[here])
        return gain.index_put((torch.cat(order),), torch.cat(parts))


def _nodes(tree: SummandTree, examples: Examples, lengths: np.ndarray) -> np.ndarray:
    """[n, length]: the node of the tree at each step; -1 in headers and in summands that no term has."""
    nodes = np.full(examples.rules.shape, -1, np.int16)
    for i, (rules, block) in enumerate(zip(examples.rules.tolist(), examples.block.tolist(), strict=True)):
        begin = 0
        for step in range(int(lengths[i])):
            if block[step] == 0:
                continue
            if block[step] != block[step - 1]:
                begin = step
            nodes[i, step] = tree.nodes.get(tuple(rules[begin:step]), -1)
    return nodes
