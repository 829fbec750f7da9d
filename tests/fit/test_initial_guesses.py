import numpy as np
import pytest
from scipy.stats import qmc, rankdata

from lgf.fit.initial_guesses import halton
from lgf.flow_proposer import _ranks


@pytest.mark.parametrize("dimensions", [1, 2, 5, 9])
def test_halton_points_are_those_of_scipy(dimensions):
    expected = qmc.Halton(dimensions, scramble=False).random(201)[1:]
    np.testing.assert_allclose(halton(dimensions, 200), expected, rtol=1e-13)


def test_ranks_are_those_of_scipy():
    values = np.random.default_rng(0).integers(8, size=50).astype(float)
    np.testing.assert_array_equal(_ranks(values), rankdata(values))
