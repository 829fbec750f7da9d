import numpy as np

from lgf.equation.simplification import simplify
from lgf.equation.skeleton import Skeleton
from lgf.equation.system import System

T = np.linspace(0, 5, 50)
DATA = {"t": T, "u": 1 + 0.5 * np.cos(T), "u'": -0.5 * np.sin(T), "u''": -0.5 * np.cos(T), "F": np.sin(T)}


def _simplified(text, values, scale=1.0):
    data = {k: v if k == "t" else v * scale for k, v in DATA.items()}
    return simplify(System(Skeleton.read(text), tuple(values)), data)


def test_negligible_summands_go():
    result = _simplified("C*u'' + C*u' + C*u + C*u^3 = F", (1.1, 0.5, 2.0, 1e-3))
    assert str(result.skeleton) == "C*u'' + C*u' + C*u = F"
    assert result.values == (1.1, 0.5, 2.0)


def test_negligible_factors_and_inner_summands_go():
    result = _simplified("u'' = C*u*exp(C*t) + C/(1 + C*u)", (-2.0, 1e-6, 3.0, 1e-5))
    assert str(result.skeleton) == "u'' = C*u + C"
    assert result.values == (-2.0, 3.0)


def test_nothing_negligible_returns_the_same_equation():
    equation = System(Skeleton.read("u'' = C*u' + C*u"), (-0.5, 2.0), errors=(0.1, 0.1))
    assert simplify(equation, DATA) is equation


def test_the_relative_thresholds_do_not_depend_on_units():
    for scale in (1e-6, 1.0, 1e6):
        for coefficient, constants in ((0.5, 2), (0.02, 1)):
            result = _simplified("u' = C*u + C*u'^2", (1.5, coefficient / scale), scale)
            assert result.skeleton.n_constants == constants


def test_the_order_is_kept():
    result = _simplified("C*u'' + C*u' + C*u = F", (1e-6, 0.5, 2.0))
    assert result.frame.orders == (2,)


def test_a_summand_without_a_value_stays():
    result = _simplified("u' = C*u + C*log(u - 10)", (1.5, 1e-9))
    assert result.skeleton.n_constants == 2


PAIR = {"t": T, "x": 1 + 0.5 * np.cos(T), "y": 2 + np.sin(T), "x'": -0.5 * np.sin(T), "y'": np.cos(T), "F": np.sin(T)}


def test_each_equation_of_a_system_is_simplified():
    skeleton = Skeleton.read("x' = C*x + C*x*y + C*F; y' = C*y*exp(C*x) + C*x + C")
    system = System(skeleton, (1.5, 1e-5, -2.0, 0.7, 1e-6, 3.0, 1e-5), errors=(0.1,) * 7)
    result = simplify(system, PAIR)
    assert str(result.skeleton) == "x' = C*x + C*F\ny' = C*x + C*y"
    assert result.values == (1.5, -2.0, 3.0, 0.7)
    assert result.errors is None
    assert result.frame == system.frame


def test_a_summand_is_compared_within_its_own_equation():
    # 0.02 is little beside 5000 y but all that drives y
    system = System.read("x' = 5000*y + 0.02*x; y' = 0.02*x")
    result = simplify(system, PAIR)
    assert str(result.skeleton) == "x' = C*y\ny' = C*x"
    assert result.values == (5000.0, 0.02)


def test_a_system_without_anything_negligible_is_the_same_object():
    system = System.read("x' = 2*x - y; y' = x*y + 0.3*F", {"F": "sin(t)"})
    assert simplify(system, PAIR) is system
    shorter = simplify(System.read("x' = 2*x - y + 1e-9; y' = x*y + 0.3*F", {"F": "sin(t)"}), PAIR)
    assert shorter == system


def test_an_equation_may_lose_its_whole_right_side_but_not_its_derivative():
    result = simplify(System.read("x' = 1e-9*x; y' = 2*x"), PAIR)
    assert str(result) == "x' = 0\ny' = 2.0 x"


def test_a_negligible_derivative_of_another_state_goes():
    data = {**PAIR, "y''": -np.sin(T), "y'''": -np.cos(T)}
    result = simplify(System.read("x' = 2*x + 1e-7*y''; y''' = -y'"), data)
    assert str(result.skeleton) == "x' = C*x\ny''' = C*y'"
