"""The notebooks of the examples run, what they show is there, and progress replaces its own output."""

import ast
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

from lgf import LatentGrammarFlow, LgfError, System
from lgf.data import Knowledge, Observation, Problem
from lgf.expression.frame import Variable
from lgf.grammar import load_grammar
from lgf.report.live import Progress, _in_notebook
from lgf.runs.journal import Tick
from lgf.runs.request import Request

NOTEBOOKS = sorted(Path(__file__).parents[1].joinpath("examples/notebooks").glob("*.ipynb"))
T = np.linspace(0, 4, 50)


def shown(value):
    """What a notebook would show of the value."""
    bundle = getattr(value, "_repr_mimebundle_", None)
    if bundle is not None:
        return "".join(bundle(include=None, exclude=None).values())
    for name in ("_repr_html_", "_repr_png_"):
        found = getattr(value, name)() if hasattr(value, name) else None
        if found is not None:
            return found
    return repr(value)


def run(cells):
    """The values that the last lines of the cells show."""
    names, values = {}, []
    for cell in cells:
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "cell", "exec"), names)  # noqa: S102
        if last is not None:
            values.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names))  # noqa: S307
    return values


@pytest.mark.filterwarnings("ignore::UserWarning")  # real records are noisy, and short
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_runs_and_shows_what_it_did(path, capsys):
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    values = [value for value in run(cells) if value is not None]
    assert all(len(shown(value)) > 0 for value in values)
    assert any(isinstance(value, Figure) for value in values)
    model = next(value for value in values if isinstance(value, LatentGrammarFlow))
    assert "<math>" in shown(model)
    assert any("text/html" in o.get("data", {}) for c in cells for o in c["outputs"])  # readable without running it


def test_there_are_three_notebooks():
    assert len(NOTEBOOKS) == 3


def test_equations_show_themselves():
    system = System.read("x' = 2*y; y' = -x")
    assert system._repr_html_().startswith("<math><mtable>")
    assert system._repr_latex_().startswith(r"$\displaystyle \begin{aligned}")
    model = LatentGrammarFlow()
    assert shown(model) == repr(model)


def test_figures_of_a_first_order_equation():
    model = LatentGrammarFlow(order=1, max_evaluations=20).fit(T, np.exp(-T))
    assert shown(model.run_).startswith("<math>")
    assert model.run_._repr_latex_().startswith("$")
    assert all(
        f._repr_png_().startswith(b"\x89PNG") for f in (model.plot(), model.plot_front(), model.plot_prediction_front())
    )
    with pytest.raises(LgfError, match="no phase portrait"):
        model.plot_phase()


def test_progress_replaces_its_own_output(monkeypatch):
    outputs = []
    display = SimpleNamespace(
        display=lambda first, display_id: SimpleNamespace(update=outputs.append), HTML=lambda text: text
    )
    problem = Problem((Observation(T, np.exp(-T), initial={Variable("u"): 1.0}),), Knowledge(order=1))
    monkeypatch.setattr("lgf.report.live._PAUSE", -1.0)
    progress = Progress(Request(problem, load_grammar("standard")))
    with _in_notebook(progress, display) as notify:
        notify(Tick(7, 1.0, None, False))
        assert "7 equations fitted" in outputs[-1]._repr_html_()
    assert outputs[-1] == ""
