import numpy as np
import pytest

from lgf.grammar import load_grammar
from lgf.training.chunks import made_in_chunks
from lgf.training.examples import make_examples
from lgf.training.pairs import PairMaker, PairRecipe


@pytest.fixture(scope="module")
def grammar():
    return load_grammar("standard")


def test_a_chunk_depends_on_seed_and_number_only(grammar, tmp_path):
    recipe = PairRecipe(seed=3)
    maker = PairMaker(grammar, recipe)
    maker.chunk(0, 20)
    one, again = maker.chunk(1, 60), PairMaker(grammar, recipe).chunk(1, 60)
    assert np.array_equal(one.records.columns, again.records.columns)
    assert np.array_equal(one.derivations, again.derivations)
    other = maker.chunk(2, 60)
    assert not np.array_equal(one.records.window[:10], other.records.window[:10])
    examples = make_examples(grammar, one, 3)
    for _ in range(2):
        stored = made_in_chunks("pairs", tmp_path, 60, 60, lambda number, size: vars(examples))
        assert np.array_equal(stored["features"], examples.features)
        assert [p.name for p in tmp_path.iterdir()] == ["00000.npz"]


def test_the_pairs_of_a_seed_remain_the_same(grammar):
    """A training that is resumed after an update goes on with the same pairs."""
    pairs = PairMaker(grammar, PairRecipe(seed=3)).chunk(1, 60)
    assert len(pairs.records) == 60
    assert pairs.records.window[[0, 20, 40, -1]] == pytest.approx([39.3153392, 3.88314209, 1.17214155, 2.13546624])
    assert pairs.level[[0, -1]] == pytest.approx([0.0479628567, 0.0931696937])
    assert pairs.records.noise[[0, -1]] == pytest.approx([0.0529380739, 0.0972992852], rel=1e-3)


def test_records_follow_their_equations(grammar):
    """Without noise the right side, fitted by least squares, gives the highest derivative."""
    from lgf.grammar import restrict, unpad
    from lgf.language.language import Language
    from lgf.language.sentences import grammar_frame
    from lgf.smoothing.common_grid import TAU
    from lgf.solver.kernels.machine import WIDE, evaluate_wide
    from lgf.solver.program import compile_skeleton

    pairs = PairMaker(grammar, PairRecipe(seed=5, noise=0.0, uneven=0.0)).chunk(0, 80)
    records, checked = pairs.records, 0
    for i, derivation in enumerate(unpad(grammar, pairs.derivations)):
        order, forced = int(records.order[i]), bool(records.forced[i])
        allowed = restrict(grammar, order=order, forced=forced)
        skeleton = Language(grammar, grammar_frame(order, forced), forced, allowed).skeleton(derivation)
        assert skeleton is not None
        equation = compile_skeleton(skeleton).equations[0]
        if len(equation.nonlinear) or records.samples[i] < 150:
            continue
        t = records.start[i] + records.window[i] * TAU
        columns = np.ascontiguousarray(records.columns[i, : order + 1], float)
        inputs = records.forcing[i : i + 1].astype(float) if forced else np.zeros((0, len(t)))
        out = np.zeros((len(equation.basis.outputs), len(t)))
        registers = np.zeros((equation.basis.n_registers, WIDE))
        evaluate_wide(equation.basis, np.zeros(skeleton.n_constants), t, columns, inputs, registers, out)
        inside = slice(16, -16)  # the ends of a smoothed second derivative are rough
        terms, top = out[:-1, inside].T, columns[-1, inside]
        left = top - terms @ np.linalg.lstsq(terms, top, rcond=None)[0]
        assert np.sqrt(np.mean(left**2)) < 0.1 * np.sqrt(np.mean(top**2)), skeleton
        checked += 1
    assert checked >= 8
