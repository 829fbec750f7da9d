"""Units from headers, options, DataFrames and quantities to the printed equation."""

import re

import numpy as np
import pandas as pd
import pint
import pytest

from lgf import LatentGrammarFlow, LgfError
from lgf.cli import main
from lgf.data import Knowledge, Problem, read_observations
from lgf.data.column_units import header_unit
from lgf.expression.frame import Variable
from lgf.grammar import load_grammar
from lgf.language.language import make_language
from lgf.language.system_language import make_system_language
from lgf.report.page import report
from lgf.runs.folder import read_run

UNITS = pint.get_application_registry()
T = np.linspace(0.0, 4.0, 60)
U = 0.3 * np.exp(-0.5 * T)


@pytest.fixture(scope="module")
def fitted():
    model = LatentGrammarFlow(order=1, max_evaluations=40)
    return model.fit(T * UNITS.s, U * 1000 * UNITS.mm, initial={"u": 0.3 * UNITS.m})


def test_headers_say_units():
    table = {"time (min)": T, "height [cm]": U, "F [N]": T, "OD (600nm)": U, "temp (C)": U, "acc [g]": U}
    reading = read_observations(table, value=["height [cm]", "temp (C)"], forcing="F [N]")
    assert reading.units == {"t": "min", "height": "cm", "temp": "degC", "F": "N"}
    assert "Units by the headers: t in min, height in cm, temp in °C, F in N." in reading.notes
    assert read_observations(table, value="acc [g]", units={"t": "s"}).units["u''"] == "standard_gravity"
    assert read_observations(table, value="height [cm]", units={"height": "m"}).units["u"] == "m"
    assert [header_unit(h) for h in ("u [a.u.]", "u (raw)", "u []", "hare [1000]", "u")] == [None] * 5


def test_quantities_go_in_and_come_out(fitted):
    assert re.fullmatch(r"u' = -0\.50{8,10} \[1/s\] u", str(fitted.equation_))  # as many digits as are right
    assert fitted.units_ == {"t": "s", "u": "mm", "u'": "mm/s"}
    assert fitted.constants_["unit"].tolist() == ["1/s"]
    assert fitted.predict(T)[0] == pytest.approx(300.0)
    late = fitted.predict([0.05] * UNITS.min, quantities=True)
    assert late.to("m").magnitude == pytest.approx([0.3 * np.exp(-1.5)], rel=1e-4)
    band = fitted.predict([1.0, 2.0], interval=0.9, quantities=True)
    assert np.all(band.lower.magnitude <= band.upper.magnitude)
    columns = fitted.simulate([0, 1, 2] * UNITS.s, initial=2 * UNITS.cm, quantities=True)
    assert columns["u"][0].to("mm").magnitude == pytest.approx(20.0)
    assert columns["u'"].units == UNITS.mm / UNITS.s
    assert fitted.simulate([0, 1], initial={"u": 2 * UNITS.cm}).u[0] == pytest.approx(20.0)
    drawn = fitted.simulate([0, 1], initial=2 * UNITS.cm, interval=0.9, quantities=True)
    assert drawn["lower u"][1] < drawn["u"][1] < drawn["upper u"][1]
    with pytest.raises(LgfError, match="cannot be converted to mm"):
        fitted.simulate([0, 1], initial={"u": 2 * UNITS.kg})


def test_run_folders_and_reports_know_units(fitted, tmp_path):
    fitted.save(tmp_path)
    again = LatentGrammarFlow.load(tmp_path)
    assert str(again.equation_) == str(fitted.equation_)
    assert again.knowledge.units == {"t": "second", "u": "millimeter"}
    page = report(read_run(tmp_path), dict.fromkeys(("trajectory", "front", "history"), b""))
    assert "<th>unit</th>" in page
    assert "Units: t in s, u in mm; terms that contradict them were not proposed" in page


def test_tables_of_columns_with_units():
    frame = pd.DataFrame({"x [m]": np.cos(T), "v [m/s]": -np.sin(T)})
    model = LatentGrammarFlow(order=2, max_evaluations=20, units={"t": "s"}).fit(T, frame, initial={"u": 1.0})
    assert model.units_ == {"t": "s", "u": "m", "u'": "m/s", "u''": "m/s^2"}
    with pytest.raises(LgfError, match=r"u' is in km/h, but u in m and t in s; convert the values of u' to m/s"):
        LatentGrammarFlow(units={"t": "s"}).fit(T, frame.rename(columns={"v [m/s]": "v [km/h]"}))


def test_only_possible_terms_are_proposed():
    observations = read_observations({"t": T, "u": U + 1.0}).observations
    grammar = load_grammar("standard")
    plain, with_units = (
        make_language(grammar, Problem(observations, Knowledge(order=1, units=units)), frame, ranges)
        for frame in Problem(observations, Knowledge(order=1)).frames
        for ranges in [{"t": (0.1, 4.0), **dict.fromkeys(frame.columns, (0.1, 1.0))}]
        for units in (None, {"t": "s", "u": "m"})
    )
    dropped = {" ".join(grammar.rules[i].body) for i in np.flatnonzero(plain.allowed & ~with_units.allowed)}
    assert any("sin(t)" in body.replace(" ", "") for body in dropped)
    assert not any("C*t" in body.replace(" ", "") for body in dropped)
    pair = read_observations({"t": T, "x": U, "y": U}).observations
    problem = Problem(pair, Knowledge(units={"x": "m", "y": "kg", "t": "s"}))
    language = make_system_language(load_grammar("systems"), problem, problem.frames[0])
    functions = [t.expression for t in language.terms(0) if t.expression.head == "sin"]
    assert functions
    assert all(any(n.head == "constant" for n in e.nodes()) for e in functions)


def test_the_command_line_prints_units(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = "\n".join(f"{t:.6f},{u:.8f}" for t, u in zip(T, U, strict=True))
    (tmp_path / "data.csv").write_text(f"t (s),level [m]\n{rows}\n")
    assert main(["discover", "data.csv", "--order", "1", "--evaluations", "30", "--unit", "level=cm"]) == 0
    printed = re.fullmatch(r"u' = (-\d\.\d{8,10}) \[1/s\] u\n", capsys.readouterr().out)
    assert printed
    assert float(printed[1]) == pytest.approx(-0.5, abs=3e-8)  # times are rounded to 1e-6
    assert "[1/s] u" in (tmp_path / "runs/data/front.csv").read_text()
    assert r"\mathrm{s^{-1}}" in (tmp_path / "runs/data/equation.tex").read_text()
    assert read_run(tmp_path / "runs/data").request.problem.knowledge.units == {"t": "s", "u": "cm"}
    assert main(["simulate", "runs/data", "--initial", "u=3 mm", "--t1", "0.1 min", "--n", "2", "--units"]) == 0
    header, first, last = capsys.readouterr().out.splitlines()
    assert header == "t [s],u [cm],u' [cm/s]"
    assert [float(x) for x in first.split(",")[:2]] == [0.0, pytest.approx(0.3)]
    assert [float(x) for x in last.split(",")[:2]] == [6.0, pytest.approx(0.3 * np.exp(-3.0), rel=1e-3)]
    assert main(["discover", "data.csv", "--evaluations", "8", "--initial", "u=20 mm", "--out", "given"]) == 0
    (observation,) = read_run(tmp_path / "given").request.problem.observations
    assert observation.initial == {Variable("u"): pytest.approx(0.02)}  # the header says m
    assert main(["discover", "data.csv", "--initial", "20 mm, 3 kg"]) == 2
    assert "cannot be converted to m" in capsys.readouterr().err
    for value, words in (
        ("u=3 kg", "cannot be converted to cm"),
        ("u=3 cells", "'cells' is not known"),
        ("u=x", "'x'"),
    ):
        assert main(["simulate", "runs/data", "--initial", value]) == 2
        assert words in capsys.readouterr().err
