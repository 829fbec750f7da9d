"""Inputs of a simulation from a file: the right columns, joined as in the discovery, and nothing outside the file."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.given_equations import fitted

from lgf import LatentGrammarFlow, System
from lgf.cli import main
from lgf.errors import LgfError
from lgf.expression.frame import Frame
from lgf.runs.input_table import read_inputs
from lgf.solver.forcing import Forcing
from lgf.solver.solve import solve

T = np.linspace(0.0, 20.0, 201)
NEW_T = np.linspace(0.0, 6.0, 25)
STAIRS = np.round(4 * np.sin(NEW_T)) / 2  # changes at most samples, so that by itself it looks like a smooth signal


def after_steps(levels, dt):
    """The exact solution of u' = 3 F - 2 u from 0 with every level held for dt."""
    u = [0.0]
    for level in levels[:-1]:
        u.append(1.5 * level + (u[-1] - 1.5 * level) * np.exp(-2 * dt))
    return np.array(u)


@pytest.fixture(scope="module")
def motor():
    """A motor driven by a voltage of levels, each held for ten samples."""
    rng = np.random.default_rng(3)
    levels = np.repeat(rng.integers(0, 4, 21) * 1.0, 10)[:201]
    u = after_steps(levels, 0.1) + 0.01 * rng.standard_normal(201)
    return fitted(["u' = C*u + C*F"], T, u, initial=0.0, forcing=levels)


@pytest.fixture(scope="module")
def two():
    """A state driven by two smooth inputs, the second of which is a formula."""
    rng = np.random.default_rng(4)
    inputs = {"a": Forcing.from_samples(T, np.sin(0.7 * T) + np.sin(1.9 * T)), "b": Forcing.from_formula("cos(t)")}
    truth = System.read("u' = 2*a + b - u", frame=Frame((("u", 1),), ("a", "b")))
    u = solve(truth, (1.0,), T, inputs).u + 0.01 * rng.standard_normal(201)
    return fitted(["u' = C*u + C*a + C*b"], T, u, initial=1.0, forcing=inputs)


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(header, *columns, name="new.csv"):
        rows = "".join(
            ",".join(f"{x:.9g}" if isinstance(x, float) else x for x in row) + "\n"
            for row in zip(*columns, strict=True)
        )
        Path(name).write_text(header + "\n" + rows)
        return name

    return write


def simulated(capsys, *arguments):
    assert main(["simulate", "run", *arguments]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


def test_a_held_input_is_held_in_a_file_that_looks_smooth(motor, file, capsys):
    assert not Forcing.from_samples(NEW_T, STAIRS).has_steps
    motor.save("run")
    file("time,voltage", NEW_T, STAIRS)
    found = simulated(capsys, "--forcing-file", "new.csv", "--initial", "0")
    np.testing.assert_allclose(found["t"], NEW_T)  # its own times
    np.testing.assert_allclose(found["u"], after_steps(STAIRS, 0.25), atol=0.02)
    np.testing.assert_allclose(found["F"][:-1], STAIRS[:-1], atol=1e-8)
    smooth = motor.run_.simulate(NEW_T, (0.0,), Forcing.from_samples(NEW_T, STAIRS)).u
    assert np.max(np.abs(smooth - found["u"])) > 0.2  # the test would notice
    np.testing.assert_allclose(motor.simulate(NEW_T, 0.0, STAIRS).u, found["u"], rtol=1e-6, atol=1e-8)
    some = simulated(
        capsys, "--forcing-file", "new.csv", "--initial", "0", "--t1", "3", "--n", "4", "--interval", "0.9"
    )
    np.testing.assert_allclose(some["u"], found["u"][[0, 4, 8, 12]], rtol=1e-4, atol=1e-6)
    assert np.all(some["lower u"] < some["upper u"])


def test_a_smooth_input_is_joined_smoothly(two, file, capsys):
    two.save("run")
    file("t,a", NEW_T, np.cos(0.5 * NEW_T))
    found = simulated(capsys, "--forcing-file", "new.csv", "--initial", "1")
    exact = two.simulate(NEW_T, 1.0, {"a": "cos(0.5*t)"}).u
    np.testing.assert_allclose(found["u"], exact, atol=1e-3)
    held = Forcing.from_samples(NEW_T, np.cos(0.5 * NEW_T), held=True)
    assert np.max(np.abs(two.simulate(NEW_T, 1.0, {"a": held}).u - exact)) > 0.03  # the test would notice
    step = np.where(NEW_T > 3.0, 1.0, 0.0)
    assert read_inputs(two.run_, {"t": NEW_T, "a": step})["a"].has_steps  # as anywhere


def test_what_counts_as_held_in_the_data(motor):
    (record,) = motor.run_.request.problem.observations
    levels = record.inputs["F"]
    waves, rest = Forcing.from_samples(T, np.sin(T)), Forcing.from_samples(T, 0 * T)

    def held(*inputs):
        observations = tuple(replace(record, inputs={"F": forcing}) for forcing in inputs)
        return set(replace(motor.run_.request.problem, observations=observations).held_inputs)

    assert held(levels) == held(levels, rest) == {"F"}
    assert held(waves) == held(rest) == held(levels, waves) == held(Forcing.from_formula("t")) == set()


def test_columns_belong_to_inputs_by_name_or_because_they_are_the_only_ones(motor, two):
    one, both = motor.run_, two.run_
    new = {"index": np.arange(25.0), "t": NEW_T, "f": STAIRS, "u": NEW_T**2}
    np.testing.assert_array_equal(read_inputs(one, new)["F"].samples[:, 1], STAIRS)
    del new["u"], new["f"]
    assert set(read_inputs(one, new | {"whatever": STAIRS})) == {"F"}
    full = new | {"volts": STAIRS, "amps": NEW_T}
    np.testing.assert_array_equal(read_inputs(one, full, columns=["volts"])["F"].samples[:, 1], STAIRS)
    assert set(read_inputs(both, {"t": NEW_T, "B [V]": STAIRS, "a": NEW_T, "u": NEW_T})) == {"a", "b"}
    clock = {"when": [f"0:00:{k:02d}" for k in range(25)], "F": STAIRS}
    with pytest.raises(LgfError, match="are dates or clocks, but those of the data were numbers in no unit"):
        read_inputs(one, clock, time="when")
    in_minutes = replace(one.request.problem.knowledge, units={"t": "min"})
    asked = replace(one.request, problem=replace(one.request.problem, knowledge=in_minutes))
    samples = read_inputs(replace(one, request=asked), clock, time="when")["F"].samples
    np.testing.assert_allclose(samples[:, 0], np.arange(25.0) / 60)


def test_units_in_the_header_are_converted(motor):
    known = replace(motor.run_.request.problem.knowledge, units={"t": "s", "F": "V"})
    request = replace(motor.run_.request, problem=replace(motor.run_.request.problem, knowledge=known))
    samples = read_inputs(replace(motor.run_, request=request), {"t [ms]": 1e3 * NEW_T, "U (mV)": 1e3 * STAIRS})[
        "F"
    ].samples
    np.testing.assert_allclose(samples, np.column_stack([NEW_T, STAIRS]))
    with pytest.raises(LgfError, match="F is in 'kilogram', which cannot be converted to V"):
        read_inputs(replace(motor.run_, request=request), {"t": NEW_T, "U [kg]": STAIRS})
    assert read_inputs(motor.run_, {"t [ms]": NEW_T, "U (mV)": STAIRS})["F"].samples[-1, 0] == 6.0  # no unit is known


def test_mistakes_about_the_file_are_told_in_a_sentence(motor, two, file, capsys):
    motor.save("run")
    two.save("both")
    file("t,volts,amps", NEW_T, STAIRS, NEW_T)
    file("t,volts", NEW_T[::-1], STAIRS, name="back.csv")
    file("t,volts", NEW_T, ["on?"] * 25, name="words.csv")
    new = ["--initial", "0", "--forcing-file", "new.csv"]
    volts = [*new, "--forcing-column", "volts"]
    asked = (
        "new.csv gives F by 25 samples from t = 0 to 6, but the solution is asked for from t = {} to {}; ask for times"
    )
    for run, arguments, words in [
        ("run", new, "called F as in the equation; name the one that is F (--forcing-column): 'volts', 'amps'."),
        (
            "both",
            new,
            "no column of new.csv is called a or b as in the equation; rename those that are: 'volts', 'amps'.",
        ),
        ("both", volts, "'volts' of new.csv is named as an input, but the inputs of the run are a, b; rename it in"),
        (
            "run",
            [*volts, "--forcing-column", "amps"],
            "2 columns of new.csv are named, but the inputs of the run are F;",
        ),
        (
            "run",
            [*new, "--forcing-column", "watts"],
            "new.csv has no forcing column 'watts'; its columns are 't', 'volts'",
        ),
        ("run", [*volts, "--t1", "7"], asked.format(0, 7)),
        ("run", [*volts, "--t0", "-1"], asked.format(-1, 6)),
        ("run", [*volts, "--forcing", "1"], "the input 'F' is given by a formula and by new.csv; keep one of the two."),
        ("run", volts[2:], "a new forcing needs an initial state; give it by --initial."),
        ("run", [*new[:2], *volts[4:]], "--forcing-column and --time say what is in a file of inputs; name it by"),
        ("run", [*new[:3], "none.csv"], "there is no file none.csv; check the name and the folder."),
        ("run", [*new[:3], "back.csv"], "back.csv: the times of the forcing samples do not increase; sort them"),
        (
            "run",
            [*new[:3], "words.csv", "--forcing-column", "volts"],
            "'volts' of words.csv holds 'on?' (line 2), which",
        ),
    ]:
        assert main(["simulate", run, *arguments]) == 2
        told = capsys.readouterr()
        (line,) = [line for line in told.err.splitlines() if line.startswith("lgf: ")]
        assert words in line
        assert line.endswith(".")
        assert told.out == ""


def test_a_run_without_an_input_takes_no_file(file):
    model = fitted(["u' = C*u"], T, np.exp(-T / 5), initial=1.0)
    with pytest.raises(LgfError, match=r"the data of this run have no input; leave the table out\."):
        read_inputs(model.run_, {"t": NEW_T, "F": STAIRS})


def test_held_samples_stay_held_in_a_run_folder(file):
    forcing = Forcing.from_samples(T, np.sin(T), held=True)
    fitted(["u' = C*u + C*F"], T, np.exp(-T / 5), initial=1.0, forcing=forcing).save("held")
    (record,) = LatentGrammarFlow.load("held").run_.request.problem.observations
    assert record.inputs["F"].has_steps
