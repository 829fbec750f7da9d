import numpy as np
import pytest

from lgf.equation.skeleton import Skeleton, numbered
from lgf.equation.system import System
from lgf.errors import LgfError
from lgf.expression.frame import Frame
from lgf.expression.numeric import evaluate
from lgf.expression.parse import read_expression
from lgf.expression.print import plain
from lgf.expression.tree import ZERO, constant, mul, signal, symbol
from lgf.language.sentences import NoEquation, grammar_frame, skeleton_of

U, U1, U2 = (symbol("u", i) for i in range(3))
F = signal("F")
FIRST = Frame((("u", 1),))


@pytest.mark.parametrize(
    ("text", "order", "constants", "explicit", "autonomous", "forced", "degree", "functions"),
    [
        ("u' = C*u", 1, 1, True, True, False, 1, set()),
        ("u'' = C*u' + C*sin(C*t)", 2, 3, True, False, False, 1, {"sin"}),
        ("C*u'' + C*u = F", 2, 2, False, True, True, 1, set()),
        ("u''^2 = C*u^2*exp(u)", 2, 1, False, True, False, 2, {"exp"}),
        ("u' = C*u'*u + C", 1, 2, False, True, False, 1, set()),
        ("sin(u') = C*u", 1, 1, False, True, False, None, {"sin"}),
        ("(1 + C*u^2)*u'' + u'*(u'' + t)^2 = 0", 2, 1, False, False, False, 2, set()),
        ("u'''*u' - u/u''' = 0", 3, 0, False, True, False, None, set()),
    ],
)
def test_properties(text, order, constants, explicit, autonomous, forced, degree, functions):
    skeleton = Skeleton.read(text)
    assert skeleton.frame == Frame((("u", order),), ("F",) if forced else ())
    assert skeleton.highest == symbol("u", order)
    assert skeleton.n_constants == constants
    assert skeleton.right_sides == ((skeleton.right,) if explicit else None)
    assert skeleton.autonomous is autonomous
    assert skeleton.forced is forced
    assert skeleton.degree == degree
    assert skeleton.functions == functions
    assert Skeleton.read(str(skeleton)) == skeleton
    assert hash(Skeleton.read(text)) == hash(skeleton)


def test_the_polynomial_in_the_highest_derivative_has_the_value_of_the_residual():
    skeleton = Skeleton.read("(1 + C*u^2)*u'' + u'*(u'' + t)^2 = C*u")
    rng = np.random.default_rng(0)
    data = {name: rng.uniform(0.5, 2, 5) for name in ("t", "u", "u'", "u''")}
    values = [0.7, 1.9]
    coefficients = [evaluate(c, data, values) for c in skeleton.polynomial or ()]
    total = sum(c * data["u''"] ** i for i, c in enumerate(coefficients))
    assert np.allclose(total, evaluate(skeleton.residuals[0], data, values))


def test_constants_are_numbered_from_left_to_right_and_may_stand_in_several_places():
    with pytest.raises(ValueError, match="numbered 0, 1"):
        Skeleton(FIRST, ((U1, mul(constant(1), U)),))
    tied = Skeleton.read("u' = C1*u + C0*t + C1")
    assert str(tied) == "u' = C0*u + C1*t + C0"
    assert (tied.n_constants, tied.tied) == (2, True)
    assert tied.structure == Skeleton.read("u' = C*u + C*t + C").structure
    assert numbered(FIRST, ((U1, mul(constant(1), U)),)) == Skeleton.read("u' = C*u")


@pytest.mark.parametrize(
    ("template", "sentence", "order", "expected"),
    [
        ("explicit", "C*C*u + C*u + C", 1, "u' = C*u + C"),
        ("explicit", "C*u'", 2, "u'' = C*u'"),
        ("own forcing", "C*C*diff(diff(u,t),t) + C*u - C*t", 2, "u'' + C*u + C*t = 0"),
        ("own forcing", "C*diff(u,t)/t*u + C", None, "u*u'/t + C = 0"),
        ("given forcing", "C*diff(u,t) + C*diff(u,t)*t", 1, "C*u' + C*t*u' = F"),
    ],
)
def test_sentences_become_skeletons(template, sentence, order, expected):
    frame = None if order is None else grammar_frame(order, template == "given forcing")
    assert str(skeleton_of(template, sentence, frame)) == expected
    assert skeleton_of(template, read_expression(sentence), frame) == Skeleton.read(expected)


@pytest.mark.parametrize(
    ("template", "sentence", "order", "reason"),
    [
        ("explicit", "C*u'", 1, "order"),
        ("given forcing", "u' - u'", None, "vanishes"),
        ("own forcing", "C*u*u - C*t", None, "no derivative"),
        ("own forcing", "C*u'/u' + C*u", None, "no derivative"),
        ("given forcing", "C*u'", 2, "order"),
    ],
)
def test_sentences_that_are_no_equation(template, sentence, order, reason):
    frame = None if order is None else grammar_frame(order, template == "given forcing")
    with pytest.raises(NoEquation) as caught:
        skeleton_of(template, sentence, frame)
    assert caught.value.reason == reason


def test_unknown_templates_are_named():
    with pytest.raises(ValueError, match="known are explicit"):
        skeleton_of("implicit", "C*u", FIRST)


def test_a_right_hand_side_alone_has_the_least_possible_order():
    assert str(skeleton_of("explicit", "C*t")) == "u' = C*t"
    assert str(skeleton_of("explicit", "C*u")) == "u' = C*u"
    assert str(skeleton_of("explicit", "C*u'*F")) == "u'' = C*F*u'"
    with pytest.raises(NoEquation) as caught:
        skeleton_of("explicit", "C*u''''")
    assert caught.value.reason == "order"


def test_an_equation_reads_fills_and_returns():
    equation = System.read("2*u'' + u' + 5*u = F", inputs={"F": "2*sin(0.5*t)"})
    assert str(equation.skeleton) == "C*u'' + C*u' + C*u = F"
    assert equation.values == (2.0, 1.0, 5.0)
    assert equation.constants == {"C0": 2.0, "C1": 1.0, "C2": 5.0}
    assert equation.sides == ((read_expression("2*u'' + u' + 5*u"), F),)
    assert equation.latex() == r"2.0 \, \ddot{u} + 1.0 \, \dot{u} + 5.0 \, u = 2 \, \sin\left(0.5 \, t\right)"
    assert str(equation.sympy()) == "Eq(5*u(t) + Derivative(u(t), t) + 2*Derivative(u(t), (t, 2)), 2*sin(0.5*t))"


def test_errors_round_the_display():
    equation = System(Skeleton.read("u' = C*u + C"), (-0.123456, 2.0), errors=(0.0123, 0.4))
    assert str(equation) == "u' = -0.123 u + 2.00"


def test_values_must_be_as_many_as_constants():
    with pytest.raises(ValueError, match="1 values for 2 open constants"):
        System(Skeleton.read("u' = C*u + C"), (1.0,))
    with pytest.raises(ValueError, match="1 errors for 2"):
        System(Skeleton.read("u' = C*u + C"), (1.0, 2.0), errors=(1.0,))


def test_machine_text_reads_back_exactly():
    equation = System(Skeleton.read("u' = C*u + C*sin(C*t)"), (1 / 3, -1e-17, 2 / 7))
    assert System.read(equation.text) == equation


def test_operator_form_has_the_forcing_alone():
    equation = System(Skeleton.read("u'' = C*u' + C*u^3 + C*F"), (-0.2, -5.0, 0.2))
    form = equation.operator_form()
    assert str(form.skeleton) == "C*u'' + C*u' + C*u^3 = F"
    assert form.values == pytest.approx((5.0, 1.0, 25.0))
    assert form.operator_form() is form
    assert form.skeleton.structure == equation.skeleton.structure


def test_operator_form_clears_a_common_denominator():
    equation = System(Skeleton.read("u'' = (C*u' + C*F)/(1 + C*u^2)"), (-0.2, 0.5, 2.0))
    form = equation.operator_form()
    assert plain(form.sides[0][0]) == "2*u'' + 4*u^2*u'' + 0.4*u'"
    assert form.sides[0][1] == F


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("u' = C*u", "one equation with one input"),
        ("u' = C*u*F", "term of its own"),
        ("u' = F*u + C*F", "term of its own"),
        ("x' = C*y + F; y' = C*x", "one equation with one input"),
    ],
)
def test_operator_form_needs_a_forcing_of_its_own(text, sentence):
    skeleton = Skeleton.read(text)
    with pytest.raises(LgfError, match=sentence):
        System(skeleton, (1.0,) * skeleton.n_constants).operator_form()


def test_own_forcing_leaves_zero_on_the_right():
    assert skeleton_of("own forcing", "C*u'+C*u").right == ZERO
