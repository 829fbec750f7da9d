"""The trajectory stage of a fit: Levenberg-Marquardt on the solved equation, with growing windows and restarts."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from lgf.equation.skeleton import Skeleton
from lgf.fit.segments import Shooting, joined, segmented
from lgf.fit.settings import FitSettings, Fitting, StageResult, error_of_solutions, make_fitting, segment_budget
from lgf.fit.sharing import Sharing
from lgf.fit.target import FINEST, Target
from lgf.solver.halton import halton
from lgf.solver.kernels.machine import LANES
from lgf.solver.kernels.trajectory_fit import Search, fit_trajectory

_WINDOWS = (0.1, 0.18, 0.32, 0.56, 1.0)  # shares of the record, used if the fit on the whole of it fails
_GROW_ABOVE = 0.5  # the relative loss above which it has failed
_FAR = 10.0  # above this many times the loss of the noise alone
_FAR_TOLERANCE = 0.05  # a fit stops at this rate of improvement
_FAR_IN_SEGMENTS = 20.0  # as _FAR
_TRUSTED = 100.0  # times the squared error of solutions: a loss above is that of the equation
_FINER = 1e-2  # the next tolerance of the solver
_RTOL_OF_ATOL = 1e-7  # below, the absolute tolerance falls with the relative one


def levenberg_marquardt(fitting: Fitting, starts: np.ndarray, rescue: bool) -> StageResult:
    """The best result from these starts; with `rescue` a poor one is followed by growing windows and other starts.

    Until a fit comes near the noise, solutions are coarse.
    """
    search = _search(fitting, 1.0, fitting.settings.rtol, np.inf, _budget(fitting))
    return _sharpened(fitting, _best_of_windows(fitting, starts, rescue), search)


def _best_of_windows(fitting: Fitting, starts: np.ndarray, rescue: bool) -> StageResult:
    settings, persistence = fitting.settings, fitting.settings.persistence
    if not rescue:
        return _on_windows(fitting, starts, (1.0,), settings.rtol)
    results = [_on_windows(fitting, starts, (1.0,), persistence.coarse_rtol, _GROW_ABOVE)]
    grown = results[0].loss > _GROW_ABOVE
    if grown:
        results.append(_on_windows(fitting, starts, _WINDOWS, persistence.coarse_rtol))
    best = _refined(fitting, results)
    if not best.loss <= persistence.rescue_above * fitting.target.noise_loss and fitting.compiled.n_constants:
        other_starts = _other_starts(fitting, starts, best.x)
        windows = (1.0,) if grown else _WINDOWS
        results = [best, _on_windows(fitting, other_starts, windows, persistence.coarse_rtol, persistence.rescue_below)]
        best = _refined(fitting, results)
    return best


def _sharpened(fitting: Fitting, result: StageResult, search: Search) -> StageResult:
    """The result under solutions so accurate that its loss is that of the equation rather than of the solver.

    A record without noise tells equations apart by losses far below the error of usual solutions.
    """
    rounding, windows = fitting.target.rounding_loss, fitting.target.windows()
    while search.rtol > FINEST:
        error = error_of_solutions(search.rtol) ** 2
        if max(result.loss, rounding) > _TRUSTED * error:
            break
        rtol = max(_FINER * search.rtol, FINEST)
        ratio = rtol / search.rtol
        more = ratio**-0.2  # the solver's order is 5
        steps = math.ceil(more * search.max_steps), math.ceil(more * search.budget)
        search = search._replace(rtol=rtol, max_steps=steps[0], budget=steps[1], leave_above=np.inf)
        finer = _fitted(fitting, result.x[None, :], windows, search)
        shift = ratio * (finer.x - result.x)  # errors of solutions are in proportion to tolerances
        result = finer._replace(
            evaluations=result.evaluations + finer.evaluations, steps=result.steps + finer.steps, shift=shift
        )
    return result


def _refined(fitting: Fitting, results: Sequence[StageResult]) -> StageResult:
    """The best of the results, refined with accurate solutions if it is near the noise; with the steps of all."""
    settings, best = fitting.settings, min(results, key=lambda f: f.loss)
    resolved = 10.0 * error_of_solutions(settings.persistence.coarse_rtol) ** 2  # below, coarse solutions do not tell
    if best.loss <= max(_FAR * fitting.target.noise_loss, resolved):
        results = [*results, _on_windows(fitting, best.x[None, :], (1.0,), settings.rtol)]
        best = results[-1]
    return best._replace(evaluations=sum(f.evaluations for f in results), steps=sum(f.steps for f in results))


def _on_windows(
    fitting: Fitting, starts: np.ndarray, fractions: tuple[float, ...], rtol: float, leave_above: float = np.inf
) -> StageResult:
    """The result on windows that grow to the whole record, each started from the result of the one before."""
    settings, budget = fitting.settings, _budget(fitting)
    results: list[StageResult] = []
    for fraction in fractions:
        results.append(on_window(fitting, starts, fraction, rtol, leave_above, budget))
        starts = results[-1].x[None, :]
        hopeless = results[-1].loss > settings.persistence.give_up * fitting.target.signal(fraction)
        if fraction < 1.0 and (hopeless or sum(f.steps for f in results) > budget):
            results.append(on_window(fitting, starts, 1.0, rtol, -1.0, budget))
            break
    evaluations, steps = sum(f.evaluations for f in results), sum(f.steps for f in results)
    return results[-1]._replace(evaluations=evaluations, steps=steps)


def _budget(fitting: Fitting) -> int:
    """The steps of a fit; implicit equations take longer, so they have fewer."""
    return fitting.settings.steps_per_fit // (1 if fitting.compiled.flow.degree == 1 else 4)


def on_window(
    fitting: Fitting, starts: np.ndarray, fraction: float, rtol: float, leave_above: float, budget: int
) -> StageResult:
    """The result on the first `fraction` of the record; the best start itself if its loss is above leave_above."""
    search = _search(fitting, fraction, rtol, leave_above, budget)
    return _fitted(fitting, starts, fitting.target.windows(fraction), search)


def _search(fitting: Fitting, fraction: float, rtol: float, leave_above: float, budget: int) -> Search:
    target, settings = fitting.target, fitting.settings
    whole = fraction == 1.0
    return Search(
        rtol=max(rtol, settings.rtol),
        max_steps=settings.steps_per_solve,
        with_highest=target.with_highest,
        leave_above=leave_above,
        max_iterations=settings.iterations if whole else 3,
        tolerance=settings.tolerance if whole else _FAR_TOLERANCE,
        far_loss=_FAR * target.noise_loss,
        far_tolerance=_FAR_TOLERANCE,
        hopeless_loss=settings.persistence.give_up * target.signal(fraction),
        budget=budget,
    )


def losses_on_record(fitting: Fitting) -> Callable[[np.ndarray], float]:
    """The loss of unknowns, moved into their limits, on the whole record; infinite where it is not a number."""
    flow, record, (lower, upper) = fitting.compiled.flow, fitting.target.record, fitting.unknown_limits
    search, windows = _search(fitting, 1.0, fitting.settings.rtol, -1.0, 0), fitting.target.windows(1.0)

    def loss(x: np.ndarray) -> float:
        return fit_trajectory(flow, record, fitting.unknowns, windows, x[None, :], lower, upper, search)[1]

    return loss


def on_first_samples(fitting: Fitting, start: np.ndarray, samples: np.ndarray) -> StageResult:
    """The result on the first `samples` [E] of each experiment, from a start near the solution."""
    settings, target = fitting.settings, fitting.target
    search = Search(
        rtol=settings.rtol,
        max_steps=settings.steps_per_solve,
        with_highest=target.with_highest,
        leave_above=np.inf,
        max_iterations=settings.iterations,
        tolerance=settings.tolerance,
        far_loss=np.inf,
        far_tolerance=_FAR_TOLERANCE,
        hopeless_loss=np.inf,
        budget=settings.steps_per_fit,
    )
    return _fitted(fitting, start[None, :], samples, search)


def _fitted(fitting: Fitting, starts: np.ndarray, windows: np.ndarray, search: Search) -> StageResult:
    flow, record, limits = fitting.compiled.flow, fitting.target.record, fitting.unknown_limits
    if search.rtol < _RTOL_OF_ATOL:
        record = record._replace(atol=record.atol * (search.rtol / _RTOL_OF_ATOL))
    starts = np.ascontiguousarray(starts)  # of another layout the kernel would be compiled again
    return StageResult(*fit_trajectory(flow, record, fitting.unknowns, windows, starts, *limits, search))


def shoot(
    skeleton: Skeleton,
    target: Target,
    settings: FitSettings,
    bounds: np.ndarray | None,
    sharing: Sharing,
    start: tuple[float, ...],
    shooting: Shooting,
) -> tuple[Fitting, StageResult]:
    """The fit in fewer and fewer segments: that of the smallest description length, and its result.

    Every segment has initial values, which cost description length. Longer segments are therefore better as long as
    the equations can follow the record through them. With `shooting.whole` the last stage is the result.
    """
    best: tuple[float, Fitting, StageResult] | None = None
    constants, evaluations, steps = np.array(start, float), 0, 0
    for count in shooting.segments:
        part = segmented(target, count)
        fitting = make_fitting(skeleton, part, settings, bounds, sharing)
        if best is not None:
            before, n_free = best[1].target, fitting.layout.n_free
            states = before.record.initial.copy()
            unknown = before.record.unknown
            states[unknown >= 0] = best[2].x[n_free:][unknown[unknown >= 0]]
            x = np.concatenate([best[2].x[:n_free], joined(states, before, part)])
        else:
            x = fitting.unknown_starts(constants[None, :])[0]
            if shooting.initial is not None and len(shooting.initial) == part.n_unknown:
                x[fitting.layout.n_free :] = shooting.initial
        result = _in_segments(fitting, x)
        evaluations, steps = evaluations + result.evaluations, steps + result.steps
        length = _length(part, result)
        if best is not None and not length < best[0] and not shooting.whole:
            break
        best = length, fitting, result
    assert best is not None
    return best[1], best[2]._replace(evaluations=evaluations, steps=steps)


def _in_segments(fitting: Fitting, x: np.ndarray) -> StageResult:
    target = fitting.target
    budget = segment_budget(fitting.settings, target.oscillations)
    search = Search(
        rtol=budget.rtol,
        max_steps=budget.steps_per_solve,
        with_highest=target.with_highest,
        leave_above=np.inf,
        max_iterations=budget.iterations,
        tolerance=budget.tolerance,
        far_loss=_FAR_IN_SEGMENTS * target.noise_loss,
        far_tolerance=budget.far_tolerance,
        hopeless_loss=np.inf,
        budget=budget.steps_per_fit,
    )
    return _sharpened(fitting, _fitted(fitting, x[None, :], target.windows(), search), search)


def _length(target: Target, result: StageResult) -> float:
    """The part of the description length that depends on the number of segments."""
    measured = list(target.measured)
    relative = result.losses[measured] / target.column_powers[measured]
    return float(target.column_counts[measured] @ np.log(np.maximum(relative, 1e-16))) + target.initial_length


def _other_starts(fitting: Fitting, starts: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Eight starts for a second try: the best so far, ones, absolute values, other signs and scales."""
    p, first = fitting.layout.n_free, starts[0]
    rows = [first[:p], x[:p], np.ones(p), np.abs(first[:p]), 0.3 * first[:p]]
    rows += [starts[k, :p] for k in range(1, min(len(starts), 3))]
    others = np.empty((LANES, len(first)))
    others[: len(rows), :p] = rows
    others[len(rows) :, :p] = first[:p] * _factors(p, LANES - len(rows))
    others[:, p:] = first[p:]  # the first guess of the initial values
    return others


@lru_cache(maxsize=64)
def _factors(p: int, n: int) -> np.ndarray:
    """Factors [n, p] of other signs and scales."""
    draws = halton(2 * p, n)
    return np.where(draws[:, :p] < 0.5, -1.0, 1.0) * 10.0 ** (2.0 * draws[:, p:] - 1.0)
