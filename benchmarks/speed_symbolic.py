"""Speed of the symbolic layer: `python benchmarks/speed_symbolic.py` prints what `measure()` returns."""

import json
import subprocess
import sys
import time
from collections.abc import Callable

from lgf.equation.complexity import node_count
from lgf.equation.structure import structure
from lgf.expression.canonical import canonical
from lgf.expression.parse import read_equations, read_expression
from lgf.language.sentences import grammar_frame, skeleton_of

SENTENCES = (
    "C*u + C*u' + C*u^3 + C*sin(C*t)*u'^2",
    "C*u^2*(C + u^2*C) + C*exp(u*C)",
    "C*t*u^3/(C + u^2*C) + C*log(u*C*t) + C",
    "C*diff(diff(u,t),t) + C*t*diff(u,t)*u + C*sin(C*t)*u",
    "C/t*cos(C*t^2)*diff(u,t)*diff(u,t) + C*u - C*t^2*exp(C*t)",
    "C + C*u + C*u*u'/(1 + C*u^2) + C*cos(C*t + C)",
    "(C*u + C*u' + C*sin(C*t))/(1 + C*u^2)",
    "C*u' + C*u*(1 - C*u)*(C*u - 1) + C*abs(u')*u'",
)


def _seconds(work: Callable[[], object], repeats: int = 7) -> float:
    """Shortest processor time of one call, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def _import_seconds(module: str) -> float:
    code = f"import time; s = time.perf_counter(); import {module}; print(time.perf_counter() - s)"
    runs = (subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True) for _ in range(3))
    return min(float(run.stdout) for run in runs)


def measure() -> dict[str, float]:
    """Microseconds per sentence for each step of the symbolic layer, and milliseconds for its import."""
    rounds = 50
    trees = [read_expression(s) for s in SENTENCES]
    sides = [read_equations(f"{s} = F")[0] for s in SENTENCES]
    frame = grammar_frame(3, False)
    per_sentence = 1e6 / (rounds * len(SENTENCES))
    return {
        "read_us": per_sentence * _seconds(lambda: [read_expression(s) for _ in range(rounds) for s in SENTENCES]),
        "canonical_us": per_sentence * _seconds(lambda: [canonical(e) for _ in range(rounds) for e in trees]),
        "structure_us": per_sentence * _seconds(lambda: [structure(*s) for _ in range(rounds) for s in sides]),
        "node_count_us": per_sentence * _seconds(lambda: [node_count(e) for _ in range(rounds) for e in trees]),
        "sentence_to_skeleton_us": per_sentence
        * _seconds(lambda: [skeleton_of("explicit", e, frame) for _ in range(rounds) for e in trees]),
        "import_lgf_ms": 1e3 * _import_seconds("lgf"),
        "import_lgf_ode_skeleton_ms": 1e3 * _import_seconds("lgf.equation.skeleton"),
    }


if __name__ == "__main__":
    print(json.dumps({name: round(value, 1) for name, value in measure().items()}, indent=2))
