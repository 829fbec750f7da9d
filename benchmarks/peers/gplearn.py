"""gplearn: genetic programming, 1,000 programs for 30 generations, with gplearn's own default parsimony pressure."""

import numpy as np
from gplearn.functions import _Function, make_function
from gplearn.genetic import SymbolicRegressor

from benchmarks.peers.exchange import Task, answer

_TEXT = {
    "add": "({} + {})",
    "sub": "({} - {})",
    "mul": "({} * {})",
    "div": "({} / {})",
    "sin": "sin({})",
    "cos": "cos({})",
    "log": "log(abs({}))",
    "sqrt": "sqrt(abs({}))",
    "exp": "exp({})",
}

_DEEPEST = 5  # one less than the reader of equations takes, for the scale in front
_NESTS = {"add": 0, "sub": 0, "log": 2, "sqrt": 2, "div": 2}  # all others once


def _bounded_exponential(x: np.ndarray) -> np.ndarray:
    return np.exp(np.minimum(x, 50.0))


def solve(task: Task) -> tuple[str, float]:
    """The best program of the last generation that nests no deeper than formulas may, and its fitness."""
    functions = [make_function(function=_bounded_exponential, name="exp", arity=1)]
    functions += [name for name in _TEXT if name != "exp"]
    size = float(np.std(task.y)) or 1.0
    model = SymbolicRegressor(
        population_size=1000,
        generations=30,
        function_set=functions,
        const_range=(-5.0, 5.0),
        metric="mse",
        p_crossover=0.7,
        p_subtree_mutation=0.1,
        p_hoist_mutation=0.05,
        p_point_mutation=0.1,
        n_jobs=task.cores,
        random_state=task.seed,
    ).fit(task.X, task.y / size)
    ranked = sorted((p for p in model._programs[-1] if p is not None), key=lambda program: program.fitness_)
    best = next(p for p in ranked if _written(p.program)[1] <= _DEEPEST)
    return f"{size!r}*{_written(best.program)[0]}", float(best.raw_fitness_)


def _written(program: list) -> tuple[str, int]:
    """The program, which gplearn keeps in prefix order, as a formula, and how deep all but its sums nest."""

    def read(position: int) -> tuple[str, int, int]:
        node = program[position]
        position += 1
        if not isinstance(node, _Function):
            return (f"x{node}" if isinstance(node, int) else f"({float(node)!r})"), 0, position
        parts, deepest = [], 0
        for _ in range(node.arity):
            part, depth, position = read(position)
            parts.append(part)
            deepest = max(deepest, depth)
        return _TEXT[node.name].format(*parts), deepest + _NESTS.get(node.name, 1), position

    return read(0)[:2]


if __name__ == "__main__":
    answer(solve)
