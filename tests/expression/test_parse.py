import contextlib
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lgf.equation.skeleton import Skeleton
from lgf.errors import LgfError
from lgf.expression.frame import Frame
from lgf.expression.parse import ReadingError, infer_frame, read_equations, read_expression
from lgf.expression.tree import T, add, constant, function, mul, number, power, signal, symbol

U, U1, U2 = (symbol("u", i) for i in range(3))
F = signal("F")


@pytest.mark.parametrize(
    "spelling", ["u''", "u''(t)", "u(t)''", "diff(u,t,2)", "diff(u,t,t)", "diff(diff(u,t),t)", "diff(u', t)",
                 "diff(diff(u(t), t), t)", "Derivative(u(t), (t, 2))", "Derivative(u(t), t, t)", "d2u/dt2", "u′′"]
)  # fmt: skip
def test_spellings_of_a_derivative(spelling):
    assert read_expression(spelling) == U2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-u^2", mul(number(-1), power(U, number(2)))),
        ("2^3^2", number(512)),
        ("(2^3)^2", number(64)),
        ("u**2", power(U, number(2))),
        ("u^-2", power(U, number(-2))),
        ("1 - 2 - 3", number(-4)),
        ("12/2/3", number(2)),
        ("2/3", number(2 / 3)),
        ("5.0 u''", mul(number(5), U2)),
        ("-5.0 u'' + 25 u^3", add(mul(number(-5), U2), mul(number(25), power(U, number(3))))),
        ("cos(2 t)", function("cos", mul(number(2), T))),
        ("ln(u) + Abs(u)", add(function("log", U), function("abs", U))),
        ("F(t)*u(t)", mul(F, U)),
        ("--u", U),
        ("2*-u", mul(number(-2), U)),
        ("1.5e-3", number(1.5e-3)),
        (".5", number(0.5)),
        ("95.", number(95)),
        ("pi", number(3.141592653589793)),
        ("du/dt", U1),
        ("x12'", symbol("x12", 1)),
        ("C3*u", mul(constant(3), U)),
        ("u − 2·t", add(U, mul(number(-2), T))),
    ],
)
def test_what_a_text_means(text, expected):
    assert read_expression(text) == expected


def test_bare_constants_are_numbered_across_the_equation():
    ((left, right),) = read_equations("C*u' + C*u = C")
    assert left == add(mul(constant(0), U1), mul(constant(1), U))
    assert right == constant(2)


def test_a_text_without_equal_sign_is_a_residual():
    assert read_equations("u' + u") == ((add(U1, U), number(0)),)


@pytest.mark.parametrize(
    ("text", "position", "part"),
    [
        ("u u", 2, "write *"),
        ("2/3 u", 4, "write *"),
        ("2^3 u", 4, "write *"),
        ("(u + 1", 6, "to close"),
        ("u + 1)", 5, "without its"),
        ("y + 1", 0, "known are"),
        ("sin^2(u)", 3, "after sin"),
        ("u + ", 4, "expected"),
        ("", 0, "nothing here"),
        ("u $ 2", 2, "not known"),
        ("1e999", 0, "too large"),
        ("1e300*1e300*u", 0, "too large"),
        ("C*u + C1", 6, "mixed"),
        ("diff(u*u, t)", 0, "takes a state"),
        ("diff(u, u)", 8, "with respect to t"),
        ("diff(u, t, 2.5)", 11, "whole number"),
        ("du/dt^2", 0, "clear what"),
        ("u" + "'" * 30, 1, "order 30"),
        ("__import__('os')", 0, "not known"),
    ],
)
def test_an_error_says_where_and_what(text, position, part):
    with pytest.raises(ReadingError) as caught:
        read_expression(text)
    assert caught.value.position == position
    assert part in str(caught.value)
    assert str(caught.value).splitlines()[-1].endswith("^")


def test_an_equation_has_one_equal_sign():
    with pytest.raises(ReadingError, match="second"):
        read_equations("u = u = u")
    with pytest.raises(ReadingError, match="nothing here"):
        read_equations("u' =")
    with pytest.raises(ReadingError, match="read_equations"):
        read_expression("u' = u")


FRAME = Frame((("prey", 1), ("x", 2)), ("voltage",))
PREY, X, VOLTAGE = symbol("prey"), symbol("x"), signal("voltage")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("prey*x'", mul(PREY, symbol("x", 1))),
        ("prey(t) + voltage(t)", add(PREY, VOLTAGE)),
        ("diff(prey, t) - 2 x''(t)", add(symbol("prey", 1), mul(number(-2), symbol("x", 2)))),
        ("Derivative(x(t), (t, 2))", symbol("x", 2)),
        ("dprey/dt + d2x/dt2", add(symbol("prey", 1), symbol("x", 2))),
        ("3 voltage^2*t", mul(number(3), power(VOLTAGE, number(2)), T)),
        ("C*prey + C", add(mul(constant(0), PREY), constant(1))),
        ("prey′", symbol("prey", 1)),
    ],
)
def test_a_frame_says_which_names_there_are(text, expected):
    assert read_expression(text, FRAME) == expected


@pytest.mark.parametrize(
    ("text", "position"), [("prey + u", 7), ("F*x", 0), ("x0", 0), ("du/dt", 0), ("2*predator", 2)]
)
def test_other_names_are_refused_by_naming_those_of_the_frame(text, position):
    with pytest.raises(ReadingError, match="known are t, voltage, prey, x, C, pi and the functions sin") as caught:
        read_expression(text, FRAME)
    assert caught.value.position == position


def test_an_input_has_no_derivative():
    with pytest.raises(ReadingError, match="cannot follow"):
        read_expression("voltage'", FRAME)
    with pytest.raises(ReadingError, match="takes a state"):
        read_expression("diff(voltage, t)", FRAME)


@pytest.mark.parametrize(
    ("text", "states", "inputs"),
    [
        ("prey' = 2*prey - prey*predator; predator' = prey", (("prey", 1), ("predator", 1)), ()),
        ("prey' = 2*prey - prey*predator\n\n predator'' = prey*F\n", (("prey", 1), ("predator", 2)), ("F",)),
        ("  theta'' = -sin(theta)  ", (("theta", 2),), ()),
        ("prey′ = predator; predator’ = F", (("prey", 1), ("predator", 1)), ("F",)),
        ("F' = -F; G' = F", (("F", 1), ("G", 1)), ()),
    ],
)
def test_states_are_those_that_equations_are_for(text, states, inputs):
    frame = Frame(states, inputs)
    assert infer_frame(text) == frame
    assert Skeleton.read(text).frame == frame
    assert Skeleton.read(text) == Skeleton.read(text, frame)
    assert len(read_equations(text, frame)) == len(states)


@pytest.mark.parametrize("text", ["u' + u = 0", "2*u' = u", "u' = u; u", "", "u = 3", "x' = y; 0 = y'"])
def test_no_states_are_inferred_of_other_texts(text):
    assert infer_frame(text) is None


def test_inputs_that_are_named_are_inputs():
    assert infer_frame("x' = -x + wind; y' = sun", ("sun", "rain", "wind")) == Frame(
        (("x", 1), ("y", 1)), ("sun", "wind")
    )


def test_constants_are_numbered_through_all_equations():
    (first, second), (third, fourth) = read_equations("prey' = C*prey + C; x'' = C*x", FRAME)
    assert second == add(mul(constant(0), PREY), constant(1))
    assert fourth == mul(constant(2), X)
    assert (first, third) == (symbol("prey", 1), symbol("x", 2))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("prey' = 2*prey - fox; predator' = prey", "known are t, prey, predator, C"),
        ("x' = y; x' = -x", "'x' stands for two things"),
        ("x' = y''; y' = x", "has y'' but an equation for y'"),
        ("x' = y'; y' = x", "gives the highest derivative"),
        ("x' = C' ", "cannot follow"),
        ("x0' + x1 = 0; x1' = 3", "one equation for each state"),
        ("u' = u; u''", "one equation for each state"),
        ("sin' = 3", "means something else"),
        ("u = 3", "no differential equation"),
        ("t = 3", "no differential equation"),
        ("u''''' = u", "order 5"),
        ("2*u''''' = u", "order 5"),
        ("; ".join(f"x{k}' = 1" for k in range(7)), "7 states"),
    ],
)
def test_texts_that_are_no_system_say_why(text, sentence):
    with pytest.raises(LgfError, match=sentence):
        Skeleton.read(text)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("prey' = prey", "1 equations for 2 states"),
        ("prey' = prey; x' = prey", "does not give prey', x''"),
        ("2*prey' = prey; x'' = prey", "does not give prey', x''"),
        ("prey' = prey; x'' = x'''", "has x''' but an equation for x''"),
        ("prey' = prey; prey' = x", "does not give prey', x''"),
    ],
)
def test_texts_that_do_not_fit_their_frame_say_why(text, sentence):
    with pytest.raises(LgfError, match=sentence):
        Skeleton.read(text, FRAME)
    with pytest.raises(LgfError, match="is of order 2, not of order 1"):
        Skeleton.read("u'' = u", Frame((("u", 1),)))


HOSTILE = ["(" * 10_000, "(" * 1000 + "u" + ")" * 1000, "sin(" * 700, "u^" * 1400 + "u", "-" * 2900, "9^" * 1400 + "9"]
HOSTILE += ["((u)^" * 500, "diff(" * 500, "u" * 2900, "1" * 2900, "'" * 2900, "a" * 2900, "u" * 3001]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_refused(text):
    with pytest.raises(ReadingError):
        read_equations(text)


def test_long_texts_are_read():
    assert len(read_expression("+".join(["u"] * 1500)).args) == 1500
    assert read_expression("-" * 2998 + "u") == U


WORDS = "u u' t F C C1 x0 ( ) + - * / ^ ** = , ' sin exp( diff( du/dt 1 2.5 1e9 e é ∂ __class__ lambda: [ 0 (t)"
FRAGMENTS = [*WORDS.split(), " ", "\n", "\0"]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join)))
@example("0^0^-1")
@example("1/0")
def test_any_text_returns_or_raises_a_reading_error(text):
    with contextlib.suppress(ReadingError):
        assert all(len(sides) == 2 for sides in read_equations(text))


def test_random_nonsense_of_every_length():
    rng = random.Random(0)
    for _ in range(300):
        text = "".join(rng.choices(FRAGMENTS, k=rng.randrange(200)))
        with contextlib.suppress(ReadingError):
            read_equations(text)
