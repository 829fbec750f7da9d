"""Conservation laws and shared constants as ties between the constants of a skeleton."""

import numpy as np
import pytest

from lgf.equation.operator_form import untied
from lgf.equation.skeleton import Skeleton
from lgf.equation.system import System
from lgf.equation.terms import term_of
from lgf.equation.tied_constants import Contradiction, Relation, tie
from lgf.expression.numeric import evaluate
from lgf.expression.parse import read_expression

ALL = {0: 1.0, 1: 1.0, 2: 1.0}
BALANCED = {
    "chain": ("S' = C*S*I; I' = C*S*I + C*I; R' = C*I", ALL, 2),
    "branch": ("A' = C*A; B' = C*A; D' = C*A", ALL, 2),
    "saturation": ("A' = C*A/(1 + C*B); B' = C*A/(1 + C*B) + C*B; D' = C*B", ALL, 3),
    "a fixed number": ("A' = -2*A; B' = C*A + C*B; D' = C*A + C*B", ALL, 2),
    "weights": ("A' = C*A; B' = C*A; D' = C*D", {0: 1.0, 1: 2.0}, 2),
}


@pytest.mark.parametrize("name", BALANCED)
def test_a_law_holds_for_any_constants(name):
    text, law, n = BALANCED[name]
    tied = tie(Skeleton.read(text), [law])
    assert tied.n_constants == n
    rng = np.random.default_rng(0)
    values = tuple(rng.uniform(0.5, 2.0, n))
    states = {(name, 0): rng.uniform(0.5, 2.0, 5) for name in tied.frame.names}
    rights = [evaluate(right, states, values) for _, right in tied.sides]
    np.testing.assert_allclose(sum(weight * rights[row] for row, weight in law.items()), 0.0, atol=1e-12)
    assert tie(tied, [law]) == tied
    assert Skeleton.read(str(tied), tied.frame) == tied


REFUSED = {
    "alone": ("A' = C*B; B' = C*A; D' = C*A", [ALL], "has B in A' and in no other equation"),
    "two laws": ("A' = C*A; B' = C*A; D' = C*D", [{0: 1.0, 1: 1.0}, {0: 1.0, 1: 2.0}], "would have to be 0"),
    "fixed numbers": ("A' = -2*A; B' = 3*A; D' = C*D", [{0: 1.0, 1: 1.0}], "contradict each other"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_balance_is_refused(name):
    text, laws, says = REFUSED[name]
    with pytest.raises(Contradiction, match=says):
        tie(Skeleton.read(text), laws)


def test_coefficients_share_a_constant_up_to_a_factor():
    skeleton = Skeleton.read("x' = C*y + C*x; y' = C*x")

    def place(row, text):
        return row, term_of(read_expression(text, skeleton.frame))

    tied = tie(skeleton, relations=[Relation(place(0, "y"), place(1, "x"), -2.0)])
    assert tied.n_constants == 2
    row = tied.right_sides
    assert evaluate(row[0], {("x", 0): 0.0, ("y", 0): 1.0}, (3.0, 5.0)) == pytest.approx(5.0)
    assert evaluate(row[1], {("x", 0): 1.0, ("y", 0): 0.0}, (3.0, 5.0)) == pytest.approx(-2.5)
    with pytest.raises(Contradiction, match="without the term that shares its constant"):
        tie(Skeleton.read("x' = C*y; y' = C*y"), relations=[Relation(place(0, "y"), place(1, "x"))])


def test_quotients_share_their_constants_however_they_are_written():
    skeleton = Skeleton.read("S' = C*S*X/(C + S); X' = C*S*X/(C*S + 1) - C*X")
    quotient = term_of(read_expression("S*X/(C + S)", skeleton.frame))
    tied = tie(skeleton, relations=[Relation((0, quotient), (1, quotient), -1.0)])
    assert tied.n_constants == 3
    states = {("S", 0): np.array([0.5, 2.0]), ("X", 0): np.ones(2)}
    consumed = evaluate(tied.right_sides[0], states, (3.0, 4.0, 0.0))
    np.testing.assert_allclose(consumed, -evaluate(tied.right_sides[1], states, (3.0, 4.0, 0.0)))


def test_constants_that_a_skeleton_has_tied_stay_tied_under_a_law():
    skeleton = Skeleton.read("A' = C0*A + C1*B; B' = C2*A + C3*B; D' = -3*C0*D")
    tied = tie(skeleton, [{0: 1.0, 1: 1.0}])
    assert str(tied).splitlines()[2] == "D' = -3*C0*D"
    assert tied.n_constants == 2


def test_a_tied_system_is_shown_with_a_coefficient_and_an_error_in_every_place():
    tied = tie(Skeleton.read("A' = C*A; B' = C*A; D' = C*A"), [ALL])
    covariance = np.array([[0.04, 0.01], [0.01, 0.09]])
    shown, spread = untied(System(tied, (2.0, 3.0), (0.2, 0.3)), covariance)
    assert shown.values == pytest.approx((2.0, 3.0, -5.0))
    assert shown.errors == pytest.approx((0.2, 0.3, np.sqrt(0.04 + 0.09 + 0.02)))
    np.testing.assert_allclose(np.sqrt(np.diag(spread)), shown.errors)
    assert str(shown).splitlines()[2] == "D' = -5.00 A"
