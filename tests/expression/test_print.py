import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lgf.equation.system import System
from lgf.expression.functions import FUNCTIONS
from lgf.expression.parse import read_expression
from lgf.expression.print import display, format_number, latex, plain
from lgf.expression.tree import T, add, constant, function, mul, number, power, signal, symbol

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False).filter(lambda x: x == 0 or abs(x) > 1e-6)
LEAVES = st.one_of(
    NUMBERS.map(number),
    st.integers(-3, 3).map(number),
    st.integers(0, 12).map(constant),
    st.sampled_from([T, signal("F"), symbol("u"), symbol("u", 1), symbol("u", 3), symbol("x0"), symbol("x11", 2)]),
)


def _extend(inner):
    return st.one_of(
        st.lists(inner, min_size=2, max_size=4).map(lambda a: add(*a)),
        st.lists(inner, min_size=2, max_size=4).map(lambda a: mul(*a)),
        st.tuples(inner, inner).map(lambda a: power(*a)),
        st.tuples(inner, st.sampled_from([-3, -2, -1, 2, 0.5, -0.5])).map(lambda a: power(a[0], number(a[1]))),
        st.tuples(st.sampled_from(list(FUNCTIONS)), inner).map(lambda a: function(*a)),
    )


TREES = st.recursive(LEAVES, _extend, max_leaves=12)


def _finite(tree):
    return all(math.isfinite(n.args[0]) for n in tree.nodes() if n.head == "number")


@settings(max_examples=400, deadline=None, derandomize=True)
@given(TREES.filter(_finite))
def test_reading_undoes_printing(tree):
    assert read_expression(plain(tree)) == tree


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (4.98765, 0.0321, "4.988"),
        (-4.98765, 0.321, "-4.99"),
        (5012.0, 12.0, "5012"),
        (5012.0, 120.0, "5010"),
        (0.5, 0.00012, "0.50000"),
        (0.123456789012345, 1e-15, "0.1234567890"),
        (1e-7, 1e-9, "1.000e-07"),
        (5e-5, 4e-4, "5e-05"),
        (-5e20, 4e21, "-5e+20"),
        (5.0, None, "5.0"),
        (25.0, None, "25"),
        (-1.0, None, "-1.0"),
        (0.123456, None, "0.1235"),
        (123456.0, None, "1.235e+05"),
        (2.0, math.nan, "2.0"),
        (2.0, 0.0, "2.0"),
        (0.0, 0.1, "0.0"),
    ],
)
def test_numbers_are_rounded_by_their_error(value, error, text):
    assert format_number(value, error) == text


def test_the_equation_for_people():
    equation = System.read("5*u'' + u' + 7*u + 25*u^3 = F", inputs={"F": "cos(2*t)"})
    assert str(equation) == "5.0 u'' + 1.0 u' + 7.0 u + 25 u^3 = cos(2 t)"
    assert equation.text == "5*u'' + u' + 7*u + 25*u^3 = F"


@pytest.mark.parametrize(
    ("text", "values", "shown"),
    [
        ("C*u/t", [-0.5], "-0.5 u/t"),
        ("u - C*u'", [2.0], "u - 2.0 u'"),
        ("C*(1 + u)", [3.0], "3.0*(u + 1)"),
        ("C*2*u", [3.0], "6.0 u"),
        ("u^C", [-1.5], "u^(-1.5)"),
        ("C/u", [1.5], "1.5/u"),
        ("1/(C + u)^2", [1.5], "1/(1.5 + u)^2"),
    ],
)
def test_display_of_terms(text, values, shown):
    expression = read_expression(text)
    assert display(expression, values) == shown
    read_expression(shown)


def test_a_number_of_one_digit_has_no_point_before_its_exponent():
    expression = read_expression("C*t")
    assert display(expression, [5e-5], [4e-4]) == "5e-05 t"
    assert latex(expression, [5e-5], [4e-4]) == r"5 \cdot 10^{-5} \, t"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("u''", r"\ddot{u}"),
        ("u'''", "u^{(3)}"),
        ("u'^2", r"\dot{u}^{2}"),
        ("x1", "x_{1}"),
        ("2*u/t", r"\frac{2 \, u}{t}"),
        ("-u/t^2", r"-\frac{u}{t^{2}}"),
        ("sin(t)^2", r"\left(\sin\left(t\right)\right)^{2}"),
        ("exp(-t)", "e^{-t}"),
        ("sqrt(u) + abs(u)", r"\sqrt{u} + \left|u\right|"),
        ("1.5e-7*u", r"1.5 \cdot 10^{-7} \, u"),
        ("C*u", r"C_{0} \, u"),
        ("(1+u)*t", r"\left(u + 1\right) \, t"),
    ],
)
def test_latex(text, expected):
    assert latex(read_expression(text)) == expected


def _run(source):
    names = {}
    exec(compile(source, "equation.py", "exec"), names)  # noqa: S102 (our own source, the thing under test)
    return names


def test_python_function_of_an_explicit_equation():
    rhs = _run(System.read("u'' = -0.5*u' - 3*u^3 + 2*sin(0.7*t)/(1 + u^2)").python())["rhs"]
    u, v, t = 0.3, -0.8, 1.9
    assert np.allclose(rhs(t, [u, v]), [v, -0.5 * v - 3 * u**3 + 2 * np.sin(0.7 * t) / (1 + u**2)])


def test_python_function_solves_for_the_highest_derivative():
    source = System.read("2*u'' + u'*abs(u') + 4*u + 1.5*u^2*u'' = F", inputs={"F": "2*cos(t)"}).python()
    u, v, t = 0.3, -0.8, 1.9
    expected = (2 * np.cos(t) - v * abs(v) - 4 * u) / (2 + 1.5 * u**2)
    assert np.allclose(_run(source)["rhs"](t, [u, v]), [v, expected])


def test_python_function_with_an_open_forcing():
    rhs = _run(System.read("2*u' + u = F").python())["rhs"]
    assert np.allclose(rhs(1.0, [0.5], lambda t: 3 * t), [(3.0 - 0.5) / 2])


def test_python_function_of_an_implicit_equation_is_its_residual():
    residual = _run(System.read("u''^2 = 81*u^2").python())["residual"]
    assert residual(0.0, [2.0, 0.0, -18.0]) == 0
    assert residual(0.0, [2.0, 0.0, -17.0]) != 0
