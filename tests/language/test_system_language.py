import heapq
import math
from itertools import islice, pairwise

import numpy as np
import pytest

from lgf.data.knowledge import Knowledge
from lgf.data.observation import Observation
from lgf.data.problem import Problem
from lgf.equation.skeleton import Skeleton
from lgf.errors import LgfError
from lgf.expression.canonical import canonical
from lgf.expression.frame import Frame, Variable
from lgf.expression.parse import read_expression
from lgf.expression.print import plain
from lgf.expression.tree import ONE, ZERO, substitute, symbol
from lgf.grammar import load_grammar, read_grammar
from lgf.language.domain import defined_on
from lgf.language.language import make_language
from lgf.language.row_language import (
    _least_bits,  # pyright: ignore[reportPrivateUsage]
    _sums,  # pyright: ignore[reportPrivateUsage]
)
from lgf.language.row_structure import RowStructure, right_side
from lgf.language.system_language import make_system_language
from lgf.language.term_dictionary import parts_of

SYSTEMS = load_grammar("systems")
PAIR = Frame((("x", 1), ("y", 1)))
MASSES = Frame((("x", 2), ("y", 2)))
MIXED = Frame((("x", 2), ("y", 1), ("z", 1)), ("F", "G"))


def language_of(frame, ranges=None, knowledge=None, grammar=SYSTEMS):
    t = np.linspace(0.0, 1.0, 5)
    columns = tuple(Variable(name) for name in frame.names)
    problem = Problem((Observation(t, np.ones((5, len(columns))), columns=columns),), knowledge or Knowledge())
    return make_system_language(grammar, problem, frame, ranges or {})


def term(text, frame=PAIR):
    (part,) = parts_of(read_expression(f"C*{text}", frame))
    return part


def spelled(language, row):
    return [plain(e, ["C"] * 9) for e, _ in language.terms(row)]


def test_terms_are_unique_sorted_and_canonical():
    for frame in (PAIR, MASSES, MIXED):
        language = language_of(frame)
        for row in range(len(frame.states)):
            terms = language.terms(row)
            assert all(a.bits <= b.bits for a, b in pairwise(terms))
            assert len({e for e, _ in terms}) == len(terms)
            assert all(parts_of(right_side(RowStructure((e,)))) == (e,) for e, _ in terms)


def test_probabilities_of_all_terms_add_up_to_one():
    for frame in (PAIR, MASSES, MIXED):
        language = language_of(frame)
        assert sum(2.0**-bits for _, bits in language.terms(0)) == pytest.approx(1.0, abs=0.01)


def test_what_a_row_may_hold_depends_on_orders_and_inputs():
    first = spelled(language_of(PAIR), 0)
    assert {"x", "y", "1", "x*y", "x^2*y", "sin(x - y)", "x*y/(C*x + 1)", "1/(C*exp(C*y) + 1)", "cos(C*t)"} <= {*first}
    assert not any("'" in text or "F" in text for text in first)
    second = spelled(language_of(MASSES), 1)
    assert {"x'", "y'", "-x + y", "-x' + y'", "y'*abs(y')", "y^2*y'"} <= {*second}
    mixed = language_of(MIXED)
    assert {"x'", "F", "G", "y*z", "F*x'"} <= {*spelled(mixed, 1)}
    assert not any("y'" in text or "x''" in text for text in spelled(mixed, 0))


def test_bits_of_a_row_are_those_of_the_number_of_terms_and_of_the_terms_in_any_order():
    language = language_of(PAIR)
    x, xy = term("x"), term("x*y")
    cost = dict(language.terms(0))
    two_terms = -math.log2(0.95 * 0.34)
    assert language.bits(0, (x, xy)) == pytest.approx(two_terms + cost[x] + cost[xy] - 1.0)
    assert language.bits(0, (x, xy)) == language.bits(0, (xy, x))
    twice = term("sin(C*t)")
    assert language.bits(0, (twice, twice)) == pytest.approx(two_terms + 2 * cost[twice])
    assert language.bits(0, (term("x^7"),)) == math.inf
    assert language.bits(0, ()) == math.inf


def test_simple_couplings_are_cheap():
    predation = Skeleton.read("x' = C*x + C*x*y; y' = C*x*y + C*y")
    assert sum(language_of(PAIR).row_bits(predation)) < 15
    assert sum(language_of(PAIR).row_bits(Skeleton.read("x' = C*sin(C*y); y' = C*x^2*y/(1 + C*x^2)"))) > 20


def test_a_skeleton_round_trip_keeps_terms_and_bits():
    for frame in (PAIR, MASSES, MIXED):
        language = language_of(frame)
        rng = np.random.default_rng(0)
        for _ in range(40):
            structures = []
            for row in range(len(frame.states)):
                some = rng.choice(len(language.terms(row)), 3, replace=False)
                divisor = language.divisors(row)[int(rng.integers(4))].expression if rng.random() < 0.3 else ONE
                terms = tuple(language.terms(row)[i].expression for i in some)
                structures.append(RowStructure(terms, divisor, language.bits(row, terms, divisor)))
            skeleton = language.skeleton(structures)
            for structure, bits in zip(structures, language.row_bits(skeleton), strict=True):
                assert bits <= structure.bits + 1e-9  # a sum may be written as fewer or cheaper terms: C*x + C*(x - y)
                assert math.isfinite(bits)


def test_constants_follow_the_terms():
    language = language_of(PAIR)
    rows = [
        RowStructure((term("y"), term("sin(C*x)")), canonical(read_expression("1 + C*x", PAIR))[0]),
        RowStructure((ONE, term("x/(1 + C*x)"))),
    ]
    assert str(language.skeleton(rows)) == "x' = (C*y + C*sin(C*x))/(C*x + 1)\ny' = C + C*x/(C*x + 1)"
    assert language.skeleton(rows).n_constants == 7


def test_structures_are_sorted_unique_and_priced_as_bits():
    for frame in (PAIR, MASSES):
        language = language_of(frame)
        structures = list(islice(language.structures(0), 600))
        assert all(a.bits <= b.bits + 1e-9 for a, b in pairwise(structures))
        other = RowStructure((ONE,))
        skeletons = [language.skeleton([s, other]) for s in structures]
        assert len({s.structure for s in skeletons}) == len(structures)
        for structure, skeleton in zip(structures[::7], skeletons[::7], strict=True):
            assert language.row_bits(skeleton)[0] == pytest.approx(structure.bits)
            assert language.bits(0, structure.terms, structure.divisor) == pytest.approx(structure.bits)


def test_the_cheapest_structures_are_those_of_all_sums_of_the_cheapest_terms():
    grammar = read_grammar(
        """
        template: system
        summand: T
        S -> T [0.5] | T + T [0.3] | T + T + T [0.2]
        T -> C*u [0.5] | C*v [0.25] | C*u*v [0.15] | C*sin(v) [0.07] | C [0.03]
        """
    )
    language = language_of(PAIR, grammar=grammar)
    every = [s.bits for s in language.structures(0)]
    terms = [e for e, _ in language.terms(0)]
    sums = [
        language.bits(0, [e for i, e in enumerate(terms) if subset >> i & 1])
        for subset in range(1, 2 ** len(terms))
        if subset.bit_count() <= 3
    ]
    assert every == pytest.approx(sorted(sums))


@pytest.mark.parametrize("frame", [PAIR, MASSES, Frame((("x", 1), ("y", 1)), ("F",))])
def test_renaming_states_permutes_terms_and_keeps_bits(frame):
    swapped = Frame(tuple(reversed(frame.states)), frame.inputs)
    for row in (0, 1):
        assert language_of(frame).terms(row) == language_of(swapped).terms(1 - row)
    names = {symbol("x", d): symbol("y", d) for d in range(2)} | {symbol("y", d): symbol("x", d) for d in range(2)}
    exchanged = {
        parts_of(right_side(RowStructure((substitute(e, names),))))[0]: bits for e, bits in language_of(frame).terms(0)
    }
    assert exchanged == pytest.approx(dict(language_of(frame).terms(1)))


def test_terms_that_are_undefined_on_the_data_are_excluded_and_their_share_is_redistributed():
    ranges = {"t": (0.0, 5.0), Variable("x"): (-1.0, 2.0), Variable("y"): (0.5, 2.0)}
    language = language_of(PAIR, ranges)
    terms = {*spelled(language, 0)}
    assert not {"sqrt(x)", "log(x)", "1/x", "x^C", "y/x", "1/t", "sqrt(x - y)", "sqrt(-x + y)"} & terms
    assert {"sqrt(y)", "log(y)", "1/y", "y^C", "x/y", "x/(C*x + 1)"} <= terms
    assert all(b < a for (e, a) in language_of(PAIR).terms(0) for b in [language.rows[0].cost.get(e, -1.0)])
    assert sum(2.0**-bits for _, bits in language.terms(0)) == pytest.approx(1.0, abs=0.01)
    assert term("x") not in {divisor for divisor, _ in language.divisors(0)}


@pytest.mark.parametrize(
    ("text", "low", "high", "defined"),
    [
        ("1/x", -1, 1, False),
        ("1/x", 0, 1, False),
        ("1/x", -3, -1, True),
        ("1/x^2", -1, 1, False),
        ("1/(1 + x^2)", -1, 1, True),
        ("1/(1 - x)", 2, 3, True),
        ("1/sin(x)", 0.5, 3, True),
        ("1/sin(x)", 3, 3.5, False),
        ("1/cos(x)", -1.5, 1.5, True),
        ("1/cos(x)", 4, 5, False),
        ("cos(x)/sin(x)", 7, 9, True),
        ("log(x)", 0.1, 1, True),
        ("log(exp(x))", -9, 9, True),
        ("log(tanh(x))", -1, 1, False),
        ("sqrt(abs(x))", 1, 2, True),
        ("sqrt(abs(x))", -2, -1, True),
        ("x^C", 0, 1, False),
        ("x^C", 0.1, 1, True),
        ("1/(1 + C*x)", -1, 1, True),
        ("log(1 + C*x)", -1, 1, True),
        ("x/abs(x)", -1, 1, False),
    ],
)
def test_definedness_on_ranges(text, low, high, defined):
    assert defined_on(read_expression(text, PAIR), {Variable("x"): (low, high)}) is defined


def test_knowledge_excludes_functions_variables_and_time():
    autonomous = spelled(language_of(PAIR, knowledge=Knowledge(autonomous=True)), 0)
    assert not any("t" in text.replace("tanh", "").replace("sqrt", "") for text in autonomous)
    polynomial = spelled(language_of(PAIR, knowledge=Knowledge(functions=())), 0)
    assert "x*y^2" in polynomial
    assert not any(name in text for text in polynomial for name in ("sin", "cos", "exp", "log", "sqrt", "abs", "tanh"))
    own = spelled(language_of(PAIR, knowledge=Knowledge(variables=("x",))), 1)
    assert "x^2" in own
    assert not any("y" in text for text in own)


def test_knowledge_of_a_row():
    knowledge = Knowledge(known={"x": "y + C*x"}, required=("y: x",), forbidden=("y: y",), functions={"y": ()})
    language = language_of(PAIR, knowledge=knowledge)
    (known,) = language.structures(0)
    assert known.bits == language.bits(0, ()) == 0.0
    assert str(language.skeleton([known, RowStructure((term("x"),))])) == "x' = y + C*x\ny' = C*x"
    assert language.row_bits(Skeleton.read("x' = y + C*x; y' = C*x + C*x*y"))[0] == 0.0
    assert language.bits(1, (term("x"), term("x*y"))) < math.inf
    assert language.bits(1, (term("x"), term("y"))) == math.inf
    assert language.bits(1, (term("x*y"),)) == math.inf
    assert language.bits(1, (term("x"), term("sin(x)"))) == math.inf
    assert all(term("x") in s.terms and term("y") not in s.terms for s in islice(language.structures(1), 100))


def test_a_required_term_need_not_be_one_of_the_grammar():
    language = language_of(PAIR, knowledge=Knowledge(required=("x: sin(x*y)^3",)))
    odd = term("sin(x*y)^3")
    assert language.terms(0)[-1] == (odd, pytest.approx(24.0))
    assert next(language.structures(0)).terms == (odd,)
    assert odd not in dict(language.terms(1))


def test_terms_are_printed_in_the_canonical_order():
    language = language_of(PAIR)
    rng = np.random.default_rng(1)
    for _ in range(40):
        chosen = [language.terms(0)[i].expression for i in rng.choice(len(language.terms(0)), 4, replace=False)]
        right = right_side(RowStructure(language.rows[0].ordered(chosen)))
        if len(parts_of(right)) == 4:
            assert canonical(right)[0] == right


def test_every_term_of_a_population_has_its_own_state_as_a_factor():
    terms = {*spelled(language_of(PAIR, knowledge=Knowledge(populations=("y",))), 1)}
    assert {"y", "x*y", "y^2", "x*y/(C*x + 1)"} <= terms
    assert not {"x", "1", "sin(y)", "1/y", "-x + y", "x/y"} & terms


def test_headers_may_hold_terms_and_factors():
    populations = read_grammar("template: system\nsummand: T\nS -> u*(C + N)\nN -> T | T + T\nT -> C*u | C*v | C/u")
    language = language_of(PAIR, grammar=populations)
    two, three = 1 + math.log2(3), 1 + 2 * math.log2(3) - 1
    assert language.row_bits(Skeleton.read("x' = C*x + C*x*y; y' = C*y + C*y^2 + C")) == pytest.approx((two, three))
    assert language.row_bits(Skeleton.read("x' = C*x*y; y' = C*y + C*y^2")) == pytest.approx((math.inf, two))


def test_a_summand_of_two_terms_is_refused():
    grammar = read_grammar("template: system\nsummand: T\nS -> T\nT -> C*u + C*v")
    with pytest.raises(LgfError, match=r"the summand C\*x\+C\*y of grammar 'grammar' is a sum of 2 terms"):
        language_of(PAIR, grammar=grammar)


def test_a_skeleton_of_another_frame_cannot_be_said():
    assert language_of(PAIR).row_bits(Skeleton.read("a' = C*b; b' = C*a")) == (math.inf, math.inf)


def test_a_grammar_for_systems_is_refused_for_one_state():
    t = np.linspace(0.0, 1.0, 5)
    problem = Problem((Observation(t, t, columns=(Variable("x"),)),))
    ranges = {"t": (0.0, 1.0), Variable("x"): (0.1, 1.0), Variable("x", 1): (1.0, 1.0)}
    with pytest.raises(LgfError, match="'systems' says systems, but x is the only state"):
        make_language(SYSTEMS, problem, Frame((("x", 1),)), ranges)


def test_a_system_language_of_one_state_has_no_couplings():
    terms = {*spelled(language_of(Frame((("x", 1),))), 0)}
    assert {"1", "x", "x^2", "x^3", "x/(C*x + 1)", "sin(x)"} <= terms


def by_canonical_forms(language, row):
    """The right-hand sides of a row by their bits, told apart by their canonical form: the slow counterpart."""
    rules = language.rows[row]
    headers = [h for group in rules.headers.values() for h in group if math.isfinite(_least_bits(h, rules))]
    seen = set()
    for structure in heapq.merge(*(_sums(header, rules) for header in headers), key=lambda s: s.bits):
        right, _ = canonical(right_side(structure))
        if right != ZERO and right not in seen:
            seen.add(right)
            yield structure


@pytest.mark.parametrize("frame", [PAIR, MASSES, MIXED])
def test_structures_are_those_of_different_canonical_forms(frame):
    language = language_of(frame)
    for row in range(len(frame.states)):
        assert list(islice(language.structures(row), 300)) == list(islice(by_canonical_forms(language, row), 300))
