"""Units: what they exclude, the units of constants, and the same by a change of units."""

import math

import numpy as np
import pytest

from lgf.equation.dimensions import constant_units, objection, quantity_units
from lgf.equation.skeleton import Skeleton, numbered
from lgf.equation.system import System
from lgf.equation.units import SCALE, dimension, read_unit, unit_latex, unit_pretty, unit_text
from lgf.errors import LgfError
from lgf.expression.frame import Frame, Variable
from lgf.expression.tree import SIGNAL, constant, function, mul, number, substitute
from lgf.grammar import load_grammar, sample, spell
from lgf.language.language import explicit_form, linear_form
from lgf.language.sentences import NoEquation, skeleton_of

METRES = (("t", "s"), ("u", "m"))


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("m/s^2", "m s^-2"), ("m/s2", "m*s**-2"), ("m/s²", "m/(s s)"), ("W/(m^2 K)", "kg/s^3/K"), ("1/min", "min-1"),
        ("m^(1/2)", "m^0.5"), ("", "1"), ("cells/ml", "cells ml^-1"), ("rad", "-"), ("N·m", "J"),
    ],
)  # fmt: skip
def test_units_are_read_in_every_spelling(text, same):
    assert dimension(read_unit(text)) == pytest.approx(dimension(read_unit(same)))
    assert dimension(read_unit(unit_text(read_unit(text)))) == pytest.approx(dimension(read_unit(text)))


@pytest.mark.parametrize("text", ["10 m", "m^9^9", "(m", "m/", "/s", "m.s", "m)", "9" * 70, "m\ns'x", "m" * 61])
def test_what_is_no_unit_is_refused(text):
    with pytest.raises(LgfError, match="cannot be read"):
        read_unit(text)


def test_scale_tells_units_of_one_dimension_apart():
    assert dimension(read_unit("km"))[SCALE] == pytest.approx(math.log(1000))
    assert dimension(read_unit("deg")) == {SCALE: pytest.approx(math.log(math.pi / 180))}
    with pytest.raises(LgfError, match="'cells' is not known"):
        read_unit("cells", own_words=False)


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("u' = C*u", ["1/s"]),
        ("u' = C*sin(C*u)", ["m/s", "1/m"]),
        ("u' = C*u^C", ["m^(2/5)/s", ""]),
        ("u' = C*u + C*u*log(u)", ["1/s", "1/s"]),
        ("u' = C + C*log(u)", ["m/s", "m/s"]),
        ("u' = C*u*log(C*u)", ["1/s", "1/m"]),
        ("u'' = C*u + C*cos(C*t + C)", ["1/s^2", "m/s^2", "1/s", ""]),
        ("u' = C*u/(1 + C*u^2)", ["1/s", "1/m^2"]),
        ("u' = C*(1 + C*u)^C", ["m/s", "1/m", ""]),
        ("u'' = C*u'/abs(u') + C*u'*abs(u')", ["m/s^2", "1/m"]),
        ("C*u'' + C*u = 0", [None, None]),
    ],
)
def test_constants_get_units(text, units):
    skeleton = Skeleton.read(text)
    assert objection(skeleton, METRES) is None
    found = constant_units(skeleton, METRES, [0.6] * skeleton.n_constants)
    assert [None if unit is None else unit_text(unit) for unit in found] == units


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("u' = C*sin(u)", "takes sin of"),
        ("u' = C*sin(t)", "takes sin of"),
        ("u' = C*exp(u)", "takes exp of"),
        ("u' = C*u*log(u)", "takes log of"),
        ("u' = C*log(u) + C*u", "takes log of"),
        ("u' = u^C", "adds quantities"),
        ("u' = C*sin(C*(u + u^2))", "adds quantities"),
        ("u' = C*u/(1 + u)", "adds quantities"),
        ("u' = u", "adds quantities"),
        ("u' = C*u^u", "unit"),
    ],
)
def test_what_cannot_be_right_is_said(text, reason):
    assert reason in (objection(Skeleton.read(text), METRES) or "")


def test_unknown_units_exclude_nothing_and_determine_nothing():
    skeleton = Skeleton.read("u' = C*sin(t) + C*u + C*F")
    assert objection(skeleton, (("u", "m"),)) is None
    assert objection(skeleton, ()) is None
    assert constant_units(skeleton, (("u", "m"),), [1.0, 1.0, 1.0]) == (None, None, None)


def test_inputs_angles_and_scales():
    driven = Skeleton.read("C*u'' + C*u = F")
    assert [unit_text(u) for u in constant_units(driven, (*METRES, ("F", "N")), [1, 1]) if u] == ["kg", "N/m"]
    pendulum = Skeleton.read("theta'' = C*sin(theta)")
    assert objection(pendulum, (("theta", "rad"), ("t", "s"))) is None
    assert "sin" in (objection(pendulum, (("theta", "deg"), ("t", "s"))) or "")
    moving = Skeleton.read("x' = v; v' = -9.81")
    speeds = (("x", "m"), ("v", "m/s"), ("t", "s"))
    assert objection(moving, speeds) is not None
    assert objection(moving, speeds, trusted=[1]) is None
    assert objection(moving, (("x", "mm"), *speeds[1:]), trusted=[1]) is not None


def test_units_of_a_state_follow_from_its_derivative():
    units = quantity_units((("t", "s"), ("u''", "m/s^2")), [Variable("u"), Variable("u", 1), Variable("w")])
    assert {name: unit_text(unit) for name, unit in units.items()} == {"t": "s", "u": "m", "u'": "m/s"}


def test_printed_equations_show_units_and_read_back():
    system = System.read("u'' = -4.01*u - 0.3*u'")
    shown = System(system.skeleton, system.values, units=METRES)
    assert str(shown) == "u'' = -0.3 [1/s] u' - 4.01 [1/s^2] u"
    assert r"4.01\,\mathrm{s^{-2}}" in shown.latex()
    assert "1/s²" in str(shown.mathml())
    assert System.read(str(shown)).values == pytest.approx(shown.values)
    assert "Units: t in s, u in m." in shown.python()
    assert str(system) == "u'' = -0.3 u' - 4.01 u"
    assert (unit_latex(read_unit("%")), unit_pretty(read_unit("kg m/s^2"))) == (r"\mathrm{\%}", "kg·m/s²")


def test_an_equation_is_possible_if_a_change_of_units_leaves_its_structure_unchanged():
    """The slow twin: u in another unit of length is k*u, and constants must be able to take up every k."""
    grammar, frame = load_grammar("standard"), Frame((("u", 2),))
    rng = np.random.default_rng(0)
    verdicts = set()
    for derivation in sample(grammar, rng, 400):
        try:
            skeleton = linear_form(explicit_form(skeleton_of("explicit", spell(grammar, derivation), frame)))
        except NoEquation:
            continue
        length, time = 1.7, 2.3
        scaled = {
            s: mul(number(time if s.args == ("t", SIGNAL) else length / time ** max(s.args[1], 0)), s)
            for s in skeleton.symbols
        }
        # The structure takes a constant out of a logarithm, but no number.
        logarithms = {
            n: function("log", substitute(n.args[0], {s: mul(constant(99), s) for s in skeleton.symbols}))
            for pair in skeleton.sides for e in pair for n in e.nodes() if n.head == "log"
        }  # fmt: skip
        scaled |= logarithms
        changed = numbered(frame, [(substitute(a, scaled), substitute(b, scaled)) for a, b in skeleton.sides])
        possible = objection(skeleton, METRES) is None
        verdicts.add(possible)
        assert possible == (changed.structure == skeleton.structure), str(skeleton)
    assert verdicts == {True, False}
