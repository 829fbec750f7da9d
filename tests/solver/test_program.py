"""Register code against the plain evaluation of the tree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lgf.equation.skeleton import Skeleton
from lgf.expression import tree as ex
from lgf.expression.frame import Frame
from lgf.expression.functions import FUNCTIONS
from lgf.expression.numeric import evaluate
from lgf.expression.parse import read_expression
from lgf.solver.forcing import Forcing, input_table
from lgf.solver.kernels.machine import INPUT, LANES, WIDE, evaluate_wide, execute_lanes
from lgf.solver.program import GENERAL, compile_expression, compile_skeleton

FRAME = Frame((("u", 2),), ("F",))

LEAVES = st.one_of(
    st.sampled_from([ex.T, ex.signal("F"), ex.symbol("u"), ex.symbol("u", 1), ex.symbol("u", 2)]),
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
        st.tuples(st.sampled_from(list(FUNCTIONS)), children).map(lambda a: ex.function(*a)),
    ),
    max_leaves=15,
)


def machine_value(program, constants, t, columns, inputs):
    out = np.empty((len(program.outputs), len(t)))
    evaluate_wide(program, constants, t, columns, inputs, np.zeros((program.n_registers, WIDE)), out)
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
    got = machine_value(compile_expression(tree, FRAME, 3), constants, t, states, forcing[None])[0]
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
    (equation,) = compiled.equations
    assert compiled.flow.degree == degree
    assert compiled.n_constants == len(linear) + len(nonlinear)
    assert equation.linear.tolist() == linear
    assert equation.nonlinear.tolist() == nonlinear
    assert len(equation.roles) == len(nonlinear)


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
    role = compile_skeleton(Skeleton.read(text)).equations[0].roles[0]
    assert role.place == place
    assert role.cofactor == (None if cofactor is None else read_expression(cofactor))


def test_basis_columns_add_up_to_the_residual():
    skeleton = Skeleton.read("C*u'' + C*u' + C*sin(C*t)*u = C*F")
    (compiled,) = compile_skeleton(skeleton).equations
    rng = np.random.default_rng(2)
    t, states, forcing = rng.uniform(0.5, 2, 100), rng.normal(size=(3, 100)), rng.normal(size=100)
    constants = rng.normal(size=5)
    columns = machine_value(compiled.basis, constants, t, states, forcing[None])
    total = constants[compiled.linear] @ columns[:-1] + columns[-1]
    environment = {"t": t, "F": forcing, "u": states[0], ("u", 1): states[1], ("u", 2): states[2]}
    np.testing.assert_allclose(total, evaluate(skeleton.residuals[0], environment, constants), rtol=1e-12)


def test_a_system_has_one_output_per_state():
    compiled = compile_skeleton(Skeleton.read("x0' = x1; x1' = -x0*x1 + t"))
    columns = np.array([[3.0], [5.0], [0.0], [0.0]])
    out = machine_value(compiled.flow.program, np.zeros(0), np.array([2.0]), columns, np.zeros((0, 1)))
    np.testing.assert_allclose(out[:, 0], [5.0, -13.0])
    assert compiled.flow.n == 2
    assert compiled.flow.rates.tolist() == [0, 1]


MIXED = Frame((("x", 2), ("y", 1)), ("F", "G"))
COUPLED = Skeleton.read("x'' = C*x' + C*sin(C*y) + C*F; y' = C*y*G + C*x/(1 + C*y^2)", MIXED)


def _mixed_data(n=70):
    """(t, columns, inputs, the same by name) for the frame of two states and two inputs."""
    rng = np.random.default_rng(3)
    t, columns, inputs = rng.uniform(0.5, 2, n), rng.normal(size=(5, n)), rng.normal(size=(2, n))
    named = {str(v): column for v, column in zip(MIXED.columns, columns, strict=True)}
    return t, columns, inputs, {"t": t, **named, "F": inputs[0], "G": inputs[1]}


def test_each_equation_of_a_system_has_a_basis_of_its_own():
    t, columns, inputs, named = _mixed_data()
    constants = np.random.default_rng(4).normal(size=7)
    compiled = compile_skeleton(COUPLED)
    assert [e.linear.tolist() for e in compiled.equations] == [[0, 1, 3], [4, 5]]
    assert [e.nonlinear.tolist() for e in compiled.equations] == [[2], [6]]
    assert [e.roles[0].place for e in compiled.equations] == ["sin", "sum"]
    assert [[i for i, _ in e.divisors] for e in compiled.equations] == [[], [6]]
    for equation, residual in zip(compiled.equations, COUPLED.residuals, strict=True):
        values = machine_value(equation.basis, constants, t, columns, inputs)
        total = constants[equation.linear] @ values[:-1] + values[-1]
        np.testing.assert_allclose(total, evaluate(residual, named, constants), rtol=1e-11, atol=1e-12)


def test_the_flow_of_a_system_looks_its_sampled_inputs_up_and_holds_the_others():
    t, columns, _, named = _mixed_data(LANES)
    constants = np.random.default_rng(4).normal(size=7)
    sampled = Forcing.from_samples(np.linspace(0, 3, 31), np.cos(np.linspace(0, 3, 31)))
    flow = compile_skeleton(COUPLED, (("G", read_expression("exp(-t)")),)).flow
    assert (flow.degree, flow.n, flow.rates.tolist()) == (1, 3, [1, 2])
    assert [row[3] for row in flow.program.code.tolist() if row[0] == INPUT] == [0]
    R = np.zeros((flow.program.n_registers, LANES))
    R[0], R[1:6] = t, columns
    at = flow.program.constants_at
    R[at : at + 7] = constants[:, None]
    R[at + 7 : at + 7 + len(flow.program.literals)] = flow.program.literals[:, None]
    execute_lanes(flow.program.code, R, input_table([sampled, None]))
    named |= {"F": sampled.values(t), "G": np.exp(-t)}
    expected = [columns[1], *(evaluate(right, named, constants) for right in COUPLED.right_sides or ())]
    np.testing.assert_allclose(R[flow.program.outputs], expected, rtol=1e-12)
