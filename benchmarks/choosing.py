"""Selection of named problems on the command line, and their true structure in the form of the search."""

import re
from collections.abc import Sequence

from benchmarks.problems import NamedProblem, problems
from lgf.equation.skeleton import Skeleton
from lgf.errors import LgfError
from lgf.language.cheapest_derivation import branch_form
from lgf.language.language import explicit_form, linear_form

BENCHMARKS = ("b1", "b2", "b3", "b4")
PUBLISHED = BENCHMARKS[:3]


def benchmark_of(problem: str) -> str:
    """The benchmark that a problem's id belongs to."""
    return problem.partition("/")[0]


def chosen(only: str | None, benchmarks: Sequence[str] = BENCHMARKS) -> list[NamedProblem]:
    """The problems of these benchmarks, or only those listed: "b1,b3/duffing" is all of b1 and one of b3."""
    among = [p for p in problems().values() if benchmark_of(p.id) in benchmarks]
    if only is None:
        return among
    wanted = [name.strip() for name in only.split(",") if name.strip()]
    for name in wanted:
        if not any(name in (p.id, benchmark_of(p.id)) for p in among):
            raise LgfError(f"{name!r} is neither a benchmark nor a problem of {', '.join(benchmarks)}.")
    return [p for p in among if p.id in wanted or benchmark_of(p.id) in wanted]


def stated(skeleton: Skeleton) -> Skeleton:
    """The structure in the form that the search uses; for a squared equation, one branch."""
    return linear_form(explicit_form(branch_form(skeleton)))


def true_skeleton(problem: NamedProblem) -> Skeleton:
    """The true structure in the form that the search uses."""
    return stated(problem.true_equation().skeleton)


def written_skeleton(problem: NamedProblem) -> Skeleton:
    """The structure as the benchmark writes it: numbers are constants, except 0, 1 and exponents.

    "0.21-sin(u)" has one constant, where the search would fit two; the floor belongs to this form.
    """

    def constant(match: re.Match[str]) -> str:
        return match[0] if float(match[0]) in (0.0, 1.0) else "C"

    skeleton = Skeleton.read(re.sub(r"(?<![\w^.'])\d+(\.\d*)?(?![\w.])", constant, problem.equation))
    return skeleton if skeleton.n_constants else true_skeleton(problem)
