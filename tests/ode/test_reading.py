import contextlib
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lgf.expression.parse import ReadingError, read_equation, read_expression
from lgf.expression.tree import F, T, U, add, constant, function, mul, number, power, symbol

U1, U2 = symbol("u", 1), symbol("u", 2)


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
    left, right = read_equation("C*u' + C*u = C")
    assert left == add(mul(constant(0), U1), mul(constant(1), U))
    assert right == constant(2)


def test_a_text_without_equal_sign_is_a_residual():
    assert read_equation("u' + u") == (add(U1, U), number(0))


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
        read_equation("u = u = u")
    with pytest.raises(ReadingError, match="nothing here"):
        read_equation("u' =")
    with pytest.raises(ReadingError, match="read_equation"):
        read_expression("u' = u")


HOSTILE = ["(" * 10_000, "(" * 1000 + "u" + ")" * 1000, "sin(" * 700, "u^" * 1400 + "u", "-" * 2900, "9^" * 1400 + "9"]
HOSTILE += ["((u)^" * 500, "diff(" * 500, "u" * 2900, "1" * 2900, "'" * 2900, "a" * 2900, "u" * 3001]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_refused(text):
    with pytest.raises(ReadingError):
        read_equation(text)


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
        assert len(read_equation(text)) == 2


def test_random_nonsense_of_every_length():
    rng = random.Random(0)
    for _ in range(300):
        text = "".join(rng.choices(FRAGMENTS, k=rng.randrange(200)))
        with contextlib.suppress(ReadingError):
            read_equation(text)
