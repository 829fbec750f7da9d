"""Records without a law: a naive forecast is as likely as any equation, and the verdict says so."""

import numpy as np
import pytest

from lgf import LatentGrammarFlow
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
