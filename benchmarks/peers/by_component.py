"""Peers for one equation on systems: each right-hand side by itself, from smoothed states and their smoothed slopes.

It runs in the environment of the peer that it is given by name. In, as JSON on the standard input: states [N, n],
slopes [N, n], seed, cores, evaluations (of each row, for a peer that counts them). Out, as JSON in the last line:
equations (one text a state in x0, x1, ...) and cpu_seconds.
"""

import json
import re
import sys
import time
from importlib import import_module

import numpy as np

from benchmarks.peers.exchange import Task


def main(peer: str) -> None:
    """Reads the task, asks the peer for every row, writes the answer."""
    given = json.load(sys.stdin)
    states, slopes = np.asarray(given["states"], float), np.asarray(given["slopes"], float)
    names = tuple(f"x{i}" for i in range(states.shape[1]))
    solve = import_module(f"benchmarks.peers.{peer}").solve
    began, equations = time.process_time(), []
    for i in range(len(names)):
        task = Task(
            names, states, slopes[:, i], 1, 0, states[:, i], tuple(states[0]), given["seed"], given["cores"],
            given["evaluations"],
        )  # fmt: skip
        equations.append(re.sub(r"\bX(\d+)\b", r"x\1", solve(task)[0]))
    print(json.dumps({"equations": equations, "cpu_seconds": time.process_time() - began}))


if __name__ == "__main__":
    main(sys.argv[1])
