import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from lgf.expression.canonical import canonical
from lgf.expression.functions import FUNCTIONS
from lgf.expression.numeric import evaluate
from lgf.expression.parse import read_expression
from lgf.expression.print import plain
from lgf.expression.sympy_conversion import to_sympy
from lgf.expression.tree import Expression, T, add, constant, fill, function, mul, number, power, signal, symbol

POINTS = {
    "t": np.array([0.3, 0.7, 1.1, 1.9]),
    "u": np.array([0.4, 1.3, 0.8, 2.1]),
    "u'": np.array([0.9, 0.2, 1.4, 0.6]),
    "F": np.array([0.5, 1.0, 0.25, 2.0]),
}
LEAVES = st.one_of(
    st.sampled_from([-2.0, -1.0, 0.5, 1.0, 2.0, 3.0, 1.7, -0.3]).map(number),
    st.just(constant(0)),
    st.just(constant(0)),
    st.sampled_from([T, symbol("u"), symbol("u", 1), signal("F")]),
)


def _extend(inner):
    return st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda a: add(*a)),
        st.lists(inner, min_size=2, max_size=3).map(lambda a: mul(*a)),
        st.tuples(inner, st.sampled_from([-2.0, -1.0, 2.0, 3.0, 0.5, -0.5, 1.3])).map(
            lambda a: power(a[0], number(a[1]))
        ),
        inner.map(lambda e: power(e, constant(0))),
        st.tuples(st.sampled_from(list(FUNCTIONS)), inner).map(lambda a: function(*a)),
    )


def _own_constants(e, count=None):
    """The tree with a constant of its own at every place."""
    count = count if count is not None else iter(range(1000))
    if e.head == "constant":
        return constant(next(count))
    return e if e.is_leaf else Expression(e.head, tuple(_own_constants(a, count) for a in e.args))


TREES = st.recursive(LEAVES, _extend, max_leaves=14).map(_own_constants)
VALUES = st.lists(st.sampled_from([-1.4, -0.6, 0.3, 0.8, 1.2, 2.3]), min_size=20, max_size=20)


def _show(text):
    expression, values = canonical(read_expression(text))
    return plain(expression, ["C"] * len(values))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("C*C*u + C*u", "C*u"),
        ("2*u + C*u - 3*u", "C*u"),
        ("u*u^2 - u^3", "0"),
        ("C*exp(C*t + C)", "C*exp(C*t)"),
        ("exp(u)*exp(C*t)*exp(-u)", "exp(C*t)"),
        ("exp(0.5 - u)", "1.6487212707001282*exp(-u)"),
        ("C*(C + C*u)", "C*u + C"),
        ("u^C*u", "u^C"),
        ("C/(C + C*u)", "C/(C*u + 1)"),
        ("C/(C + 2*u)", "C/(C*u + 1)"),
        ("1/(C + C*u)", "C/(C*u + 1)"),
        ("1/(C + u)", "1/(u + C)"),
        ("C/(C + u + u^2)", "C/(u + u^2 + C)"),
        ("C*u^2/(C^2 + u^2)", "C*u^2/(C*u^2 + 1)"),
        ("C*u*(C*u - 1)*(1 - C*u)", "C*u + C*u^2 + C*u^3"),
        ("C*(1 + C*u)^2", "C*(C*u + 1)^2"),
        ("(C + C*u)*(C + C*t)", "C*(C*t + 1)*(C*u + 1)"),
        ("(u + C)*(u + C)", "C*u + u^2 + C"),
        ("C*u*(u - 1)", "C*u*(-u + 1)"),
        ("u*(1 - u)", "u - u^2"),
        ("C*(u - u^2)", "C*u*(-u + 1)"),
        ("C/(C*t + C*t*u)", "C/t/(C*u + 1)"),
        ("C/(1/t + C*u)", "C*t/(C*t*u + 1)"),
        ("C*u + C*u*(1 - u)", "C*u + C*u^2"),
        ("C*u + C*u*(1 - u + u^2)", "C*u + C*u^2*(-u + 1)"),
        ("C*u*log(C*u)", "C*u + C*u*log(u)"),
        ("log(2*u)", "log(2*u)"),
        ("sin(-u) + cos(-2*u) + tanh(1 - u)", "cos(2*u) - sin(u) - tanh(u - 1)"),
        ("C*abs(-3*u')*u'", "C*u'*abs(u')"),
        ("C*sin(C*t) + C*sin(C*t)", "C*sin(C*t) + C*sin(C*t)"),
        ("sin(C*t)*(C*u + C)", "C*(C*u + 1)*sin(C*t)"),
        ("sqrt(C + C*u)", "C*sqrt(C*u + 1)"),
        ("sqrt(u^2)", "sqrt(u^2)"),
        ("u^0.5*u^0.5", "u"),
        ("C*(2*u^3)^C", "C*u^C"),
        ("(2*u)^C", "(2*u)^C"),
        ("exp(C) + sin(C)", "C"),
        ("(2 + 2*u)/(1 + u)", "2"),
        ("cos(0) + 0*u", "1"),
        ("C*sin(C*t)*u'^2 + C*u^3 + C*u' + C*u", "C*u' + C*u'^2*sin(C*t) + C*u + C*u^3"),
    ],
)
def test_rules(text, expected):
    assert _show(text) == expected


@settings(max_examples=300, deadline=None, derandomize=True)
@given(TREES, VALUES)
def test_canonical_form_is_stable_readable_and_keeps_the_value(tree, values):
    form, _ = canonical(tree)
    assert canonical(form)[0] == form
    assert read_expression(plain(form)) == form
    form, mapped = canonical(tree, values)
    assert len(mapped) == sum(n.head == "constant" for n in form.nodes())
    sound = np.ones(4, dtype=bool)
    for node in tree.nodes():
        size = np.abs(evaluate(node, POINTS, values))
        sound &= (size < 1e6) & (size > 1e-6)
    before, after = evaluate(tree, POINTS, values), evaluate(form, POINTS, mapped)
    before, after = (np.broadcast_to(v, (4,))[sound] for v in (before, after))
    assert np.allclose(before, after, rtol=1e-6, atol=1e-7)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(TREES, VALUES)
def test_canonical_form_has_the_value_that_sympy_gives_the_original(tree, values):
    form, mapped = canonical(tree, values)
    point = {k: v[1] for k, v in POINTS.items()}
    sizes = [float(np.abs(evaluate(n, point, values))) for n in tree.nodes()]
    if not all(1e-6 < s < 1e6 for s in sizes):
        return
    t = sympy.Symbol("t")
    u, force = sympy.Function("u")(t), sympy.Function("F")(t)
    exact = to_sympy(fill(tree, values)).subs({u.diff(t): point["u'"]}).subs({u: point["u"], force: point["F"]})
    expected = complex(exact.subs({t: point["t"]}))
    assert expected.imag == pytest.approx(0, abs=1e-9)
    assert float(evaluate(form, point, mapped)) == pytest.approx(expected.real, rel=1e-6, abs=1e-7)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(TREES, st.randoms(use_true_random=False))
def test_the_order_of_terms_and_factors_does_not_matter(tree, random):
    def shuffled(e):
        if e.is_leaf:
            return e
        args = [shuffled(a) for a in e.args]
        if e.head in "+*":
            random.shuffle(args)
            return (add if e.head == "+" else mul)(*args)
        return Expression(e.head, tuple(args))

    def shape(e):
        return plain(canonical(_own_constants(e))[0], ["C"] * 40)

    other = shuffled(tree)
    if not any(n.head == "number" and n.args[0] % 1 for n in tree.nodes()):  # sums of fractions depend on the order
        assert shape(tree) == shape(other)


def test_a_negative_constant_leaves_its_sign_inside_a_root():
    form, values = canonical(read_expression("C*sqrt(C + C*u)"), [2.0, -4.0, 9.0])
    assert plain(form, ["C"] * 2) == "C*sqrt(C*u - 1)"
    assert values == pytest.approx((4.0, 2.25))


def test_a_zero_constant_is_not_divided_by():
    form, values = canonical(read_expression("C/(C*u + C)"), [2.0, 3.0, 0.0])
    assert evaluate(form, {"u": 2.0}, values) == pytest.approx(1 / 3)
