"""The growth of a small disturbance of the initial state along a record: how far a trajectory can be followed."""

import math
from itertools import pairwise

import numpy as np

from lgf.fit.target import Target
from lgf.search.candidate import Candidate
from lgf.search.sensitivity import exponential, jacobian, slopes_along, solved_columns
from lgf.solver.program import compile_skeleton


def disturbance_growth(candidate: Candidate, target: Target) -> float:
    """The amplification where there can be chaos, which takes three states, or two and time; 0 elsewhere."""
    dimension = target.frame.dimension
    if dimension < 2 or (dimension == 2 and candidate.skeleton.autonomous):
        return 0.0
    return amplification(candidate, target)


def amplification(candidate: Candidate, target: Target) -> float:
    """The logarithm of the largest factor by which a disturbed start grows along the record; infinite if undefined."""
    columns = solved_columns(candidate, target)
    if columns is None:
        return math.inf
    frame, n = target.frame, target.frame.dimension
    compiled = compile_skeleton(candidate.skeleton)
    slopes = slopes_along(compiled.equations, np.array(candidate.fit.values), target.t, columns, target.inputs, n)
    scales = np.maximum(columns[:n].std(axis=1), 1e-300)
    A = jacobian(slopes, frame.rates) * scales[None, None, :] / scales[None, :, None]
    if not np.all(np.isfinite(A)):
        return math.inf
    largest = 0.0
    first = np.append(target.record.first[:-1][np.diff(target.experiment, prepend=-1) != 0], len(target.t))
    for begin, end in pairwise(first):
        own = A[begin:end]
        steps = exponential(0.5 * (own[1:] + own[:-1]) * np.diff(target.t[begin:end])[:, None, None])
        if not np.all(np.isfinite(steps)):
            return math.inf
        product, shift = np.eye(n), 0.0
        for step in steps:
            product = step @ product
            size = float(np.linalg.norm(product))
            if not 0.0 < size < math.inf:
                return math.inf
            largest = max(largest, shift + math.log(size))
            shift, product = shift + math.log(size), product / size
    return largest
