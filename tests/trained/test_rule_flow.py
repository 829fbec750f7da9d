"""The conditional flow: equality with torch, exact probabilities on a grammar that can be enumerated, its file."""

from itertools import islice

import numpy as np
import pytest
import torch
from benchmarks.sentence_bits import sentence_bits

from lgf.conditional_flow import LikelySentences
from lgf.errors import LgfError
from lgf.grammar import bits, enumerate_derivations, load_grammar, read_grammar, restrict, split_rules
from lgf.language.projections import n_features, project
from lgf.language.term_table import term_table
from lgf.trained.rule_flow import RuleFlow, RuleFlowSettings
from lgf.trained.rule_flow_file import FILE, load_rule_flow, rule_flow_facts, save_rule_flow
from lgf.training.examples import Examples, make_examples, record_at
from lgf.training.pairs import PairMaker
from lgf.training.rule_net import RuleLoss, RuleNet

SMALL = """template: explicit
max_length: 12
summand: T
S -> L [0.5] | L + T [0.3] | T [0.1] | L + T + T [0.1]
L -> C*u [0.6] | C + C*u [0.4]
T -> C*u^2 [0.5] | C*f [0.5]
f -> sin(C*t) [0.7] | u^3 [0.3]
"""


def _net(grammar, seed=0) -> RuleNet:
    torch.manual_seed(seed)
    net = RuleNet(grammar, RuleFlowSettings(width=16), *n_features(term_table(grammar)))
    torch.nn.init.normal_(net.leave.weight, std=0.5)
    torch.nn.init.normal_(net.log_odds.weight, std=0.5)
    return net.eval()


@pytest.fixture(scope="module")
def examples():
    grammar = load_grammar("standard")
    pairs = PairMaker(grammar).chunk(7, 40)
    return grammar, pairs, make_examples(grammar, pairs, 3)


def test_torch_and_numpy_say_the_same_bits(examples):
    """The loss of training against the sentences as a search says them, step by step."""
    grammar, pairs, rows = examples
    assert len(rows) == len(pairs.records)
    net = _net(grammar)
    net.scale(rows)
    expected = RuleLoss(net, rows).bits(np.arange(len(rows))).detach().numpy()
    flow, table = net.flow(), term_table(grammar)
    several = 0
    for i in range(len(rows)):
        said = rows.rules[i][rows.rules[i] < grammar.n_rules].tolist()
        block = rows.block[i][: len(said)]
        header = tuple(r for r, b in zip(said, block, strict=True) if b == 0)
        summands = [tuple(r for r, b in zip(said, block, strict=True) if b == k + 1) for k in range(block.max())]
        allowed = np.unpackbits(rows.allowed[i], count=grammar.n_rules).astype(bool)
        record = project(record_at(pairs.records, i), table)
        # the features of training are in half precision
        assert sentence_bits(flow, record, allowed, header, [summands]) == pytest.approx(expected[i], abs=0.02)
        several += len(summands) > 1
    assert several > 3


def test_steps_equal_torch():
    grammar = load_grammar("standard")
    net = _net(grammar)
    flow = net.flow()
    rng = np.random.default_rng(0)
    features = rng.standard_normal(n_features(term_table(grammar))[0]).astype(np.float32)
    with torch.no_grad():
        state = net.embed(torch.from_numpy(features)[None])
        sides = torch.arange(len(grammar.nonterminals))
        allowed = torch.ones(len(sides), grammar.n_rules, dtype=torch.bool)
        gain = torch.randn(len(sides), grammar.n_rules)
        expected = net.log_probabilities(state.expand(len(sides), -1), sides, gain, allowed).exp().numpy()
        missing = rng.standard_normal(n_features(term_table(grammar))[1]).astype(np.float32)
        odds = net.odds(torch.from_numpy(features)[None], torch.from_numpy(missing)[None], state)[0].numpy()
    assert np.abs(np.log(flow.odds(features, missing, flow.read(features)) / odds)).max() < 1e-5
    assert np.abs(flow.read(features) - state[0].numpy()).max() < 1e-5
    actual = np.exp(
        flow.log_probabilities(
            np.tile(flow.read(features), (len(sides), 1)), sides.numpy(), gain.numpy(), allowed.numpy()
        )
    )
    assert np.abs(actual - expected).max() < 1e-5


def _small_record(grammar):
    pairs = PairMaker(load_grammar("standard")).chunk(3, 30)
    i = int(np.flatnonzero((pairs.records.order == 1) & ~pairs.records.forced)[0])
    return project(record_at(pairs.records, i), term_table(grammar))


def test_probabilities_of_a_small_grammar_against_enumeration():
    grammar = read_grammar(SMALL, name="small")
    record, allowed = _small_record(grammar), restrict(grammar, order=1, forced=False)
    flow = _net(grammar).flow()
    sentences = [d for _, d in enumerate_derivations(grammar, 40.0)]
    lengths = {}
    for d in sentences:
        header, summands = split_rules(grammar, d)
        lengths[d] = sentence_bits(flow, record, allowed, tuple(header), [summands])
    assert sum(2.0**-b for b in lengths.values()) == pytest.approx(1.0, abs=1e-5)
    listed = list(LikelySentences(flow, record, allowed, 60.0))
    assert len(listed) == len(sentences)
    assert [p for p, _ in listed] == sorted((p for p, _ in listed), reverse=True)
    for log_p, d in listed:
        assert -log_p / np.log(2) == pytest.approx(lengths[d], abs=1e-4)
    # strength 0 is the grammar, to the bit
    for d in sentences:
        header, summands = split_rules(grammar, d)
        free = sentence_bits(flow, record, allowed, tuple(header), [summands], 0.0)
        assert free == pytest.approx(bits(grammar, d), abs=1e-4)


def test_rules_that_are_not_allowed_are_not_listed():
    grammar = read_grammar(SMALL, name="small")
    allowed = restrict(grammar, order=1, forced=False)
    banned = next(i for i, rule in enumerate(grammar.rules) if "sin" in rule.body)
    allowed[banned] = False
    listed = [d for _, d in LikelySentences(_net(grammar).flow(), _small_record(grammar), allowed)]
    assert listed
    assert all(banned not in d for d in listed)


def test_file(tmp_path):
    grammar = load_grammar("standard")
    flow = _net(grammar).flow()
    assert load_rule_flow(tmp_path, grammar) is None
    save_rule_flow(flow, tmp_path, {"pairs": 5})
    again = load_rule_flow(tmp_path, grammar)
    assert isinstance(again, RuleFlow)
    assert all(np.allclose(again.weights[name], value, atol=2e-3) for name, value in flow.weights.items())
    assert rule_flow_facts((tmp_path / FILE).read_bytes())["pairs"] == 5
    assert load_rule_flow(tmp_path, read_grammar(SMALL, name="small")) is None
    (tmp_path / FILE).write_bytes((tmp_path / FILE).read_bytes()[:-10])
    with pytest.raises(LgfError, match="damaged"):
        load_rule_flow(tmp_path, grammar)


def test_weights_that_are_missing_or_do_not_fit_are_refused(tmp_path):
    grammar = load_grammar("standard")
    flow = _net(grammar).flow()
    not_read = ("said.weight", "summand.weight", "side.weight", "log_odds.weight", "log_odds.bias")  # beyond their end
    for name, value in flow.weights.items():
        without = {other: v for other, v in flow.weights.items() if other != name}
        for weights in (without, {**without, name: np.concatenate([value, value[:1]])}):
            if name in weights and name in not_read:
                continue
            save_rule_flow(RuleFlow(grammar, flow.settings, weights), tmp_path, {})
            with pytest.raises(LgfError, match="damaged"):
                load_rule_flow(tmp_path, grammar)


def test_training_lowers_the_bits(examples):
    grammar, _, rows = examples
    net = _net(grammar).train()
    torch.nn.init.zeros_(net.leave.weight)
    torch.nn.init.zeros_(net.log_odds.weight)
    net.scale(rows)
    loss, optimiser = RuleLoss(net, rows), torch.optim.Adam(net.parameters(), 3e-3)
    everything = torch.arange(len(rows))
    net.eval()
    before = loss(everything).item()
    net.train()
    for _ in range(40):
        optimiser.zero_grad()
        loss(everything).backward()
        optimiser.step()
    net.eval()
    assert loss(everything).item() < before - 2
    assert isinstance(rows, Examples)
    assert list(islice(net.parameters(), 1))
