import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lgf.equation.structure import open_constants, structure
from lgf.expression.numeric import evaluate
from lgf.expression.parse import read_equations
from lgf.expression.print import plain
from lgf.expression.tree import signal

POINTS = {
    "t": np.array([0.3, 0.7, 1.1, 1.9]),
    "u": np.array([0.4, 0.3, 0.8, 0.1]),
    "u'": np.array([0.9, 0.2, 1.4, 0.6]),
    "u''": np.array([-0.9, 1.2, 0.4, 0.7]),
    "F": np.array([0.5, 1.0, 0.25, 2.0]),
}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("u'' = C*u' + C*u + C*F", "C*u'' + C*u' + C*u = F"),
        ("u'' = C*u' + C*u + C*F", "C*F = u'' - C*u' + C*u"),
        ("u''*u' = C/t^3", "u'' = C/(t^3*u')"),
        ("u'' = (C*u + C*F)/(1 + C*u^2)", "u'' + C*u^2*u'' + C*u = C*F"),
        ("u' = C*u/(1 + C*u)", "C*u' + C*u*u' = u"),
        ("u'*(1 - u) = C*u", "C*u'*(1 - u) = u"),
        ("u' - u*u' = C*u", "u' = C*u/(1 - u)"),
        ("u' = C/(C + u)", "C*u' = 1/(C + u)"),
        ("u'*exp(C*t) = C*u", "u' = C*u*exp(C*t)"),
        ("u'*exp(u) = C*exp(u)", "u' = C"),
        ("u'*sin(C*t) = C*u + C", "u' = (C*u + C)/sin(C*t)"),
        ("t*u' = C*u + C*t", "u' = C*u/t + C"),
        ("C*u*u'' = C*u*u'", "u'' = C*u'"),
        ("u' = C*u*(1 - C*u)", "u' = C*u + C*u^2"),
        ("u' = C*u*log(C*u)", "u' = C*u*log(u) + C*u"),
        ("u' + 2*u = C", "u' = C*1 - 2*u"),
        ("u' = C*t/(C*t + C*t*u^4)", "u' + C*u^4*u' = C"),
        ("u'' = (C*u + C/t^3)/sin(C*t)", "t^3*u''*sin(C*t) = C*t^3*u + C"),
        ("u*u'' = C*u^C", "u'' = C*u^C"),
    ],
)
def test_the_same_structure(one, other):
    assert structure(*read_equations(one)[0]) == structure(*read_equations(other)[0])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("u' = 1/(C + u)", "u' = C/(C + u)"),
        ("u' = C*u*(1 - u)", "u' = C*u*(1 - C*u)"),
        ("u'' = C*u", "u' = C*u"),
        ("u' = C*sin(C*t) + C*sin(C*t)", "u' = C*sin(C*t)"),
        ("u' = C*sin(u)", "u' = C*sin(C*u)"),
        ("u' + 2*u = C", "u' + 3*u = C"),
        ("u'' = C*u", "u'' = C*u + C"),
    ],
)
def test_different_structures(one, other):
    assert structure(*read_equations(one)[0]) != structure(*read_equations(other)[0])


TERMS = st.sampled_from(
    [
        "C*u",
        "C*u'",
        "C*u^3",
        "C",
        "C*t",
        "C*u'^2*sin(C*t)",
        "C*u/(1 + C*u)",
        "C*exp(C*u)",
        "C*u*u'",
        "C*F",
        "C*u^C",
        "C*u*(1-u)",
    ]
)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.lists(TERMS, min_size=1, max_size=4), st.integers(0, 4), st.sampled_from(["2", "-1", "C", "u", "1/t", "u'^2"])
)
def test_structure_of_random_equations_does_not_depend_on_how_they_are_written(terms, cut, factor):
    key = structure(*read_equations("u'' = " + " + ".join(terms))[0])
    left, right = ["u''", *terms[:cut]], terms[cut:] or ["0"]
    moved = f"({factor})*({' + '.join(left)}) = ({factor})*({' - '.join(right)})"
    assert structure(*read_equations(moved)[0]) == key
    assert structure(*read_equations(" + ".join(reversed(left)) + " = " + " - ".join(right))[0]) == key
    assert structure(*read_equations(key)[0]) == key


@pytest.mark.parametrize(
    ("text", "skeleton"),
    [
        ("2*u'' + u' + 5*u = F", "C*u'' + C*u' + C*u = F"),
        ("2*u'' + u' + 5*u = 3*F", "u'' + C*u' + C*u = C*F"),
        ("u' = 0.14*u*(u/4.4 - 1)*(1 - u/130.0)", "u' = C*u + C*u^2 + C*u^3"),
        ("u' = 0.2*u^1.2*(1 - u)", "u' = C*u^C*(C*u + 1)"),
        ("u'' + 5*u'*(1 - u^2) + u = F", "C*u'' + C*u' + C*u^2*u' + C*u = F"),
        ("u''^2 - 81*u^2 = 0", "u''^2 + C*u^2 = 0"),
        ("u' = -sqrt(u) + sin(u)", "u' = C*sqrt(u) + C*sin(u)"),
        ("u'' - u'' + u' = 1", "u' = C"),
        ("0 = u' + u", "0 = u' + C*u"),
    ],
)
def test_opening_the_constants(text, skeleton):
    left, right, values = open_constants(*read_equations(text)[0])
    assert f"{plain(left, ['C'] * len(values))} = {plain(right, ['C'] * len(values))}" == skeleton


@pytest.mark.parametrize(
    "text",
    [
        "3*u'' + u'*(1 - u)/4 = 2*sin(0.5*t) + u^1.3",
        "2*u'' + log(3*u)*u = F",
        "u' = 0.78*u*(1-u/81.0)-0.9*u^2/(21.2^2+u^2)",
        "u*u'' = exp(2 - u)/sqrt(4*u) + u^2*u''",
    ],
)
def test_opened_equations_have_a_proportional_residual(text):
    left, right = read_equations(text)[0]
    opened_left, opened_right, values = open_constants(left, right)
    ratio = evaluate(left - right, POINTS) / evaluate(opened_left - opened_right, POINTS, values)
    assert np.allclose(ratio, ratio[0], rtol=1e-9)
    assert right != signal("F") or ratio[0] == pytest.approx(1.0)


def test_an_open_constant_cannot_be_opened():
    with pytest.raises(ValueError, match="open constant C already"):
        open_constants(*read_equations("u' = C*u")[0])
