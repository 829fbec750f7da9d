"""MathML says the same as the text for people, in tags that a page may make."""

import re

import pytest

from lgf.equation.system import System
from lgf.expression.frame import Frame
from lgf.expression.mathml import TAGS, markup, mathml
from lgf.expression.parse import read_expression


def flat(node):
    """The tree as text of one line: ^ and _ for scripts, / for fractions."""
    if isinstance(node, str):
        return node
    tag, *children = node
    parts = [flat(c) for c in children]
    marks = {"msup": "^", "msub": "_", "mfrac": "/"}
    if tag == "msqrt":
        return f"√{{{parts[0]}}}"
    return f"{parts[0]}{marks[tag]}{{{parts[1]}}}" if tag in marks else "".join(parts)


@pytest.mark.parametrize(("text", "shown"), [
    ("4*u'' + u", "4u″+u"),
    ("-u - 3", "−u−3"),
    ("u*(u + 1)", "u(u+1)"),
    ("(u + 1)/(u - 2)", "u+1/{u−2}"),
    ("(u')^2*sin(u)", "(u′)^{2}sin(u)"),
    ("exp(-2*t)", "e^{−2t}"),
    ("sqrt(abs(u)) + tanh(u)", "√{|u|}+tanh(u)"),
    ("x0*theta_1", "x_{0}θ_{1}"),
    ("prey*predator", "prey·predator"),
    ("u^-2", "1/{u^{2}}"),
    ("3*u/(2*x0)", "3u/{2x_{0}}"),
    ("1e-7*u", "1·10^{−7}u"),
    ("u^(-1.5)", "u^{−1.5}"),
    ("u''''", "u⁗"),
])  # fmt: skip
def test_expressions(text, shown):
    frame = Frame((("u", 4), ("x0", 1), ("theta_1", 1), ("prey", 1), ("predator", 1)))
    assert flat(mathml(read_expression(text, frame), ())).replace("\u2062", "") == shown


def tags(node):
    yield node[0]
    for child in node[1:]:
        if not isinstance(child, str):
            yield from tags(child)


@pytest.mark.parametrize("text", [
    "u'' = -0.2*u' - 1.4*u - 5*u^3",
    "x' = 10*(y - x); y' = x*(28 - z) - y; z' = x*y - 2.5*z",
    "u' = -1.5e-9*u/(1 + u^2)*exp(-t) - tanh(u)*log(2 + u^2)",
])  # fmt: skip
def test_systems_have_the_numbers_of_their_text(text):
    system = System.read(text)
    node = system.mathml()
    assert set(tags(node)) <= TAGS
    marks = markup(node)
    assert marks.count("<") == 2 * marks.count("</")
    numbers = re.findall(r"(?<![\w.])\d+(?:\.\d+)?", re.sub(r"e([+-]\d+)", "", str(system)))
    shown = re.findall(r"<mn>([^<]*)</mn>", marks)
    for number in numbers:
        assert number in shown, number


def test_markup_escapes():
    assert markup(("mi", "a<b&c")) == "<mi>a&lt;b&amp;c</mi>"
