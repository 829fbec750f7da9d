import pytest
import sympy
from benchmarks.from_sympy import from_sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from lgf.errors import LgfError
from lgf.expression.canonical import canonical
from lgf.expression.frame import Frame
from lgf.expression.parse import read_expression
from lgf.expression.sympy_conversion import to_sympy
from lgf.expression.tree import T, add, constant, function, mul, number, power, signal, symbol

LEAVES = st.one_of(
    st.integers(-4, 4).map(number),
    st.integers(0, 3).map(constant),
    st.sampled_from([T, signal("F"), symbol("u"), symbol("u", 1), symbol("u", 2), symbol("x1", 1)]),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda a: add(*a)),
        st.lists(inner, min_size=2, max_size=3).map(lambda a: mul(*a)),
        st.tuples(inner, st.sampled_from([-1, 2, 3])).map(lambda a: power(a[0], number(a[1]))),
        st.tuples(st.sampled_from(["sin", "cos", "tanh", "sqrt"]), inner).map(lambda a: function(*a)),
    ),
    max_leaves=6,
)


def test_to_sympy():
    t = sympy.Symbol("t")
    u = sympy.Function("u")(t)
    expected = 2 * u.diff(t, 2) + sympy.Symbol("C0") * sympy.Abs(u) * sympy.exp(-t) - sympy.sqrt(u) / t
    assert to_sympy(read_expression("2*u'' + C*abs(u)*exp(-t) - sqrt(u)/t")) == expected


def test_from_sympy():
    t = sympy.Symbol("t")
    u = sympy.Function("u")(t)
    given_expression = (
        sympy.Rational(1, 4) * u.diff(t).diff(t) + sympy.pi * sympy.log(t) ** 2 + sympy.sqrt(u) * sympy.Abs(u)
    )
    expected = read_expression("0.25*u'' + pi*log(t)^2 + sqrt(u)*abs(u)")
    assert canonical(from_sympy(given_expression)) == canonical(expected)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(TREES)
def test_there_and_back_is_the_same_expression(tree):
    converted = to_sympy(tree)
    irrational = any(e.is_number and not e.is_Rational for e in sympy.preorder_traversal(converted))
    if irrational:
        return
    assert sympy.simplify(to_sympy(from_sympy(converted)) - converted) == 0


@pytest.mark.parametrize(
    "expression",
    [
        sympy.Symbol("y"),
        sympy.I * sympy.Symbol("t"),
        sympy.gamma(sympy.Symbol("t")),
        sympy.atan2(sympy.Symbol("t"), 2),
        sympy.Derivative(sympy.Symbol("t") ** 2, sympy.Symbol("t")),
    ],
)
def test_what_has_no_counterpart_is_refused(expression):
    with pytest.raises(ValueError, match=r"known|counterpart|not the time derivative"):
        from_sympy(expression)


FRAME = Frame((("prey", 1), ("S", 2)), ("voltage",))


@pytest.mark.parametrize(
    "text", ["prey*S' - 2*S''", "voltage*exp(-t)*prey", "C*prey/(1 + C*S^2)", "sqrt(S)*tanh(prey')"]
)
def test_names_of_a_frame_go_there_and_back(text):
    expression = read_expression(text, FRAME)
    assert canonical(from_sympy(to_sympy(expression), FRAME))[0] == canonical(expression)[0]


def test_names_that_a_frame_lacks_are_refused_by_naming_its_own():
    t = sympy.Symbol("t")
    for name in ("u", "F", "x0"):
        with pytest.raises(LgfError, match="known are t, voltage, prey, S and C0"):
            from_sympy(sympy.Function(name)(t) + 1, FRAME)
    with pytest.raises(LgfError, match="not the time derivative of a state"):
        from_sympy(sympy.Function("voltage")(t).diff(t), FRAME)
