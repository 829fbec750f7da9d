import numpy as np
import pytest
from scipy.stats import qmc

from lgf.solver.halton import halton


@pytest.mark.parametrize("dimensions", [1, 2, 5, 9])
def test_halton_points_are_those_of_scipy(dimensions):
    expected = qmc.Halton(dimensions, scramble=False).random(201)[1:]
    np.testing.assert_allclose(halton(dimensions, 200), expected, rtol=1e-13)
