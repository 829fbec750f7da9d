"""Two small finished runs that several tests look at; fixed seeds, budgets in evaluations."""

import numpy as np
import pytest

from lgf.data import Knowledge, Problem, load_record, observations_from_arrays
from lgf.grammar import load_grammar
from lgf.runs.request import Request, Run, execute
from lgf.search.loop import SearchSettings
from lgf.search.select import SelectionSettings
from lgf.search.settings import DiscoverySettings

ENUMERATED = DiscoverySettings(
    search=SearchSettings(first=30, max_evaluations=60), selection=SelectionSettings(n_finalists=3)
)
PROPOSED = DiscoverySettings(
    search=SearchSettings(first=20, max_evaluations=60), selection=SelectionSettings(n_finalists=3)
)


@pytest.fixture(scope="session")
def duffing() -> Run:
    """One experiment, acceleration only, with a forcing; the user's own equation tried first."""
    own = ("u'' = C*u' + C*u + C*u^3 + F",)
    return execute(Request(load_record("duffing"), load_grammar("standard"), ENUMERATED, start=own))


@pytest.fixture(scope="session")
def decay() -> Run:
    """Two experiments of u' = -u/2 with gaps and no initial state; the proposer has its turn after the enumeration."""
    rng = np.random.default_rng(1)
    t = np.linspace(0.0, 4.0, 40)
    records = [a * np.exp(-0.5 * t) + 0.01 * rng.normal(size=40) for a in (2.0, 3.0)]
    records[1][5:9] = np.nan
    problem = Problem(observations_from_arrays(t, records), Knowledge(order=1, autonomous=True, bounds={"u": (-9, 0)}))
    return execute(Request(problem, load_grammar("standard"), PROPOSED))
