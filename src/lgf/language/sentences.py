"""The equation of a sentence, with the names of the grammar or of a frame of one state.

Grammars name the state u and the known input F, whatever a problem calls them. If a problem has several inputs, a
summand with F stands for one such summand per input, each with constants of its own.
"""

from collections.abc import Sequence

from lgf.equation.skeleton import Skeleton, numbered, order_of
from lgf.equation.structure import leading_fixed
from lgf.expression.canonical import canonical
from lgf.expression.frame import HIGHEST_ORDER, Frame, Variable
from lgf.expression.parse import ReadingError, read_expression
from lgf.expression.tree import (
    ZERO,
    Expression,
    add,
    constant,
    is_input,
    mul,
    signal,
    substitute,
    summands,
    symbol,
)
from lgf.grammar.rules import TEMPLATES
from lgf.grammar.vocabulary import INPUT_WORD, STATE_WORD

INPUT = signal(INPUT_WORD)
_CONSTANT_OFFSET = 1_000_000  # more constants than a sentence can have; callers renumber them


class NoEquation(ValueError):
    """A sentence that is no differential equation; `reason` is "unreadable", "vanishes", "no derivative" or "order"."""

    def __init__(self, reason: str, message: str):
        super().__init__(message)
        self.reason = reason


def grammar_frame(order: int, forced: bool) -> Frame:
    """The frame of an equation of this order with the names of grammars."""
    return Frame(((STATE_WORD, order),), (INPUT_WORD,) if forced else ())


def _has_grammar_names(frame: Frame) -> bool:
    """Whether the frame has the names of grammars."""
    return frame.names == (STATE_WORD,) and frame.inputs in ((), (INPUT_WORD,))


def skeleton_of(template: str, sentence: str | Expression, frame: Frame | None = None) -> Skeleton:
    """The canonical skeleton of a grammar's sentence, with the frame's names; raises NoEquation if there is none.

    template         equation
    "explicit"       u^(order) = sentence
    "own forcing"    sentence = 0, one coefficient of the highest derivative fixed at 1
    "given forcing"  sentence = F

    The sentence must have the order of the frame. Without a frame it sets the order; for an explicit right-hand side
    this is the least possible. The fixed coefficient 1 excludes the equation 0 = 0.
    """
    if template not in TEMPLATES:
        raise ValueError(f"unknown template {template!r}; known are {', '.join(TEMPLATES)}")
    try:
        inside = read_expression(sentence) if isinstance(sentence, str) else sentence
    except ReadingError as error:  # a sentence may be longer or deeper than the reader allows
        raise NoEquation("unreadable", error.message) from error
    if template == "explicit":
        right, _ = canonical(inside)
        below = order_of(right)
        order = max(1, below + 1) if frame is None else frame.orders[0]
        if below >= order or order > HIGHEST_ORDER:
            raise NoEquation("order", f"the right-hand side has a derivative of order {below}, not below {order}")
        left = symbol(STATE_WORD, order)
    else:
        left, _ = canonical(inside) if template == "given forcing" else leading_fixed(inside)
        right = ZERO if template == "own forcing" else INPUT
        if left == ZERO:
            raise NoEquation("vanishes", "the operator is zero for every function")
        order = order_of(left)
        if order < 1:
            raise NoEquation("no derivative", "the operator has no derivative of u")
        if order > HIGHEST_ORDER if frame is None else order != frame.orders[0]:
            raise NoEquation("order", f"the operator has order {order}")
    if frame is None:
        forced = any(is_input(n) for e in (left, right) for n in e.nodes())
        return Skeleton(grammar_frame(order, forced), ((left, right),))
    return numbered(frame, ((in_frame(left, frame), in_frame(right, frame)),))


def in_frame(expression: Expression, frame: Frame) -> Expression:
    """An expression of a grammar with the names of a frame of one state."""
    if _has_grammar_names(frame):
        return expression
    name, order = frame.states[0]
    names = {symbol(STATE_WORD, d): symbol(name, d) for d in range(order + 1)}
    if len(frame.inputs) == 1:
        names[INPUT] = frame.input_symbols[0]
    renamed = substitute(expression, names)
    if len(frame.inputs) < 2 or not any(n == INPUT for n in renamed.nodes()):
        return renamed
    return _for_each_input(renamed, frame.input_symbols)


def _for_each_input(expression: Expression, inputs: Sequence[Expression]) -> Expression:
    """The sum with every summand that holds F repeated for each input, with distinct constants."""
    terms: list[Expression] = []
    for summand in summands(expression):
        if INPUT not in summand.nodes():
            terms.append(summand)
            continue
        constants = [n for n in summand.nodes() if n.head == "constant"]
        for i, signal_symbol in enumerate(inputs):
            renumbered = {c: constant(c.args[0] + i * _CONSTANT_OFFSET) for c in constants}
            if summand == INPUT and i > 0:  # the other inputs of `operator = F` have coefficients
                terms.append(mul(constant(len(inputs) * _CONSTANT_OFFSET + i), signal_symbol))
            else:
                terms.append(substitute(summand, {**renumbered, INPUT: signal_symbol}))
    return add(*terms)


def in_grammar_words(skeleton: Skeleton) -> Skeleton | None:
    """The skeleton of one state with the names of grammars; None if it treats its inputs differently."""
    frame = skeleton.frame
    if len(frame.states) != 1:
        return None
    if _has_grammar_names(frame):
        return skeleton
    sides = []
    for side in skeleton.sides[0]:
        word = _grammar_expression(side, frame)
        if word is None:
            return None
        sides.append(word)
    return numbered(grammar_frame(frame.orders[0], bool(frame.inputs)), (tuple(sides),))


def _grammar_expression(expression: Expression, frame: Frame) -> Expression | None:
    name, order = frame.states[0]
    names = {symbol(name, d): symbol(STATE_WORD, d) for d in range(order + 1)}
    names |= dict.fromkeys(frame.input_symbols, INPUT)
    if len(frame.inputs) < 2:
        return substitute(expression, names)
    terms: list[Expression] = []
    forms: dict[Expression, set[Expression]] = {}
    for summand in summands(expression):
        inputs = [n for n in summand.nodes() if is_input(n)]
        if not inputs:
            terms.append(substitute(summand, names))
        elif len(set(inputs)) > 1:
            return None
        else:
            word = substitute(summand, names)
            form, _ = canonical(word)
            if forms.get(INPUT) and form == mul(constant(0), INPUT):  # the form of the other inputs of `operator = F`
                form = INPUT
            if form not in forms:
                terms.append(word)
            forms.setdefault(form, set()).add(inputs[0])
    if any(len(inputs) != len(frame.inputs) for inputs in forms.values()):
        return None
    return add(*terms)


def grammar_term(term: Expression, frame: Frame) -> Expression:
    """A single term of a frame with the names of grammars; every input is F."""
    if _has_grammar_names(frame):
        return term
    name, order = frame.states[0]
    names = {symbol(name, d): symbol(STATE_WORD, d) for d in range(order + 1)}
    return substitute(term, names | dict.fromkeys(frame.input_symbols, INPUT))


def phrase(variable: Variable | str) -> str:
    """The word of a grammar for time or a variable of one state."""
    return variable if isinstance(variable, str) else str(Variable(STATE_WORD, variable.derivative))
