"""Benchmark 5: no sample that is predicted is seen before, and the score is what README.md says."""

import numpy as np
import pytest
from benchmarks.real.baselines import chosen_in_advance, gaussian_process, naive
from benchmarks.real.models import from_start, linear
from benchmarks.real.protocol import FORECAST, LEFT_OUT, Piece, Trial, trials_of
from benchmarks.real.records import Experiment, held_back, records
from benchmarks.real.running import run_one
from benchmarks.real.summary import summaries

from lgf import System
from lgf.solver.solve import solve


def made_test(kind=FORECAST, rate=-0.5, n=3):
    """Exponential decays from different starts, the last one left out if asked."""
    t = np.linspace(0.0, 4.0, 41)
    decays = tuple(Experiment(t, (2.0 + k) * np.exp(rate * t)[:, None]) for k in range(n))
    cut = 30 if kind == FORECAST else 13
    pieces = [Piece(e.part(t < t[cut]), e.part(t >= t[cut]), k) for k, e in enumerate(decays)]
    if kind == FORECAST:
        return Trial("made", kind, ("u",), tuple(p.seen for p in pieces), tuple(pieces), decays)
    return Trial("made", kind, ("u",), decays[:-1], (Piece(pieces[-1].seen, pieces[-1].rest, None),), decays[:-1])


def test_half_of_the_records_are_held_back_and_none_that_the_notes_name():
    held = held_back()
    assert len(held) >= 12
    assert abs(2 * len(held) - len(records())) <= 1
    assert not any(records()[name].named for name in held)


def test_training_and_predicted_samples_are_disjoint_and_complete():
    record = records()["growth"]
    _, experiments = record.experiments()
    forecast, left_out = trials_of(record)
    assert (forecast.kind, left_out.kind) == (FORECAST, LEFT_OUT)
    for whole, piece in zip(experiments, forecast.pieces, strict=True):
        assert piece.seen.t[-1] <= whole.t[0] + 0.75 * np.ptp(whole.t) < piece.rest.t[0]
        np.testing.assert_array_equal(np.concatenate([piece.seen.t, piece.rest.t]), whole.t)
    assert len(left_out.training) == 8
    assert len(left_out.pieces) == 4
    for piece in left_out.pieces:
        assert piece.index is None
        assert len(piece.seen.t) == 16  # 30 % of 52
        assert not any(np.array_equal(piece.rest.values, e.values[16:]) for e in left_out.training)


def test_naive_predictions_hold_continue_and_average():
    t = np.arange(10.0)
    line = Experiment(t, (3.0 + 2.0 * t)[:, None])
    piece = Piece(line.part(t < 7), line.part(t >= 7), None)
    above, below = Experiment(t, line.values + 1.0), Experiment(t, line.values - 1.0)
    made = naive(Trial("line", LEFT_OUT, ("u",), (above, below), (piece,), ()))
    np.testing.assert_allclose(made["last value"][0][:, 0], 15.0)
    np.testing.assert_allclose(made["line"][0], piece.rest.values)
    np.testing.assert_allclose(made["mean curve"][0], piece.rest.values)


def test_the_gaussian_process_goes_on_with_a_smooth_curve():
    t = np.linspace(0, 6, 61)
    wave = Experiment(t, np.sin(t)[:, None])
    piece = Piece(wave.part(t < 5.5), wave.part(t >= 5.5), 0)
    (predicted,) = gaussian_process(Trial("wave", FORECAST, ("u",), (piece.seen,), (piece,), (wave,)))
    np.testing.assert_allclose(predicted, piece.rest.values, atol=0.05)


def test_the_start_comes_from_the_samples_seen():
    test = made_test(LEFT_OUT)
    system = System.read("u' = -0.5*u")
    (piece,) = test.pieces
    predicted = from_start(lambda t, y, _: solve(system, y, t), system.frame, test, piece)
    np.testing.assert_allclose(predicted, piece.rest.values, rtol=1e-5)


@pytest.mark.parametrize("kind", [FORECAST, LEFT_OUT])
def test_a_linear_equation_predicts_a_decay(kind):
    test = made_test(kind)
    found = linear(test, 1)
    assert test.error(found.values) < 1e-3
    assert found.constants in (1, 2)


def test_a_failure_is_a_result_with_its_reason():
    t = np.arange(3.0)
    tiny = Experiment(t, np.ones((3, 1)))
    piece = Piece(tiny.part(t < 2), tiny.part(t >= 2), 0)
    row = run_one(Trial("tiny", FORECAST, ("u",), (piece.seen,), (piece,), (tiny,)), "linear, order 1", {})
    assert row["ratio"] == 100.0
    assert "samples" in row["failure"]


def test_the_summary_counts_wins_by_test_and_by_record():
    rows = [
        {"record": "a", "method": "m", "ratio": 0.5, "constants": 2, "seconds": 1.0},
        {"record": "a", "method": "m", "ratio": 8.0, "constants": 4, "seconds": 1.0},
        {"record": "b", "method": "m", "ratio": 0.25, "constants": 3, "seconds": 1.0},
        {"record": "b", "method": "m", "ratio": 100.0, "failure": "none"},
    ]
    (s,) = summaries(rows)
    assert (s.tests, s.wins, s.records, s.record_wins, s.failures) == (4, 2, 2, 0, 1)
    assert s.ratio == pytest.approx(100.0**0.25)
    assert s.constants == pytest.approx(3.0)


def test_the_naive_prediction_is_chosen_on_the_training_part():
    t = np.arange(20.0)
    straight = Experiment(t, (2.0 * t)[:, None])
    piece = Piece(straight.part(t < 15), straight.part(t >= 15), 0)
    assert chosen_in_advance(Trial("line", FORECAST, ("u",), (piece.seen,), (piece,), (straight,))) == "line"
    same = [Experiment(t, np.sin(t)[:, None]) for _ in range(3)]
    left = Piece(same[2].part(t < 6), same[2].part(t >= 6), None)
    waves = Trial("waves", LEFT_OUT, ("u",), tuple(same[:2]), (left,), tuple(same[:2]))
    assert chosen_in_advance(waves) == "mean curve"
    rows = [
        {"record": "a", "test": FORECAST, "method": "m", "ratio": 0.5, "constants": 2, "seconds": 1.0,
         "baselines": {"line": 0.4, "last value": 0.1}, "in_advance": "line"},
    ]  # fmt: skip
    (s,) = summaries(rows)
    assert s.ratio_in_advance == pytest.approx(0.125)
    assert s.advance_wins == 1
