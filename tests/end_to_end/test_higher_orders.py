"""Equations of orders 3 and 4, from a table of noisy samples to the equation."""

import numpy as np
import pytest

from lgf.cli import main
from lgf.equation.system import System
from lgf.runs.folder import read_run
from lgf.solver.solve import solve
from lgf.solver.trajectory import relative_l2

# the equation, the initial state, and how many evaluations find it
SYSTEMS = {
    "linear": ("u''' = -0.6*u'' - 1.5*u' - 0.5*u", (1.0, 0.0, 0.0), 20),
    "jerk": ("u''' = -1.2*u'' - u' + u^2 - 1", (0.0, 0.0, 0.0), 120),
    "two modes": ("u'''' = -0.7*u''' - 5.1*u'' - 1.5*u' - 4*u", (1.0, 0.0, 0.0, 0.0), 20),
}


@pytest.mark.parametrize(("name", "given"), [("linear", False), ("linear", True), ("jerk", False), ("two modes", True)])
def test_an_equation_of_a_higher_order_is_found(tmp_path, monkeypatch, name, given):
    text, initial, evaluations = SYSTEMS[name]
    truth = System.read(text)
    t = np.linspace(0, 20, 300)
    u = solve(truth, initial, t).u
    noisy = u + 0.01 * u.std() * np.random.default_rng(0).standard_normal(len(t))
    monkeypatch.chdir(tmp_path)
    np.savetxt("data.csv", np.column_stack([t, noisy]), delimiter=",", header="t,u", comments="")
    known = ["--initial", ",".join(map(str, initial))] if given else []
    budget = ["--evaluations", str(evaluations)]
    assert main(["discover", "data.csv", "--order", str(len(initial)), *known, *budget, "--out", "run"]) == 0
    found = read_run("run").system
    assert found.skeleton.structure == truth.skeleton.structure
    assert relative_l2(u, solve(found, initial, t).u) < 0.02
