import math

import pytest

from lgf.errors import LgfError
from lgf.grammar import load_grammar
from lgf.language.system_encoding import system_encoding

SYSTEMS = load_grammar("systems")


@pytest.mark.parametrize(
    ("text", "rights"),
    [
        ("x' = 2*x - 3*x*y; y' = C*x*y - y", ("x' = C*x + C*x*y", "y' = C*y + C*x*y")),
        ("x' = 0.5*x*(1 - x/7 - y); y' = (x - 1)*(y - 2)", ("x' = C*x + C*x^2 + C*x*y", "y' = C*x + C*y + C*x*y + C")),
        ("x' = 1 + 2*sin(y - x); y' = sin(2*x)", ("x' = C*sin(x - y) + C", "y' = C*sin(C*x)")),
        ("x' = (1 + 3*y)/(2 + x); y' = x/(x + 1)", ("x' = (C*y + C)/(C*x + 1)", "y' = C*x/(C*x + 1)")),
        ("x' = y/(3 + y^2); y' = 1/(1 + x^8) - y", ("x' = C*y/(C*y^2 + 1)", "y' = C*y + C/(C*x^C + 1)")),
        ("x'' = C*(y - x) - 0.1*x'; y'' = 3*(y - x) + F", ("x'' = C*x' + C*(-x + y)", "y'' = C*x + C*y + C*F")),
        ("x' = C*exp(-x); y' = x^0.7", ("x' = C*exp(-x)", "y' = C*x^C")),
    ],
)
def test_numbers_are_values_of_constants_and_the_cheapest_reading_counts(text, rights):
    encoded = system_encoding(SYSTEMS, text)
    assert encoded.right_sides == rights
    assert 0 < encoded.bits < 40
    assert encoded.unsaid == ((), ())


def test_what_the_grammar_lacks_is_named():
    encoded = system_encoding(SYSTEMS, "x' = 2*x; y' = x - 3*sin(x*y)^3")
    assert encoded.bits == math.inf
    assert math.isfinite(encoded.rows[0].bits)
    assert encoded.unsaid == ((), ("sin(x*y)^3",))


def test_inputs_have_names():
    assert system_encoding(SYSTEMS, "i' = V - i; w' = i*V", ("V",)).right_sides[1] == "w' = C*V*i"


def test_the_order_of_the_equations_and_the_names_do_not_count():
    one = system_encoding(SYSTEMS, "x' = x - x*y; y' = y^2 - sin(x)")
    other = system_encoding(SYSTEMS, "a' = a^2 - sin(b); b' = b - b*a")
    assert [row.bits for row in one.rows] == pytest.approx([row.bits for row in reversed(other.rows)])


@pytest.mark.parametrize("text", ["x' + y = 1; y' = x", "x' = y'; y' = x", "x'*y' = 3; y' = x"])
def test_a_system_gives_the_highest_derivatives(text):
    with pytest.raises(LgfError):
        system_encoding(SYSTEMS, text)
