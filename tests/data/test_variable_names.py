"""How a column is called in an equation."""

import numpy as np
import pandas as pd
import pytest

from lgf.data import observations_from_arrays, read_observations
from lgf.data.column_variables import column_variables

T = np.linspace(0.0, 5.0, 60)
X, Y = np.exp(-0.5 * T), 2.0 - np.exp(-0.3 * T)

NAMES = {
    "Greek letters": ("θ ω", "theta omega"),
    "more Greek letters": ("α β", "alpha beta"),
    "a letter that means a number": ("π λ", "x_pi lambda"),
    "numbers below the line": ("v₁ v₂", "v1 v2"),
    "accents": ("température débit", "temperature debit"),
    "letters of the north": ("Höhe Größe", "Hohe Grosse"),
    "differences": ("Δx ΔT", "Delta_x Delta_T"),
    "indices": ("θ_1 ωmax", "theta_1 omega_max"),
    "Chinese": ("温度 压力", "x1 x2"),
    "Cyrillic beside a name that is taken": ("давление x1", "x2 x1"),
    "words in Greek": ("θερμοκρασία πίεση", "x1 x2"),
    "signs": ("🐇 🦊", "x1 x2"),
    "a rate with a dot": ("θ θ̇", "u u'"),
    "a rate as a quotient": ("θ dθ/dt", "u u'"),
    "a dot above": ("x ẋ", "u u'"),
    "a prime of typesetters": ("φ φ′", "u u'"),
}


@pytest.mark.parametrize("name", NAMES)
def test_names_of_all_scripts_become_names_of_states(name, tmp_path):
    columns, expected = (text.split() for text in NAMES[name])
    file = tmp_path / "record.csv"
    rows = "".join(f"{t:.6g},{x:.6g},{y:.6g}\n" for t, x, y in zip(T, X, Y, strict=True))
    file.write_text(f"t,{','.join(columns)}\n{rows}", encoding="utf-8")
    (observation,) = read_observations(file).observations
    assert [str(v) for v in observation.columns] == expected
    (observation,) = observations_from_arrays(T, pd.DataFrame({columns[0]: X, columns[1]: Y}))
    assert [str(v) for v in observation.columns] == expected


def test_a_note_says_how_a_column_of_another_script_is_called():
    notes = read_observations({"t": T, "温度": X, "température": Y}).notes
    assert "Column '温度' is called x1." in notes
    assert "Column 'température' is called temperature." in notes
    assert not any("is called" in note for note in read_observations({"t": T, "x": X, "y": Y}).notes)


def test_inputs_have_such_names_too():
    table = {"t": T, "u": X, "вход": np.sin(T), "ψ": np.cos(T)}
    reading = read_observations(table, value="u", forcing=["вход", "ψ"])
    assert list(reading.observations[0].inputs) == ["F1", "psi"]
    assert "Column 'вход' is called F1." in reading.notes


def test_the_derivative_of_such_a_column_is_named_as_it_stands_there_or_as_it_is_called():
    for name in ("温度", "x1"):
        assert [str(v) for v in column_variables(["温度", "θ"], {name: 1})] == ["x1'", "theta"]
