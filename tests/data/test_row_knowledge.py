"""Knowledge about single equations: its texts, and the gate that every skeleton passes."""

import numpy as np
import pytest

from lgf.data import Knowledge, Observation, Problem
from lgf.data.row_knowledge import allowed, fixed, impose, required, row_knowledge
from lgf.data.row_terms import read_row_term, read_shared
from lgf.equation.skeleton import Skeleton
from lgf.equation.terms import term_of
from lgf.equation.tied_constants import Contradiction
from lgf.errors import LgfError
from lgf.expression.frame import Frame
from lgf.expression.parse import read_expression

FRAME = Frame((("x", 1), ("v", 1)))
SKELETON = Skeleton.read("x' = C*v; v' = C*sin(x) + C*v", FRAME)


def term(text, frame=FRAME):
    return term_of(read_expression(text, frame))


def test_terms_are_read_with_and_without_their_row():
    assert (read_row_term("x*y").row, read_row_term("x': x*y").row) == (None, "x")
    assert str(read_row_term(" x :x*y ")) == "x: x*y"
    shared = read_shared("S: S*I = - I: S*I")
    assert (str(shared.left), str(shared.right), shared.factor) == ("S: S*I", "I: S*I", -1.0)
    assert read_shared("x: y = 2.5e-1 * y: x").factor == 0.25
    assert read_shared(str(shared)) == shared


def test_every_form_of_a_statement_means_the_same():
    texts = Knowledge(required=("x: v",), bounds={"v: x": "negative"}, known=["x' = v"], conserved="x + v")
    mappings = Knowledge(required={"x": "v"}, bounds={"v": {"x": "negative"}}, known={"x'": "v"}, conserved=["x + v"])
    for name in ("required", "bounds", "known", "conserved"):
        assert getattr(texts, name) == getattr(mappings, name)


def test_a_search_can_ask_for_what_is_known():
    known = row_knowledge(
        Knowledge(
            known={"x": "v"}, required={"v": "v"}, forbidden=("v: x^2", "x*v"), functions={"v": ("sin",)},
            autonomous=True,
        ),
        FRAME,
    )  # fmt: skip
    assert fixed(known, 0) == read_expression("v", FRAME)
    assert fixed(known, 1) is None
    assert required(known, 1) == (term("v"),)
    assert not required(known, 0)
    for text, row, may in (
        ("x^2", 1, False), ("x^2", 0, True), ("x*v", 0, False), ("sin(x)", 1, True), ("exp(x)", 1, False),
        ("exp(x)", 0, True), ("t", 0, False),
    ):  # fmt: skip
        assert allowed(known, row, term(text)) is may, text


def test_rows_of_populations_are_divisible_by_their_state():
    known = row_knowledge(Knowledge(populations=("x",)), FRAME)
    for text in ("x", "x*v", "x^2", "x/(1 + C*x)", "x*(1 - C*v)", "x*v/(1 + C*x)"):
        assert allowed(known, 0, term(text)), text
    for text in ("v", "1", "sqrt(x)", "v/x", "sin(x)", "1/(1 + C*x)"):
        assert not allowed(known, 0, term(text)), text
    assert allowed(known, 1, term("1"))


def test_a_known_row_keeps_its_numbers():
    known = row_knowledge(Knowledge(known={"x": "v", "v'": "-9.81*sin(x) + C*v"}), FRAME)
    opened = Skeleton.read("x' = C*v; v' = C*sin(x) + C*v", FRAME)
    assert str(impose(known, opened)) == "x' = v\nv' = -9.81*sin(x) + C*v"
    with pytest.raises(Contradiction, match="another right-hand side of x'"):
        impose(known, Skeleton.read("x' = C*v + C*x; v' = C*sin(x) + C*v", FRAME))


MONOD = {"x": "C0*x*v/(C1 + v)", "v": "-C2*C0*x*v/(C1 + v)"}


@pytest.mark.parametrize(("rows", "n"), [(MONOD, 3), ({"x": "C*v", "v": "C*x"}, 2), ({"x": "C5*v", "v": "C5*x"}, 1)])
def test_a_name_is_one_constant_in_all_known_rows(rows, n):
    known = row_knowledge(Knowledge(known=rows), FRAME)
    bare = "; ".join(f"{row}' = {right}" for row, right in rows.items()).translate({ord(d): "" for d in "0125"})
    imposed = impose(known, Skeleton.read(bare, FRAME))
    assert imposed.n_constants == n
    assert impose(known, imposed) == imposed


GATE = {
    "required": (Knowledge(required="x: x"), "lacks the required term x in the equation of x"),
    "required anywhere": (Knowledge(required="x^3"), r"lacks the required term x\^3$"),
    "forbidden": (Knowledge(forbidden="v: v"), "has v in the equation of v, which must not be there"),
    "functions": (Knowledge(functions=()), "where the functions allowed are none"),
    "variables": (Knowledge(variables=("x",)), "with a variable that is not allowed"),
    "population": (Knowledge(populations="x"), "has v in the equation of x, which is not divisible by x"),
    "conserved": (Knowledge(conserved="x + v"), r"sin\(x\) in v' and in no other equation"),
}


@pytest.mark.parametrize("name", GATE)
def test_the_gate_refuses_what_contradicts_the_knowledge(name):
    knowledge, says = GATE[name]
    with pytest.raises(Contradiction, match=says):
        impose(row_knowledge(knowledge, FRAME), SKELETON)


def test_what_agrees_passes_the_gate_unchanged():
    known = row_knowledge(Knowledge(required=("sin(x)", "x: v"), forbidden=("x^2",), functions=("sin",)), FRAME)
    assert impose(known, SKELETON) is SKELETON or impose(known, SKELETON) == SKELETON


def test_momentum_is_a_sum_of_velocities():
    frame = Frame((("x", 2), ("y", 2)))
    known = row_knowledge(Knowledge(conserved="3*x' + y'"), frame)
    tied = impose(known, Skeleton.read("x'' = C*x + C*y; y'' = C*x + C*y", frame))
    assert tied.n_constants == 2
    with pytest.raises(LgfError, match="is not a sum of x', y'"):
        row_knowledge(Knowledge(conserved="x + y"), frame)


def test_a_known_equation_tells_the_order():
    t = np.linspace(0, 1, 30)
    observation = Observation(t, np.column_stack([t, t**2]), ("x", "y"))
    assert Problem((observation,), Knowledge(known={"x''": "-x"})).frames[0].orders == (2, 1)
    assert Problem((observation,), Knowledge(known={"x": "-x - x'"})).frames[0].orders == (2, 1)
    with pytest.raises(LgfError, match="derivative 2 of x was measured but order 1"):
        Problem((Observation(t, np.column_stack([t, t**2]), ("x''", "y")),), Knowledge(known={"x": "y"}))


def test_knowledge_is_described_in_sentences():
    sentences = Knowledge(
        known={"x": "v"}, shared="S: S*I = -I: S*I", conserved="S + I", populations="S", forbidden="x: v^2",
        required="v", functions={"x": ()},
    ).describe()  # fmt: skip
    assert sentences == (
        "Functions allowed in the equation of x: none.",
        "Terms that must be there: v.",
        "Terms that must not be there: v^2 in the equation of x.",
        "Known right-hand side of x: v.",
        "The coefficient of S*I in the equation of S is -1 times the coefficient of S*I in the equation of I.",
        "Conserved: S + I does not change.",
        "Populations: S; each such right-hand side is divisible by its own state.",
    )


@pytest.mark.parametrize("text", ["x*v", "C*x + v", "sin(x) + v", "x^2", "x + tanh(C - v)"])
def test_a_conserved_quantity_is_a_sum_with_numbers(text):
    with pytest.raises(LgfError, match="is not a sum of x, v with numbers as weights"):
        row_knowledge(Knowledge(conserved=text), FRAME)
