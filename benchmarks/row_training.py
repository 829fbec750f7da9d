"""Training of the ranking of right-hand sides (`lgf.search.systems.row_ranking`) on simulated systems.

The evidence of a simulated system is that of a search: its record is smoothed, and the right-hand sides of each row are
selected and fitted in integral form. A row whose true right-hand side is not among them is counted and left out.
Systems are made in chunks, each a file. A chunk depends only on the seed and its own number.
"""

import argparse
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import save
from scipy.optimize import minimize

from benchmarks.simulated_systems import SimulatedSystem, simulate_system
from lgf.errors import LgfError, quoted
from lgf.fit.target_assembly import make_target
from lgf.grammar import Grammar, load_grammar
from lgf.search.systems.component_lists import ComponentSelection
from lgf.search.systems.language import system_language
from lgf.search.systems.row_evidence import N_FEATURES, RowEvidence
from lgf.search.systems.row_ranking import FILE as RANKING
from lgf.search.systems.row_ranking import RowRanking
from lgf.search.systems.term_grid import make_term_grid
from lgf.settings.ranges import Count, Tally
from lgf.settings.toml_tables import described, read_table
from lgf.smoothing.complete import complete
from lgf.training.chunks import made_in_chunks
from lgf.training.progress import Progress
from lgf.training.stage_times import FILE, StageTimes

_CHUNK = 25  # systems in a file
_HELD_OUT = 0.2  # the share of the right-hand sides that validate
_PENALTY = 1.0  # on the squared weights of the scaled features


@dataclass(frozen=True)
class RowSettings:
    """The number of simulated systems."""

    systems: Count = 1000


@dataclass(frozen=True)
class RowRecipe:
    """All settings of a training."""

    name: str
    grammar: str
    seed: Tally = 0
    rows: RowSettings = RowSettings()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The recipe and the folder."""
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="folder of rows.safetensors")
    parser.add_argument("--resume", action="store_true", help="go on where a training was interrupted")


def main(args: argparse.Namespace) -> None:
    """Trains and prints the metrics."""
    recipe = described(RowRecipe, read_table(args.recipe), args.recipe.name)
    print(json.dumps(train_rows(recipe, args.out, args.resume), indent=1))


class RowExamples(NamedTuple):
    """The right-hand sides of all rows, one row after the other.

    features  [n, feature]
    rank      [n] without a model
    sizes     [row] the number of right-hand sides of each row
    true      [row] the place of the true one in its row, -1 if it is not there
    """

    features: np.ndarray
    rank: np.ndarray
    sizes: np.ndarray
    true: np.ndarray

    def rows(self, chosen: np.ndarray) -> "RowExamples":
        """The examples of these rows [row], true or false."""
        inside = np.repeat(chosen, self.sizes)
        return RowExamples(self.features[inside], self.rank[inside], self.sizes[chosen], self.true[chosen])


def train_rows(
    recipe: RowRecipe, out: str | Path, resume: bool = False, progress: Callable[[Progress], None] | None = None
) -> dict[str, Any]:
    """The metrics of the ranking that the recipe describes, saved in folder `out` with the seconds of each stage.

    Intermediate files are in `out`/work. With `resume` the training continues from the chunks there.
    """
    grammar = load_grammar(recipe.grammar)
    if grammar.template != "system":
        raise LgfError(f"grammar {quoted(grammar.name)} is not one of systems.")
    work = Path(out) / "work"
    if not resume:
        shutil.rmtree(work, ignore_errors=True)
    times = StageTimes(work / FILE)
    examples = _simulated(grammar, recipe, work, times, progress)
    with times.stage("ranking"):
        n_train = round(len(examples.true) * (1.0 - _HELD_OUT))
        there = examples.true >= 0
        for_training = there & (np.arange(len(there)) < n_train)
        ranking = fit_ranking(examples.rows(for_training))
        unseen = examples.rows(there & ~for_training)
        scores = [ranking.log_probabilities(part) for part in np.split(unseen.features, np.cumsum(unseen.sizes)[:-1])]
        metrics = {
            "systems": recipe.rows.systems, "rows": len(there), "with the true right-hand side": int(there.sum()),
            "held out": len(unseen.true), "without a model": _ranks(-unseen.rank, unseen),
            "ranked": _ranks(np.concatenate(scores), unseen),
        }  # fmt: skip
    save_row_ranking(ranking, out, {"recipe": asdict(recipe), "metrics": metrics})
    shutil.move(work / FILE, Path(out) / FILE)
    shutil.rmtree(work)
    return metrics


def _simulated(
    grammar: Grammar, recipe: RowRecipe, work: Path, times: StageTimes, progress: Callable[[Progress], None] | None
) -> RowExamples:
    """The examples of the recipe's systems; those that were made before are read."""

    def chunk(number: int, size: int) -> dict[str, np.ndarray]:
        rng = np.random.default_rng([recipe.seed, 13, number])
        with times.stage("systems"):
            parts = [_examples(simulate_system(grammar, rng), grammar) for _ in range(size)]
        return _joined(parts)._asdict()

    return RowExamples(**made_in_chunks("systems", work / "rows", recipe.rows.systems, _CHUNK, chunk, progress))


def _joined(parts: list[RowExamples]) -> RowExamples:
    return RowExamples(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _examples(simulated: SimulatedSystem, grammar: Grammar) -> RowExamples:
    """The rows of one system."""
    problem = simulated.problem
    (frame,) = problem.frames
    target = make_target(problem, frame, [complete(o, frame) for o in problem.observations])
    language = system_language(grammar, problem, frame, target)
    terms = make_term_grid(language, target)
    selection = ComponentSelection(language, target, terms, target.columns)
    right_sides = simulated.system.skeleton.right_sides
    assert right_sides is not None
    parts = []
    for row, evidence in selection.evidence(range(len(frame.states))).items():
        structure = language.row_structure(row, right_sides[row])
        parts.append(_row(evidence, (structure.terms, structure.divisor)))
    return _joined(parts)


def _row(evidence: RowEvidence, truth: tuple) -> RowExamples:
    keys = [component.key for component in evidence.components]
    place = keys.index(truth) if truth in keys else -1
    return RowExamples(evidence.features.astype(np.float32), evidence.ranks, np.array([len(keys)]), np.array([place]))


def fit_ranking(examples: RowExamples) -> RowRanking:
    """The ranking of greatest likelihood on rows with a true right-hand side, with a penalty on squared weights."""
    features = examples.features.astype(float)
    mean, deviation = features.mean(axis=0), features.std(axis=0) + 1e-3
    x = (features - mean) / deviation
    first = np.cumsum(examples.sizes) - examples.sizes
    true = first + examples.true

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        scores = x @ weights
        highest = np.maximum.reduceat(scores, first)
        shifted = np.exp(scores - np.repeat(highest, examples.sizes))
        total = np.add.reduceat(shifted, first)
        chances = shifted / np.repeat(total, examples.sizes)
        value = float(np.sum(np.log(total) + highest - scores[true]) + 0.5 * _PENALTY * weights @ weights)
        return value, chances @ x - x[true].sum(axis=0) + _PENALTY * weights

    found = minimize(loss, np.zeros(N_FEATURES), jac=True, method="L-BFGS-B", options={"maxiter": 500})
    return RowRanking(mean, deviation, found.x)


def save_row_ranking(ranking: RowRanking, folder: str | Path, facts: Mapping[str, Any]) -> None:
    """Writes the ranking into a folder; `facts` say how it was trained and how good it is."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    arrays = {"mean": ranking.mean, "deviation": ranking.deviation, "weights": ranking.weights}
    (path / RANKING).write_bytes(save(arrays, {"about": json.dumps(dict(facts))}))


def _ranks(scores: np.ndarray, examples: RowExamples) -> dict[str, float]:
    """How the true right-hand sides are ranked by these scores: the geometric mean, and shares."""
    parts = np.split(scores, np.cumsum(examples.sizes)[:-1])
    ranks = np.array([1 + np.sum(own > own[true]) for own, true in zip(parts, examples.true, strict=True)])
    shares = {f"in the first {n}": float(np.mean(ranks <= n)) for n in (1, 5, 20)}
    return {"geometric mean rank": float(np.exp(np.mean(np.log(ranks)))), **shares}
