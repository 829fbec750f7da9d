import csv
import errno
import html
import io
import json
import os
import re
import runpy
import signal
from pathlib import Path

import numpy as np
import pytest

import lgf
from lgf.cli import main
from lgf.runs.folder import write_run
from lgf.runs.journal import Journal

FILES = runpy.run_path(str(Path(__file__).parent / "data" / "test_bad_input.py"))["FILES"]
QUICK = ["--evaluations", "25"]
T = np.linspace(0.0, 4.0, 50)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{t:.4f},{2 * np.exp(-t / 2):.6f},{np.sin(t):.6f},{i % 2}\n" for i, t in enumerate(T))
    Path("decay.csv").write_text("t,u,other,run\n" + rows)
    Path("own.grammar").write_text("template: explicit\nmax_length: 8\nS -> C*t | C*t*u\n")


def tree():
    return {str(p): p.read_bytes() if p.is_file() else b"" for p in Path().rglob("*")}


def test_the_package_runs_as_a_module(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["lgf", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("lgf", run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"lgf {lgf.__version__}\n"


def test_help_and_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"lgf {lgf.__version__}\n"
    for arguments in ([], ["--help"], ["-h"], ["discover", "--help"], ["models", "-h"]):
        assert main(arguments) == 0
        assert "Usage: lgf" in capsys.readouterr().out


def test_discover_prints_the_equation_alone_and_writes_a_folder(capsys):
    assert main(["discover", "decay.csv", "--time", "t", "--value", "u", "--order", "1", *QUICK, "--out", "run"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith(("u' = -0.5", "u' = -0.49"))
    assert told.out.count("\n") == 1
    assert "run/report.html" in told.err
    assert "<p>Read from decay.csv.</p>" in Path("run/report.html").read_text()
    assert "Time is column" not in Path("run/report.html").read_text()  # it was named
    written = {p.name for p in Path("run").iterdir()}
    assert written == {
        "run.json", "candidates.jsonl", "front.csv", "equation.json", "equation.tex", "equation.py",
        "trajectory.png", "front.png", "history.png", "report.html", "progress.json",
    }  # fmt: skip
    front = list(csv.DictReader(io.StringIO(Path("run/front.csv").read_text())))
    assert [row["equation"] for row in front if row["chosen"] == "True"] == [told.out.strip()]
    namespace = {}
    exec(Path("run/equation.py").read_text(), namespace)  # noqa: S102
    assert namespace["rhs"](0.0, [2.0])[0] == pytest.approx(-1.0, abs=0.01)


def test_names_are_shown_as_they_are_written(capsys, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "nonsense")  # nobody looks at a window
    rows = Path("decay.csv").read_text().splitlines()[1:]
    table = [row.rsplit(",", 1)[0] + "," + ("[/$^$] 溶液" if row[-1] == "1" else "b") for row in rows]
    Path("odd.csv").write_text("\n".join(["time [h],OD :+1: [/bold],other,well", *table]) + "\n", encoding="utf-8")
    order = ["odd.csv", "--value", "OD :+1: [/bold]", "--experiment", "well"]
    assert main(["check", *order]) == 0
    assert main(["discover", *order, "--order", "1", *QUICK, "--out", "run"]) == 0
    told = capsys.readouterr()
    for said in (told.out, told.err):
        assert "Time is column 'time [h]' (guessed)." in said
    assert "[/$^$] 溶液: 25 samples of u" in told.out
    assert Path("run/trajectory.png").is_file()


def test_letters_that_the_locale_lacks(monkeypatch):
    rows = "".join(f"{t:.4f};{np.exp(-t):.6f}\n" for t in T).replace(".", ",")
    Path("comma.csv").write_text("Zeit;長さ\n" + rows, encoding="utf-8")
    plain = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr("sys.stdout", plain)
    assert main(["check", "comma.csv"]) == 0
    plain.flush()
    assert b"column '\\u9577\\u3055'" in plain.buffer.getvalue()
    assert b"50 samples of u from t = 0 to 4" in plain.buffer.getvalue()


def test_discover_as_json_and_resume(capsys):
    order = ["discover", "decay.csv", "--value", "u", "--order", "1", "--json"]
    assert main([*order, "--evaluations", "12", "--out", "short"]) == 0
    short = json.loads(capsys.readouterr().out)
    assert main(["discover", "--resume", "short", "--evaluations", "40", "--json"]) == 0
    resumed = json.loads(capsys.readouterr().out)
    assert main([*order, "--evaluations", "40", "--out", "long"]) == 0
    long = json.loads(capsys.readouterr().out)
    assert short["evaluations"] == 12
    assert long["evaluations"] > 12
    for facts in (resumed, long):
        del facts["seconds"], facts["folder"]
    assert resumed == long


def test_a_record_by_name_goes_to_a_new_folder(capsys):
    for folder in ("runs/duffing", "runs/duffing-2"):
        assert main(["discover", "duffing", "--evaluations", "60", "--jobs", "2"]) == 0
        told = capsys.readouterr()
        assert told.out.strip().endswith("= cos(2 t)")
        assert f"{folder}/report.html" in told.err


@pytest.mark.parametrize(("file", "kept"), [("run.json", False), ("equation.json", True), ("report.html", True)])
def test_only_a_run_that_can_be_resumed_is_said_to_be(file, kept, capsys, monkeypatch):
    real = os.replace

    def full(source, target):
        if Path(target).name == file:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        assert main(["discover", "decay.csv", "--value", "u", "--order", "1", *QUICK, "--out", "run"]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert f"run/{file} cannot be written (No space left on device); make room" in said
    assert ("resume" in said) is kept
    assert main(["discover", "--resume", "run"]) == (0 if kept else 2)


def test_ctrl_c_gives_and_saves_the_best_so_far(capsys, monkeypatch):
    real, calls = Journal.__call__, []
    before = signal.getsignal(signal.SIGINT)  # a shell starts its background jobs with it ignored

    def interrupted(self, evaluator, proposals):
        calls.append(len(proposals))
        if len(calls) == 3:  # no own equation, the first iteration, then the user loses patience
            signal.raise_signal(signal.SIGINT)
        return real(self, evaluator, proposals)

    order = ["discover", "decay.csv", "--value", "u", "--order", "1"]
    monkeypatch.setattr(Journal, "__call__", interrupted)
    assert main([*order, "--evaluations", "400", "--out", "run"]) == 130
    told = capsys.readouterr()
    assert told.out.startswith("u' = ")
    assert "--resume run" in told.err
    answer = json.loads(Path("run/equation.json").read_text())
    assert answer["interrupted"] is True
    assert answer["evaluations"] == calls[1] < 400
    monkeypatch.undo()
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_before_anything_was_fitted(capsys, monkeypatch):
    real = Journal.__call__

    def interrupted(self, evaluator, proposals):
        signal.raise_signal(signal.SIGINT)
        return real(self, evaluator, proposals)

    monkeypatch.setattr(Journal, "__call__", interrupted)
    assert main(["discover", "decay.csv", "--value", "u", *QUICK, "--out", "run"]) == 130
    told = capsys.readouterr()
    assert "Traceback" not in told.err
    assert "--resume run" in told.err
    assert Path("run/run.json").is_file()


def test_check(capsys):
    assert main(["check", "duffing"]) == 0
    assert "301 samples of u''" in capsys.readouterr().out
    assert main(["check", "decay.csv", "--value", "u", "--experiment", "run"]) == 0
    assert "25 samples" in capsys.readouterr().out
    rows = [f"{t},{p},{w},{w * np.exp(-t / 4)}\n" for p in "AB" for w in (1, 2) for t in range(9)]
    Path("plates.csv").write_text("t,plate,well,od\n" + "".join(rows))
    assert main(["check", "plates.csv", "--experiment", "plate", "--experiment", "well"]) == 0
    assert "B/1: 9 samples of u from t = 0 to 8." in capsys.readouterr().out
    assert main(["check", "growth"]) == 0
    assert "The table holds 12 experiments." in capsys.readouterr().out


def test_what_was_guessed_is_in_the_report_also_after_a_resumption():
    assert main(["discover", "decay.csv", "--value", "u", "--order", "1", *QUICK, "--out", "run"]) == 0
    assert "Time is column 't' (guessed)." in html.unescape(Path("run/report.html").read_text())
    Path("run/report.html").unlink()
    assert main(["discover", "--resume", "run"]) == 0
    assert "Time is column 't' (guessed)." in html.unescape(Path("run/report.html").read_text())


def test_an_error_of_the_check_is_said_once(capsys):
    Path("flat.csv").write_text("t,u\n" + "".join(f"{k},1\n" for k in range(9)))
    assert main(["check", "flat.csv"]) == 2
    told = capsys.readouterr()
    assert "constant" not in told.out
    assert "constant" in told.err


def test_simulate_and_plot(capsys, duffing):
    write_run(duffing, "run")
    assert main(["simulate", "run", "--n", "11"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert list(rows[0]) == ["t", "u", "u'", "u''", "F"]
    times = np.linspace(0, 30, 11)
    np.testing.assert_allclose([float(r["u"]) for r in rows], duffing.trajectory(0, times).u, rtol=1e-6, atol=1e-8)
    order = ["simulate", "run", "--t0", "0", "--t1", "5", "--n", "6", "--initial", "1,0", "--forcing", "0"]
    assert main([*order, "--out", "table.csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(Path("table.csv").read_text())))
    free = duffing.simulate(np.linspace(0, 5, 6), (1.0, 0.0), "0")
    np.testing.assert_allclose([float(r["u'"]) for r in rows], free.du, rtol=1e-6, atol=1e-8)
    assert main([*order, "--interval", "0.9", "--out", "table.csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(Path("table.csv").read_text())))
    assert all(float(r["lower u''"]) < float(r["u''"]) < float(r["upper u''"]) for r in rows)
    assert capsys.readouterr().out == ""
    assert main(["plot", "run"]) == 0
    assert Path("run/report.html").is_file()


def test_the_formula_wins_over_a_column_that_looks_like_the_input(capsys):
    text = Path("decay.csv").read_text().replace("other", "F", 1)
    Path("decay.csv").write_text(text)
    for arguments in ([], ["--forcing", "sin(3*t)"]):
        assert main(["discover", "decay.csv", "--value", "u", "--order", "1", "--evaluations", "5", *arguments]) == 0
    report = Path("runs/decay-2/report.html").read_text()
    assert "driven by F = sin(3*t)" in report
    assert "samples from" not in report
    assert "50 samples from" in Path("runs/decay/report.html").read_text()


def test_models_show_systems(capsys):
    assert main(["models", "show", "systems", "x' = C*x - C*x*y; y' = 2*x*y - y"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"systems says this in 1[0-9]\.\d bits:\n +\d\.\d   x' = C\*x \+ C\*x\*y\n +\d\.\d   y' = ", out)
    assert main(["models", "show", "systems", "x' = 2*x; y' = V*sin(x*y)", "--input", "V"]) == 0
    out = capsys.readouterr().out
    assert "systems cannot say this:" in out
    assert "-   y' = C*V*sin(x*y), but it has no V*sin(x*y)" in out
    assert main(["models", "show", "systems", "--terms", "x'', y', F"]) == 0
    out = capsys.readouterr().out
    assert "x'' = the cheapest 40 of" in out
    assert {"F", "x'", "x*y"} <= {line.split()[-1] for line in out.splitlines()}


def test_sample_systems(capsys):
    assert main(["sample", "systems", "-n", "3", "--rows", "x'', y', V", "--seed", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:4] for line in lines] == ["x'' ", "y' =", ""] * 3
    assert main(["sample", "systems", "-n", "3", "--rows", "x'', y', V", "--seed", "2"]) == 0
    assert capsys.readouterr().out.splitlines() == lines
    assert main(["models", "show", "systems", "; ".join(lines[:2]), "--input", "V"]) == 0
    assert "systems says this in" in capsys.readouterr().out


def test_models_sample_and_records(capsys):
    assert main(["models", "--json"]) == 0
    assert {"standard", "b1", "b2", "b3"} <= {m["name"] for m in json.loads(capsys.readouterr().out)}
    assert main(["models"]) == 0
    assert "standard" in capsys.readouterr().out
    assert main(["models", "show", "b1"]) == 0
    assert "template" in capsys.readouterr().out
    assert main(["models", "show", "standard", "u'' = -u - 3*u^3"]) == 0
    assert "bits" in capsys.readouterr().out
    assert main(["models", "show", "standard", "u'' = C*u - u^3"]) == 0
    assert "standard says u'' = C*u + C*u^3 in" in capsys.readouterr().out
    assert main(["models", "show", "b1", "u' = tanh(u)"]) == 0
    assert "cannot say" in capsys.readouterr().out
    assert main(["sample", "standard", "-n", "4", "--order", "2", "--seed", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert all(line.startswith("u'' = ") for line in lines)
    assert main(["sample", "standard", "-n", "4", "--order", "2", "--seed", "1"]) == 0
    assert capsys.readouterr().out.splitlines() == lines
    assert main(["records"]) == 0
    assert "duffing" in capsys.readouterr().out


U = ["discover", "decay.csv", "--value", "u", *QUICK]
ORDERS = {
    "no such command": (["dicsover"], "No such command"),
    "no such option": ([*U, "--ordre", "2"], "No such option"),
    "nothing to discover from": (["discover"], "nothing to discover from"),
    "no such file": (["discover", "none.csv"], "no file"),
    "a folder": (["discover", "."], "directory"),
    "no such time column": ([*U, "--time", "zeit"], "no time column 'zeit'"),
    "no such value column": (["discover", "decay.csv", "--value", "x"], "no value column 'x'"),
    "no such forcing column": ([*U, "--forcing-column", "G"], "no forcing column 'G'"),
    "no such experiment column": ([*U, "--experiment", "E"], "no experiment column 'E'"),
    "no such weight column": ([*U, "--weight", "w"], "no weight column 'w'"),
    "one column, two roles": ([*U, "--time", "u"], "named twice"),
    "experiments named twice": ([*U, "--experiment", "run", "--experiment", "run"], "'run' is named twice"),
    "one of two columns of experiments": ([*U, "--experiment", "run", "--experiment", "plate"], "column 'plate'"),
    "two derivatives, one column": ([*U, "--derivative", "0", "--derivative", "1"], "name one for each"),
    "derivative 9": ([*U, "--derivative", "9"], "measured derivative is 9"),
    "derivative as text": ([*U, "--derivative", "two"], "--derivative"),
    "order 0": ([*U, "--order", "0"], "order is 0"),
    "order as text": ([*U, "--order", "second"], "--order"),
    "order below what was measured": ([*U, "--derivative", "2", "--order", "1"], "at least 2"),
    "formula unreadable": ([*U, "--forcing", "cos("], "cannot be read"),
    "formula in u": ([*U, "--forcing", "u"], "depends on t only"),
    "formula of code": ([*U, "--forcing", "__import__('os').system('touch x')"], "cannot be read"),
    "formula and column": ([*U, "--forcing", "t", "--forcing-column", "other"], "both given"),
    "forcing with a pole": ([*U, "--forcing", "1/t"], "not finite"),
    "initial as text": ([*U, "--initial", "zero"], "numbers separated by commas"),
    "initial empty": ([*U, "--initial", ""], "numbers separated by commas"),
    "initial beyond the order": ([*U, "--order", "1", "--initial", "1,2"], "takes 1"),
    "initial not finite": ([*U, "--initial", "nan"], "not finite"),
    "two initial states, one experiment": ([*U, "--initial", "1;2"], "2 initial states but 1 experiments"),
    "unknown function": ([*U, "--functions", "sinus"], "'sinus' is not known"),
    "bound without =": ([*U, "--bounds", "u"], "no '='"),
    "bound that is no sign": ([*U, "--bounds", "u=big"], "positive"),
    "bound the wrong way": ([*U, "--bounds", "u=2:1"], "low one"),
    "bound of nonsense": ([*U, "--bounds", "u^^3=positive"], "cannot be read"),
    "required nonsense": ([*U, "--require", "u +* 2"], "cannot be read"),
    "start unreadable": ([*U, "--start", "u' = ("], "cannot be read"),
    "start of another order": ([*U, "--order", "1", "--start", "u'' = u"], "of order 2"),
    "start with F": ([*U, "--start", "u' = F"], "none is given"),
    "start without derivative": ([*U, "--start", "u = 1"], "of order 0"),
    "no such model": ([*U, "--model", "magic"], "no grammar or file"),
    "a model that is no grammar": ([*U, "--model", "decay.csv"], "line 1"),
    "no such preset": ([*U, "--preset", "magic"], "no preset"),
    "no time": ([*U, "--seconds", "0"], "positive number"),
    "time without end": ([*U, "--seconds", "inf"], "positive number"),
    "no evaluations": ([*U, "--evaluations", "0"], "at least 1"),
    "negative seed": ([*U, "--seed", "-1"], "--seed is -1"),
    "no jobs": ([*U, "--jobs", "0"], "--jobs is 0"),
    "a file in place of a folder": ([*U, "--out", "decay.csv"], "decay.csv is not a folder"),
    "resume nothing": (["discover", "--resume", "none"], "no run"),
    "resume with data": ([*U, "--resume", "none"], "drop DATA"),
    "unforced record with forcing": (["discover", "impact", "--forcing", "t"], "unforced"),
    "a grammar that needs an input": ([*U, "--model", "b3"], "none is given"),
    "everything forbidden": ([*U, "--model", "own.grammar", "--autonomous"], "remains"),
    "simulate nothing": (["simulate", "none"], "no run"),
    "plot a file": (["plot", "decay.csv"], "no run"),
    "check nothing": (["check", "none.csv"], "no file"),
    "sample from nothing": (["sample", "magic"], "no grammar or file"),
    "sample none": (["sample", "b1", "-n", "0"], "-n is 0"),
    "sample of order 9": (["sample", "b1", "--order", "9"], "--order is 9"),
    "show nothing": (["models", "show", "magic"], "no grammar or file"),
    "show the terms of no row": (["models", "show", "systems", "--terms", "x"], "name the derivatives"),
    "show nonsense": (["models", "show", "b1", "u' = ("], "cannot be read"),
    "show no equation": (["models", "show", "b1", "u = 1"], "no differential equation"),
    "train nothing": (["train", "none.toml"], "none.toml"),
    "train a table": (["train", "decay.csv"], "not TOML"),
}


def complaint(capsys, arguments):
    before = tree()
    assert main(arguments) == 2
    told = capsys.readouterr()
    said = [line for line in told.err.splitlines() if line.startswith("lgf: ")]
    assert len(said) == 1
    assert told.err.splitlines()[-1] == said[0]
    assert said[0].endswith((".", "?"))
    assert len(said[0]) < 500
    assert "Traceback" not in told.err + told.out
    assert tree() == before
    return said[0]


@pytest.mark.parametrize("name", ORDERS)
def test_a_mistake_in_the_order(name, capsys):
    arguments, says = ORDERS[name]
    assert says in complaint(capsys, arguments)


@pytest.mark.parametrize("name", FILES)
def test_a_mistake_in_the_file(name, capsys):
    content, says = FILES[name]
    Path("record.csv").write_bytes(content)
    columns = ["--time", "t"] if name == "two columns of one name" else []
    assert says in complaint(capsys, ["discover", "record.csv", *columns])


def test_a_mistake_in_the_data(capsys):
    Path("flat.csv").write_text("t,u\n" + "".join(f"{i},1\n" for i in range(30)))
    assert "constant" in complaint(capsys, ["discover", "flat.csv"])
    assert "constant" in complaint(capsys, ["check", "flat.csv"])


def test_a_mistake_about_a_run(capsys, duffing):
    write_run(duffing, "run")
    for arguments, says in [
        ([*U, "--out", "run"], "holds a run already"),
        (["simulate", "run", "--n", "1"], "--n is 1"),
        (["simulate", "run", "--interval", "90"], "between 0 and 1"),
        (["simulate", "run", "--t1", "-5"], "later than the first"),
        (["simulate", "run", "--t0", "-5"], "before the record"),
        (["simulate", "run", "--initial", "1"], "initial state has 1 values"),
        (["simulate", "run", "--initial", "1,0;2,0"], "a single one"),
        (["simulate", "run", "--initial", "a"], "neither a number nor a number with a unit"),
        (["simulate", "run", "--forcing", "0"], "needs an initial state"),
        (["simulate", "run", "--initial", "1,0", "--forcing", "u"], "depends on t only"),
        (["simulate", "run", "--out", "none/table.csv"], "cannot be written"),
    ]:
        assert says in complaint(capsys, arguments)
    Path("run/equation.json").write_text("{}")
    assert "damaged" in complaint(capsys, ["plot", "run"])
