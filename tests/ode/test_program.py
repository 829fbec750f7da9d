"""Register code against the plain evaluation of the tree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lgf.equation.skeleton import Skeleton
from lgf.expression import tree as ex
from lgf.expression.numeric import evaluate
from lgf.expression.parse import read_expression
from lgf.solver.kernels.machine import WIDE, evaluate_wide
from lgf.solver.program import GENERAL, compile_expression, compile_skeleton, compile_system

LEAVES = st.one_of(
    st.sampled_from([ex.T, ex.F, ex.U, ex.symbol("u", 1), ex.symbol("u", 2)]),
    st.integers(0, 2).map(ex.constant),
    st.sampled_from([-2.0, -1.0, 0.5, 1.0, 3.0]).map(ex.number),
)
TREES = st.recursive(
    LEAVES,
    lambda children: st.one_of(
        st.lists(children, min_size=2, max_size=4).map(lambda a: ex.add(*a)),
        st.lists(children, min_size=2, max_size=4).map(lambda a: ex.mul(*a)),
        st.tuples(children, st.sampled_from([-2.0, -1.0, 0.5, 2.0, 3.0, 5.0])).map(
            lambda a: ex.power(a[0], ex.number(a[1]))
        ),
        st.tuples(st.sampled_from(ex.FUNCTIONS), children).map(lambda a: ex.function(*a)),
    ),
    max_leaves=15,
)


def machine_value(program, order, constants, t, states, forcing):
    out = np.empty((len(program.outputs), len(t)))
    evaluate_wide(
        program.code, program.outputs, program.literals, order, len(constants), constants, t, states, forcing,
        np.zeros((program.n_registers, WIDE)), out,
    )  # fmt: skip
    return out


@settings(max_examples=300, deadline=None, derandomize=True)
@given(TREES)
def test_code_gives_the_value_of_the_tree(tree):
    rng = np.random.default_rng(1)
    t, states, forcing = rng.uniform(0.5, 2, 70), rng.normal(size=(3, 70)), rng.normal(size=70)
    constants = np.array([0.7, -1.3, 2.1])
    environment = {"t": t, "F": forcing, "u": states[0], ("u", 1): states[1], ("u", 2): states[2]}
    with np.errstate(all="ignore"):
        expected = np.broadcast_to(evaluate(tree, environment, constants), t.shape)
    got = machine_value(compile_expression(tree, 2, 3), 2, constants, t, states, forcing)[0]
    # Angles beyond 1e15 have no digits left; the machine calls them NaN.
    comparable = np.isfinite(expected) & (np.abs(expected) < 1e12) & np.isfinite(got)
    np.testing.assert_allclose(got[comparable], expected[comparable], rtol=1e-6, atol=1e-8)
    assert np.all(np.isfinite(got) <= ~np.isnan(expected) | ~np.isfinite(expected))


@pytest.mark.parametrize(
    ("text", "degree", "linear", "nonlinear"),
    [
        ("u'' = C*u + C*u'", 1, [0, 1], []),
        ("u'' = C*u + C*sin(C*t)", 1, [0, 1], [2]),
        ("u'' = (C*u + C*F)/(1 + C*u^2)", 1, [0, 1], [2]),
        ("C*u'' + C*u^2*u'' + C*u = F", 1, [0, 1, 2], []),
        ("u''*u' = C/t^3", 1, [0], []),
        ("u''^2 = C*u^2", 2, [0], []),
        ("C*u''^3 + u'' = C*u", 3, [0, 1], []),
        ("sin(u'') = C*u", GENERAL, [0], []),
        ("u' = C*u^C", 1, [0], [1]),
    ],
)
def test_degree_and_linear_constants(text, degree, linear, nonlinear):
    compiled = compile_skeleton(Skeleton.read(text))
    assert compiled.degree == degree
    assert compiled.linear.tolist() == linear
    assert compiled.nonlinear.tolist() == nonlinear


@pytest.mark.parametrize(
    ("text", "place", "cofactor"),
    [
        ("u' = C*sin(C*t)", "sin", "t"),
        ("u' = C*exp(C*u)", "exp", "u"),
        ("u' = C*u^2/(1 + C*u^2)", "sum", "u^2"),
        ("u' = C*u^C", "exponent", None),
        ("u' = C*cos(2*t + C)", "offset", "1"),
        ("u' = C*cos(C*t + 1)", "cos", "t"),
    ],
)
def test_role_of_a_nonlinear_constant(text, place, cofactor):
    role = compile_skeleton(Skeleton.read(text)).roles[0]
    assert role.place == place
    assert role.cofactor == (None if cofactor is None else read_expression(cofactor))


def test_basis_columns_add_up_to_the_residual():
    skeleton = Skeleton.read("C*u'' + C*u' + C*sin(C*t)*u = C*F")
    compiled = compile_skeleton(skeleton)
    rng = np.random.default_rng(2)
    t, states, forcing = rng.uniform(0.5, 2, 100), rng.normal(size=(3, 100)), rng.normal(size=100)
    constants = rng.normal(size=5)
    columns = machine_value(compiled.basis, 2, constants, t, states, forcing)
    total = constants[compiled.linear] @ columns[:-1] + columns[-1]
    environment = {"t": t, "F": forcing, "u": states[0], ("u", 1): states[1], ("u", 2): states[2]}
    np.testing.assert_allclose(total, evaluate(skeleton.residual, environment, constants), rtol=1e-12)


def test_a_system_has_one_output_per_state():
    program = compile_system([read_expression("x1"), read_expression("-x0*x1 + t")])
    out = machine_value(program, 2, np.zeros(0), np.array([2.0]), np.array([[3.0], [5.0], [0.0]]), np.zeros(1))
    np.testing.assert_allclose(out[:, 0], [5.0, -13.0])
