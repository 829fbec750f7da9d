"""The stages that train a conditional flow: simulated pairs, chunk by chunk, and the network on their features."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from lgf.errors import LgfError, quoted
from lgf.grammar import Grammar
from lgf.language.projections import n_features
from lgf.language.term_table import term_table
from lgf.trained.rule_flow import RuleFlow, RuleFlowSettings
from lgf.training.chunks import made_in_chunks
from lgf.training.examples import Examples, make_examples
from lgf.training.loop import fit
from lgf.training.pairs import PairMaker, PairRecipe
from lgf.training.progress import Progress
from lgf.training.recipe import ConditionalRecipe, TrainingRecipe
from lgf.training.rule_net import RuleLoss, RuleNet
from lgf.training.stage_times import StageTimes

_HELD_OUT = 0.02  # the share of the pairs that validate
_TRAINING = TrainingRecipe(epochs=1, learning_rate=2e-3, weight_decay=0.02)
_PATIENCE = 3  # epochs without fewer bits on the pairs that validate

Report = Callable[[Progress], None]


def require_conditional(grammar: Grammar) -> None:
    """Raises LgfError unless a conditional flow can be trained for the grammar."""
    if grammar.template != "explicit" or not grammar.summand:
        raise LgfError(
            f"the recipe asks for a conditional flow, but grammar {quoted(grammar.name)} does not say u^(n) = sum of "
            "summands; leave the table [conditional] out."
        )


def simulate(
    grammar: Grammar,
    recipe: PairRecipe,
    summands: int,
    folder: Path,
    times: StageTimes,
    progress: Report | None = None,
) -> Examples:
    """The examples of the recipe's pairs. A chunk is a file in the folder, and is not made again."""
    maker = PairMaker(grammar, recipe)

    def chunk(number: int, size: int) -> dict[str, np.ndarray]:
        # Two threads for products as small as these take up to ten times as long, on a machine that is busy.
        with times.stage("pairs"), np.errstate(all="ignore"), threadpool_limits(limits=1, user_api="blas"):
            return vars(make_examples(grammar, maker.chunk(number, size), summands))

    return Examples(**made_in_chunks("pairs", folder, recipe.size, recipe.chunk, chunk, progress))


def train_conditional(
    recipe: ConditionalRecipe,
    grammar: Grammar,
    summands: int,
    seed: int,
    work: Path,
    times: StageTimes,
    progress: Report | None = None,
) -> tuple[RuleFlow, dict[str, Any]]:
    """(the trained flow, what to store about it); sentences have up to so many summands.

    The last pairs of the recipe are for validation only.
    """
    examples = simulate(grammar, recipe.pairs, summands, work / "pairs", times, progress)
    held_out = max(1, round(_HELD_OUT * len(examples)))
    n_train = len(examples) - held_out
    with times.stage("conditional flow"):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            net = RuleNet(grammar, RuleFlowSettings(recipe.width), *n_features(term_table(grammar)))
        net.scale(examples.rows(np.arange(n_train)))
        loss = RuleLoss(net, examples)
        rows = torch.arange(n_train, len(examples))
        prior = _bits(loss, rows, 0.0)
        fit(
            net, loss, n_train, held_out, replace(_TRAINING, epochs=recipe.epochs), seed, "conditional flow",
            checkpoint=work / "conditional.safetensors", progress=progress, patience=_PATIENCE,
        )  # fmt: skip
    metrics = {"pairs": n_train, "held_out": held_out, "grammar_bits": prior, "bits": _bits(loss, rows, 1.0)}
    return net.flow(), {"recipe": asdict(recipe), "metrics": metrics}


@torch.no_grad()
def _bits(loss: RuleLoss, rows: torch.Tensor, strength: float) -> float:
    """The mean bits of the rows, by the flow (strength 1) or by the grammar (0)."""
    net = loss.net
    net.eval()
    last = [*net.leave.parameters(), *net.log_odds.parameters()]
    trained = [value.clone() for value in last]
    for value in last:
        value.mul_(strength)
    total = sum(float(loss(part)) * len(part) for part in rows.split(500))
    for value, before in zip(last, trained, strict=True):
        value.copy_(before)
    return total / len(rows)
