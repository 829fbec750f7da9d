import csv
import random
import subprocess
import sys
from pathlib import Path

import pytest
import sympy

from lgf.equation.complexity import complexity, node_count
from lgf.equation.skeleton import Skeleton
from lgf.equation.system import System
from lgf.expression.canonical import canonical
from lgf.expression.parse import read_equations, read_expression
from lgf.expression.print import plain
from lgf.expression.sympy_conversion import to_sympy
from lgf.expression.tree import T, add, function, mul, number, power, signal, symbol

with (Path(__file__).parent / "truths.csv").open() as file:
    TRUTHS = list(csv.DictReader(file))


@pytest.mark.parametrize(("suite", "mean"), [("b1", 23.2), ("b2", 18.1)])
def test_mean_over_the_true_equations_is_the_published_one(suite, mean):
    counts = [complexity(*read_equations(row["equation"])[0]) for row in TRUTHS if row["id"].startswith(suite + "/")]
    assert round(sum(counts) / len(counts), 1) == mean


def test_a_known_forcing_counts():
    equation = System.read("2*u'' + 1.02*u' + 5*u = F", inputs={"F": "2*sin(0.5*t)"})
    assert equation.complexity == 27  # what the paper gives for the pendulum it found
    assert System.read("2*u'' + 1.02*u' + 5*u = F").complexity == 25


def _random_expression(rng):
    """A sum of products as grammars write them: powers, functions of sums of one sign, quotients."""

    def coefficient():
        return number(rng.choice([-2, -1, 0.5, 1, 2, 3, 1.7, -0.3, 0.25]))

    def monomial(positive=False):
        c = coefficient()
        symbols = rng.choices([T, signal("F"), *(symbol("u", i) for i in range(4))], k=rng.randint(1, 2))
        c = number(abs(c.args[0])) if positive else c
        return mul(c, *(power(s, number(rng.choice([1, 1, 2, 3, -1, 0.5, -0.5, 1.3]))) for s in symbols))

    def factor():
        kind = rng.random()
        if kind < 0.4:
            return monomial()
        if kind < 0.6:
            inside = add(*(monomial() for _ in range(rng.randint(1, 3))), coefficient())
            return power(inside, number(rng.choice([1, -1, 2, -2, 0.5, 1.3])))
        name = rng.choice(["sin", "cos", "exp", "log", "tanh", "sqrt"])
        inside = add(*(monomial(positive=True) for _ in range(rng.randint(1, 3))))
        return function(name, inside if rng.random() < 0.5 or name in ("log", "sqrt") else mul(number(-1), inside))

    return add(*(mul(*(factor() for _ in range(rng.randint(1, 2)))) for _ in range(rng.randint(1, 3))))


@pytest.mark.parametrize("seed", range(8))
def test_node_count_is_that_of_sympy(seed):
    rng = random.Random(seed)
    for _ in range(60):
        expression, _ = canonical(_random_expression(rng))
        expected = sum(1 for _ in sympy.preorder_traversal(to_sympy(expression)))
        if not to_sympy(expression).has(sympy.I):
            assert node_count(expression) == expected, plain(expression)


def test_nodes_of_a_skeleton_are_counted_as_it_stands():
    assert Skeleton.read("u' = C*u + C").complexity == node_count(read_expression("C*u + C - u'")) == 14
    assert Skeleton.read("C*u'' + C*u = F").complexity == node_count(read_expression("C*u'' + C*u - F")) == 17


def test_sympy_is_not_imported_with_the_layer():
    code = "import sys, lgf.equation.skeleton, lgf.equation.simplification; sys.exit('sympy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
