"""Prediction of a new experiment from its first samples."""

import html

import numpy as np
import pytest

from lgf import LatentGrammarFlow
from lgf.errors import LgfError
from lgf.fit.starts import starts_of

T = np.linspace(0.0, 10.0, 25)


def well(capacity, rng=None, t=T):
    u = capacity / (1 + (capacity / 0.5 - 1) * np.exp(-0.9 * t))
    return u if rng is None else u + 0.05 * rng.standard_normal(len(t))


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(2)
    records = [well(10.0 * (1 + 0.15 * rng.standard_normal()), rng) for _ in range(6)]
    return LatentGrammarFlow(order=1, max_evaluations=60, vary=["u^2"]).fit([T] * 6, records)


def test_a_constant_that_varies_is_estimated_for_a_new_experiment(model):
    assert model.run_.best.fit.sharing.varying
    rng = np.random.default_rng(5)
    seen, rest = T <= 6.5, T > 6.5
    whole = well(13.0, rng)
    own = model.predict_new(T[rest], T[seen], whole[seen])
    usual = model.run_.simulate(T, [whole[0]]).u[rest]
    truth = well(13.0)[rest]
    assert np.abs(own - truth).max() < 0.5
    assert np.abs(usual - truth).max() > 1.5


def test_few_samples_leave_the_usual_constants(model):
    predicted = model.predict_new(T[3:], T[:3], well(13.0)[:3])
    assert np.all(np.isfinite(predicted))
    assert 8.0 < predicted[-1] < 12.0  # the mean is 10: early samples say nothing about the capacity


def test_times_before_the_first_sample_are_refused(model):
    with pytest.raises(LgfError, match="before the first sample"):
        model.predict_new([0.0, 5.0], T[3:8], well(10.0)[3:8])


def test_starts_of_few_experiments_say_nothing():
    assert starts_of(np.ones((2, 2)), np.zeros(2)) is None
    starts = starts_of(np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]]), np.array([0.1, 0.1]))
    assert starts.mean == pytest.approx([2.0, 0.0])
    assert starts.deviation == pytest.approx([np.sqrt(4 / 3), 0.1])


def test_tables_tell_a_constant_that_varies_from_a_common_one(model, tmp_path):
    chosen = model.prediction_front_[model.prediction_front_["chosen"]].iloc[0]
    assert chosen["varying"] == ["C*u^2"]
    model.save(tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"{chosen['equation']}  (C*u^2 by experiment)" in html.unescape(page)
