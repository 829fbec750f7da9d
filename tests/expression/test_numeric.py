import numpy as np
import pytest

from lgf.expression.numeric import evaluate
from lgf.expression.parse import read_expression

T = np.linspace(0.1, 3.0, 7)
U = np.cos(3 * T)


def test_values_are_those_of_numpy():
    expression = read_expression("C*u'^2*exp(-C*t)/(1 + u^2) - sqrt(t) + abs(u)*tanh(u) + F + log(t)")
    values = evaluate(expression, {"t": T, "u": U, ("u", 1): 2 * U, "F": T**2}, [1.5, 0.3])
    expected = 1.5 * (2 * U) ** 2 * np.exp(-0.3 * T) / (1 + U**2) - np.sqrt(T) + abs(U) * np.tanh(U) + T**2 + np.log(T)
    assert np.allclose(values, expected, rtol=1e-14)


def test_undefined_values_are_nan_without_a_warning():
    u = np.array([-1.0, 4.0])
    assert np.array_equal(evaluate(read_expression("sqrt(u)"), {"u": u}), [np.nan, 2.0], equal_nan=True)
    assert np.isnan(evaluate(read_expression("log(u)"), {"u": u}))[0]
    assert np.isnan(evaluate(read_expression("u^0.3"), {"u": u}))[0]
    assert np.isinf(evaluate(read_expression("1/(u + 1)"), {"u": u}))[0]


def test_missing_values_are_named():
    with pytest.raises(ValueError, match=r"no values for u'; the environment has"):
        evaluate(read_expression("u' + u"), {"u": U})
    with pytest.raises(ValueError, match="open constant C0"):
        evaluate(read_expression("C*u"), {"u": U})


def test_a_number_is_a_scalar_and_spellings_agree():
    assert evaluate(read_expression("2"), {}) == 2.0
    a, b = (evaluate(read_expression("u''"), {key: U}) for key in ("u''", ("u", 2)))
    assert np.array_equal(a, b)
