"""Records without a law: a naive forecast is as likely as any equation, and the verdict says so."""

import numpy as np
import pytest

from lgf import LatentGrammarFlow
from lgf.equation.skeleton import Skeleton
from lgf.equation.system import System
from lgf.search.verdict import Reason, Trust
from lgf.solver.solve import solve

T = np.linspace(0.0, 10.0, 100)
LAWLESS = {
    "white noise": lambda rng: rng.standard_normal(100),
    "random walk": lambda rng: np.cumsum(rng.standard_normal(100)),
    "walk with drift": lambda rng: np.cumsum(0.5 + rng.standard_normal(100)),
    "integrated walk": lambda rng: np.cumsum(np.cumsum(rng.standard_normal(100))),
    "random steps": lambda rng: np.repeat(rng.standard_normal(10), 10) + 0.05 * rng.standard_normal(100),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", LAWLESS)
def test_no_law_is_found_where_there_is_none(kind):
    model = LatentGrammarFlow(order=1, max_evaluations=30).fit(T, LAWLESS[kind](np.random.default_rng(1)))
    assert model.run_.verdict.trust is not Trust.CONFIRMED
    if kind != "random steps":  # steps may also be refuted
        assert model.run_.verdict.reason is Reason.NAIVE
        assert model.verdict_.startswith("No law found")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("text", ["u' = 0.9*u - 0.09*u^2", "u' = -0.5*u", "u' = 2 - 0.4*u"])
def test_a_law_is_likelier_than_any_naive_forecast(text):
    u = solve(System.read(text), (0.5,), T).u
    values = u + 0.05 * u.std() * np.random.default_rng(3).standard_normal(100)
    model = LatentGrammarFlow(order=1, max_evaluations=60).fit(T, values)
    assert model.run_.verdict.trust is Trust.CONFIRMED


@pytest.mark.parametrize("derivative", [2, 3, 4])
def test_measured_derivatives_of_any_order_are_compared(derivative):
    rng = np.random.default_rng(0)
    model = LatentGrammarFlow(order=4, max_evaluations=5)
    model.fit(T, np.cos(T) + 0.05 * rng.standard_normal(100), derivative=derivative)
    assert model.run_.verdict.reason in Reason


def test_an_enzyme_assay_is_answered_by_the_law_of_michaelis_and_menten():
    """The noise grows with the signal: under constant noise nests of quotients had been chosen."""
    t = np.linspace(0.0, 16.0, 25)
    tubes = [solve(System.read("u' = -12*u/(25 + u)"), (start,), t).u for start in (100.0, 60.0, 35.0, 20.0, 10.0)]
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        noisy = [u + np.hypot(0.015 * u, 0.2) * rng.standard_normal(25) for u in tubes]
        model = LatentGrammarFlow().fit([t] * 5, noisy)
        assert model.run_.best.skeleton.structure == Skeleton.read("u' = C*u/(C*u + 1)").structure
        assert model.run_.growth is not None


def test_the_doors_put_no_equation_on_top_where_there_is_no_law(tmp_path, monkeypatch, capsys):
    from lgf.cli import main

    monkeypatch.chdir(tmp_path)
    rows = "\n".join(f"{t},{u}" for t, u in zip(range(80), np.random.default_rng(0).standard_normal(80), strict=True))
    tmp_path.joinpath("noise.csv").write_text("t,u\n" + rows + "\n")
    assert main(["discover", "noise.csv", "--time", "t", "--value", "u", "--evaluations", "20", "--out", "run"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "No law found\n"
    assert "The best of the equations that were tried: u' =" in printed.err
    report = tmp_path.joinpath("run/report.html").read_text()
    assert '<p class="equation">No law found</p>' in report
