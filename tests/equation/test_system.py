"""Systems of two states: text, LaTeX, SymPy, Python and JSON, and the skeleton below."""

import re

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from lgf.equation.skeleton import Skeleton
from lgf.equation.system import System
from lgf.errors import LgfError
from lgf.expression.frame import Frame
from lgf.expression.numeric import evaluate
from lgf.expression.parse import read_expression
from lgf.expression.tree import signal, symbol
from lgf.solver.solve import solve

HARE = "prey' = 1.8*prey - 1.5*prey*predator; predator' = prey*predator - 3*predator"
CART = Frame((("x", 2), ("theta", 1)), ("F", "voltage"))
DRIVEN = System.read(
    "x'' = -0.5*x' + 2*theta*x + F; theta' = -sin(1.5*x) + 0.3*voltage*theta", {"voltage": "cos(2*t)"}, CART
)


def _run(source):
    names = {}
    exec(compile(source, "system.py", "exec"), names)  # noqa: S102 (our own source, the thing under test)
    return names


def test_the_skeleton_of_two_states():
    skeleton = Skeleton.read("x'' = C*x' + C*y; y' = C*x*sin(C*t) + F")
    assert skeleton.frame == Frame((("x", 2), ("y", 1)), ("F",))
    assert skeleton.n_constants == 4
    assert str(skeleton) == "x'' = C*x' + C*y\ny' = C*x*sin(C*t) + F"
    assert Skeleton.read(str(skeleton)) == skeleton
    assert hash(Skeleton.read(str(skeleton))) == hash(skeleton)
    assert skeleton.right_sides == tuple(right for _, right in skeleton.sides)
    assert [left - right for left, right in skeleton.sides] == list(skeleton.residuals)
    assert (skeleton.left, skeleton.highest) == (symbol("x", 2), symbol("x", 2))
    assert (skeleton.forced, skeleton.autonomous) == (True, False)
    assert skeleton.functions == {"sin"}
    assert skeleton.complexity == sum(
        Skeleton.read(text, frame).complexity
        for text, frame in (
            ("x'' = C*x' + C*y", Frame((("x", 2),), ("y",))),
            ("y' = C*x*sin(C*t) + F", Frame((("y", 1),), ("x", "F"))),
        )
    )


def test_the_structure_does_not_depend_on_how_terms_are_written():
    one = Skeleton.read("x' = C*x*(1 - C*y) + C*C*x; y' = C*x + C*y").structure
    assert one == Skeleton.read("x' = C*x + C*x*y; y' = C*y + 2*C*x").structure
    assert one != Skeleton.read("x' = C*x + C*x*y; y' = C*y").structure
    assert one != Skeleton.read("y' = C*x + C*x*y; x' = C*y + C*x").structure


def test_each_state_has_one_equation():
    with pytest.raises(ValueError, match="1 equations for 2 states"):
        Skeleton(Frame((("x", 1), ("y", 1))), ((symbol("x", 1), symbol("y")),))
    with pytest.raises(LgfError, match="gives the highest derivative of its state"):
        Skeleton(Frame((("x", 1), ("y", 1))), ((symbol("y", 1), symbol("y")), (symbol("x", 1), symbol("x"))))


def test_it_reads_shows_and_reads_back():
    system = System.read(HARE)
    assert system.frame == Frame((("prey", 1), ("predator", 1)))
    assert str(system) == "prey' = 1.8 prey - 1.5 predator*prey\npredator' = -3.0 predator + 1.0 predator*prey"
    assert str(system.skeleton) == "prey' = C*prey + C*predator*prey\npredator' = C*predator + C*predator*prey"
    assert system.values == (1.8, -1.5, -3.0, 1.0)
    assert system.constants == {"C0": 1.8, "C1": -1.5, "C2": -3.0, "C3": 1.0}
    assert System.read(system.text) == system
    assert System.read(str(system)) == system  # its numbers are short


def test_inputs_stay_in_the_text_and_formulas_are_shown():
    assert DRIVEN.text.splitlines()[1] == "theta' = -sin(1.5*x) + 0.3*theta*voltage"
    assert str(DRIVEN).splitlines() == [
        "x'' = -0.5 x' + 2.0 theta*x + 1.0 F",
        "theta' = -1.0 sin(1.5 x) + 0.3 theta*cos(2 t)",
    ]
    assert DRIVEN.formulas == (("voltage", read_expression("cos(2*t)")),)
    assert System.read(DRIVEN.text, {"voltage": "cos(2*t)"}, CART) == DRIVEN


def test_inputs_that_are_given_need_no_frame():
    system = System.read("x' = -x + voltage; y' = x + F", {"voltage": "cos(t)"})
    assert system.frame == Frame((("x", 1), ("y", 1)), ("F", "voltage"))
    alone = System.read("theta' = -theta + voltage", {"voltage": "cos(t)"})
    assert alone.frame == Frame((("theta", 1),), ("voltage",))
    assert str(alone) == "theta' = -1.0 theta + 1.0 cos(t)"


@pytest.mark.parametrize(
    "text",
    [
        "x' = F\ny' = -x",  # an input alone
        "x' = 2*y'' - x\ny''' = -y'",  # a higher derivative of another state
        "x' = 2*x*y'\ny'' = -y",
        "x' = 0\ny' = -x",
        "x' = 0.1\ny' = -x^1.5",
        "b' = 2*a\na' = -b/(1 + 0.5*a^2)",
    ],
)
def test_every_equation_keeps_its_highest_derivative(text):
    system = System.read(text)
    assert system.text == text or System.read(system.text) == system
    assert system.skeleton.right_sides is not None
    rng = np.random.default_rng(0)
    data = {str(v): rng.uniform(0.5, 2, 5) for v in system.frame.columns} | {"F": rng.uniform(0.5, 2, 5)}
    for line, (_, right) in zip(text.splitlines(), system.sides, strict=True):
        wanted = read_expression(line.split("=")[1], system.frame)
        np.testing.assert_allclose(evaluate(right, data), evaluate(wanted, data), rtol=1e-12)


COEFFICIENT = st.floats(-9, 9, allow_nan=False).filter(lambda x: abs(x) > 1e-3)
TERM = st.sampled_from(["x", "y", "x'", "x*y", "x^2*y", "sin(y)", "t*x", "F", "x'*y", "exp(-t)"])
TERMS = st.lists(TERM, min_size=1, max_size=4, unique=True)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(TERMS, TERMS, st.data())
def test_the_text_of_any_system_reads_back_exactly(one, other, data):
    def side(terms):
        return " + ".join(f"({data.draw(COEFFICIENT)!r})*{term}" for term in terms)

    system = System.read(f"x'' = {side(one)}; y' = {side(other)}", frame=Frame((("x", 2), ("y", 1)), ("F",)))
    assert System.read(system.text, frame=system.frame) == system


def test_errors_round_each_equation():
    skeleton = Skeleton.read("x' = C*y; y' = C*x + C")
    system = System(skeleton, (-0.123456, 2.0, 5012.0), errors=(0.0123, 0.4, 120.0))
    assert str(system) == "x' = -0.123 y\ny' = 2.00 x + 5010"
    with pytest.raises(ValueError, match="2 values for 3"):
        System(skeleton, (1.0, 2.0))


def test_latex_is_aligned():
    assert DRIVEN.latex().splitlines() == [
        r"\begin{aligned}",
        r"\ddot{x} &= -0.5 \, \dot{x} + 2.0 \, \theta \, x + 1.0 \, F \\",
        r"\dot{\theta} &= -1.0 \, \sin\left(1.5 \, x\right) + 0.3 \, \theta \, \cos\left(2 \, t\right)",
        r"\end{aligned}",
    ]
    assert "aligned" not in System.read("prey' = -prey").latex()
    assert System.read("prey' = -2*prey^2").latex() == r"\dot{\mathrm{prey}} = -2.0 \, \mathrm{prey}^{2}"


def test_sympy_gives_a_list():
    t = sympy.Symbol("t")
    prey, predator = (sympy.Function(name)(t) for name in ("prey", "predator"))
    one, two = System.read(HARE).sympy()
    assert one.lhs == prey.diff(t)
    assert sympy.simplify(one.rhs - (1.8 * prey - 1.5 * prey * predator)) == 0
    assert two.lhs == predator.diff(t)
    assert sympy.simplify(two.rhs - (prey * predator - 3 * predator)) == 0
    driven = DRIVEN.sympy()
    assert driven[0].lhs == sympy.Function("x")(t).diff(t, 2)
    assert driven[0].rhs.has(sympy.Function("F")(t))
    assert driven[1].rhs.has(sympy.cos(2 * t))


def test_python_of_two_states_agrees_with_scipy():
    t = np.linspace(0, 6, 61)
    system = System.read(HARE)
    rhs = _run(system.python())["rhs"]
    rng = np.random.default_rng(0)
    for x, y in rng.uniform(0.1, 3, (5, 2)):
        assert rhs(0.0, [x, y]) == pytest.approx([1.8 * x - 1.5 * x * y, x * y - 3 * y])
    theirs = solve_ivp(rhs, (0, 6), [1.0, 0.5], t_eval=t, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(solve(system, (1.0, 0.5), t).values[:, :2], theirs.y.T, rtol=1e-5, atol=1e-7)


def test_python_of_mixed_orders_takes_open_inputs_as_functions():
    source = DRIVEN.python()
    assert "y = [x, x', theta]" in source
    assert "def rhs(t, y, F):" in source  # the formula of the voltage is written out
    rhs = _run(source)["rhs"]
    x, v, a, t = 0.7, -0.2, 1.3, 1.9
    expected = [v, -0.5 * v + 2 * a * x + 3 * t, -np.sin(1.5 * x) + 0.3 * np.cos(2 * t) * a]
    assert rhs(t, [x, v, a], lambda t: 3 * t) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["y", "np", "lambda", "in"])
def test_python_of_inputs_whose_names_are_taken(name):
    system = System.read(f"x' = -2*x + 3*{name}", frame=Frame((("x", 1),), (name,)))
    assert _run(system.python())["rhs"](1.0, [0.5], lambda t: 7 * t) == pytest.approx([20.0])
    assert re.search(rf"x' = .*{name}", system.text)


def test_complexities_add_up_over_the_equations():
    one = System.read("x' = 2*x - 3*x*y", frame=Frame((("x", 1),), ("y",)))
    two = System.read("y' = x - 4*y", frame=Frame((("y", 1),), ("x",)))
    assert System.read("x' = 2*x - 3*x*y; y' = x - 4*y").complexity == one.complexity + two.complexity


def test_formulas_drive_and_names_stay():
    assert DRIVEN.driven(signal("voltage")) == read_expression("cos(2*t)")
    assert DRIVEN.driven(signal("F")) == signal("F")
    assert signal("voltage") in DRIVEN.sides[1][1].nodes()
