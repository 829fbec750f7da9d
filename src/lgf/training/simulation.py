"""Simulated solutions of a skeleton: constants by which every term matters, starts, inputs, windows.

Constants are drawn against a rough picture of the solution: an oscillation of some size, about some level, with some
number of cycles in the window. A coefficient is drawn by the share that its term has of the highest derivative of that
picture, and a constant inside a function relative to the size of its cofactor. What is drawn so is solved, and a
solution is returned only if it stays finite, moves, and each term contributes to it what the others cannot say.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lgf.expression.numeric import evaluate
from lgf.expression.tree import Expression, T, is_input
from lgf.solver.constant_roles import Role
from lgf.solver.kernels.integrator import Options, integrate, make_workspace
from lgf.solver.kernels.machine import LANES, NO_TABLE, WIDE, evaluate_lanes
from lgf.solver.program import CompiledSkeleton

POINTS = 385
"""The samples of a solution: even over the window, and 384 has many divisors."""

_TAU = np.linspace(0.0, 1.0, POINTS)
_EVERY = 6  # of the points, at which the terms are compared
_PICTURE = 40  # points of the rough picture
_PICTURE_TAU = np.linspace(0.0, 1.0, _PICTURE)
_PIECES = 256  # of the table of an input
_INPUT_TAU = np.linspace(0.0, 1.0, _PIECES + 1)
_EXPONENTS = np.array([0.5, 1.5, 2.5, -1.0, 0.25, -0.5, 1.2, 0.75, -2.0, 3.5])

_WINDOW = 1.0, 60.0  # shortest and longest
_CYCLES = (0.15, 6.0), (0.25, 16.0)  # fewest and most of the picture in a window, for orders 1 and 2
_NATURAL = 0.35  # share of the windows chosen so that frequencies are about 1, as people choose units
_MOST_OF_ONE = 3  # solutions of one draw of a skeleton, of the eight that are tried
_LEAST_SHARE, _LARGEST_SHARE = 0.03, 30.0  # of a term's root mean square, relative to the highest derivative
_LEAST_OWN_SHARE = 0.02  # of the part of it that the other terms cannot express
_RTOL = 1e-5
_MOST_STEPS = 3000


@dataclass(frozen=True, eq=False)
class Solution:
    """A solution: columns [POINTS, order + 1] over an even window, and its input [POINTS] (zeros without one)."""

    columns: np.ndarray
    start: float
    window: float
    initial: np.ndarray
    forcing: np.ndarray


def solutions(
    compiled: CompiledSkeleton,
    positive: bool,
    late: bool,
    rng: np.random.Generator,
) -> list[Solution]:
    """Solutions of the skeleton of one state for constants, starts, a window and an input drawn by `rng`; may be empty.

    positive  only solutions with u > 0 are defined
    late      the window may not begin at t = 0
    """
    frame = compiled.frame
    order, forced = frame.orders[0], bool(frame.inputs)
    picture = _draw_picture(order, forced, positive, late, rng)
    drawn = _draw_constants(compiled, picture, rng)
    if drawn is None:
        return []
    constants, starts = drawn, _draw_starts(picture, positive, rng)
    values = _solve(compiled, picture, constants, starts)
    good = np.flatnonzero(_sound(values, order, positive))
    if len(good) == 0:
        return []
    forcing = np.interp(_TAU, _INPUT_TAU, picture.forcing) if forced else np.zeros(POINTS)
    matters = _every_term_matters(compiled, constants[:, good], picture, values[:, :, good], forcing)
    return [
        Solution(values[:, :, lane].copy(), picture.start, picture.window, starts[:, lane].copy(), forcing)
        for lane in good[matters][:_MOST_OF_ONE]
    ]


@dataclass(frozen=True, eq=False)
class _Picture:
    """A rough picture of a solution, by which constants are drawn."""

    order: int
    start: float
    window: float
    cycles: float
    size: float
    positive: bool
    t: np.ndarray
    columns: np.ndarray  # [order + 1, _PICTURE]
    forcing: np.ndarray  # [_PIECES + 1]

    @property
    def frequency(self) -> float:
        """The angular frequency."""
        return 2 * np.pi * self.cycles / self.window


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(*_logarithms(low, high))))


@lru_cache(maxsize=64)
def _logarithms(low: float, high: float) -> tuple[float, float]:
    return float(np.log(low)), float(np.log(high))


def _draw_picture(order: int, forced: bool, positive: bool, late: bool, rng: np.random.Generator) -> _Picture:
    window = _log_uniform(rng, *_WINDOW)
    cycles = _log_uniform(rng, *_CYCLES[order - 1])
    if rng.random() < _NATURAL:
        window = 2 * np.pi * cycles / np.exp(rng.normal(0.3, 0.7))
    start = 0.0 if not late and rng.random() < 0.55 else _log_uniform(rng, 0.1, 5.0)
    if late:
        start = max(start, 0.03 * window)
    size = float(np.exp(rng.normal(0.0, 1.2)))
    above = positive or (order == 1 and rng.random() < 0.6)
    tau = _PICTURE_TAU
    w = 2 * np.pi * cycles / window
    angle = w * window * tau + rng.uniform(0, 2 * np.pi)
    level, amplitude = (1.0, 0.7) if above else (0.0, 1.0)
    wave = np.sin(angle)
    columns = size * np.array([level + amplitude * wave, amplitude * w * np.cos(angle), -amplitude * w * w * wave])
    forcing = _draw_input(cycles, rng) * np.exp(rng.normal(0.0, 0.7)) if forced else np.zeros(_PIECES + 1)
    return _Picture(
        order, start, window, cycles, size, above, start + window * tau, columns[: order + 1].copy(), forcing
    )


def _draw_input(cycles: float, rng: np.random.Generator) -> np.ndarray:
    """Samples of an input of size about 1: a sine, two sines, a sweep, steps, or a decay."""
    kind = rng.random()
    w = 2 * np.pi * cycles * _log_uniform(rng, 0.3, 1.6)
    phase = rng.uniform(0, 2 * np.pi) if rng.random() < 0.4 else (0.0, np.pi / 2)[rng.integers(2)]
    tau = _INPUT_TAU
    wave = np.sin(w * tau + phase)
    if kind < 0.58:
        return wave
    if kind < 0.62:
        return np.exp(-tau * rng.uniform(0.5, 4.0)) * (wave if rng.random() < 0.5 else 1.0)
    if kind < 0.68:
        return np.tanh(8.0 * wave)
    if kind < 0.75:
        return np.sin(w * tau * (0.3 + tau) + phase)
    return wave + rng.uniform(0.3, 1.0) * np.sin(w * rng.uniform(0.3, 2.5) * tau + rng.uniform(0, 2 * np.pi))


def _draw_constants(compiled: CompiledSkeleton, picture: _Picture, rng: np.random.Generator) -> np.ndarray | None:
    """The constants [p, LANES]; None if a term vanishes or is not finite on the picture."""
    equation, order = compiled.equations[0], picture.order
    linear, nonlinear = equation.linear, equation.nonlinear
    constants = np.ones((compiled.n_constants, LANES))
    for i, role in zip(nonlinear, equation.roles, strict=True):
        size = _cofactor_size(role.cofactor, picture)
        constants[i] = [_draw_inner(role, size, picture, rng) for _ in range(LANES)]
    inputs = np.interp(_PICTURE_TAU, _INPUT_TAU, picture.forcing)[None]
    drawn = constants if len(nonlinear) else constants[:, :1]
    terms = _terms(compiled, drawn, picture.t, picture.columns[None], inputs)
    if not (terms.size and np.isfinite(terms).all()):
        return None
    sizes = np.sqrt(np.minimum(terms * terms, 1e30).mean(2))
    if not sizes.min() > 1e-14:
        return None
    shape = LANES, len(linear)
    shares = np.exp(rng.uniform(*_logarithms(0.08, 1.5), shape))
    sign, chance = np.where(rng.random(shape) < 0.5, -1.0, 1.0), rng.random(shape)
    u, du = picture.columns[0] - picture.columns[0].mean(), picture.columns[1]
    norms = sizes * np.sqrt(_PICTURE)
    like_u, like_du = terms @ u / (norms * np.sqrt(u @ u)), terms @ du / (norms * np.sqrt(du @ du))
    restoring = np.broadcast_to(np.abs(like_u) > 0.4, shape)
    mostly = np.where(chance < (0.85 if order == 2 else 0.65), -1.0, 1.0)
    sign = np.where(restoring, mostly * np.sign(like_u), sign)
    if order == 2:
        damping = (np.abs(like_du) > 0.4) & ~restoring
        sign = np.where(damping, np.where(chance < 0.8, -1.0, 1.0) * np.sign(like_du), sign)
        shares = np.where(damping, shares * np.exp(-rng.uniform(0, 1.5, (LANES, 1))), shares)
        # the first restoring term makes the oscillation of the picture
        lanes = np.flatnonzero(restoring.any(1))
        shares[lanes, restoring.argmax(1)[lanes]] = np.exp(rng.normal(0.0, 0.25, LANES))[lanes]
    constants[linear] = (sign * shares * picture.size * picture.frequency**order / sizes).T
    return constants


def _draw_inner(role: Role, size: float, picture: _Picture, rng: np.random.Generator) -> float:
    """A constant inside a function, an exponent or a sum, whose cofactor has this size."""
    if role.place == "exponent":
        return float(rng.choice(_EXPONENTS) if rng.random() < 0.5 else rng.uniform(-1.0, 3.0))
    if role.place == "offset":
        return rng.uniform(0, 2 * np.pi)
    if role.place in ("sin", "cos"):
        if role.cofactor == T:
            return picture.frequency * _log_uniform(rng, 0.15, 2.0)
        return _log_uniform(rng, 0.7, 4.0) / size
    if role.place in ("exp", "tanh"):
        return (-1.0, 1.0)[rng.integers(2)] * _log_uniform(rng, 0.4, 3.0) / size
    return _log_uniform(rng, 0.2, 8.0) / size * (1.0 if rng.random() < 0.93 else -0.3)


def _cofactor_size(cofactor: Expression | None, picture: _Picture) -> float:
    if cofactor is None or any(n.head == "constant" or is_input(n) for n in cofactor.nodes()):
        return 1.0
    environment = {"t": picture.t} | {("u", d): picture.columns[d] for d in range(picture.order + 1)}
    with np.errstate(all="ignore"):
        values = np.abs(np.broadcast_to(evaluate(cofactor, environment), picture.t.shape))
    values = np.sort(values[np.isfinite(values)])
    if len(values) == 0:
        return 1.0
    return float(values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2 or 1.0  # the median


def _terms(
    compiled: CompiledSkeleton, constants: np.ndarray, t: np.ndarray, columns: np.ndarray, inputs: np.ndarray
) -> np.ndarray:
    """The terms [lane, linear constant, sample] of the right side, without their coefficients; some may not be finite.

    constants [p, lanes]; columns [lanes, column, sample], or [1, column, sample] for all lanes.
    """
    basis = compiled.equations[0].basis
    out = np.zeros((constants.shape[1], len(basis.outputs), len(t)))
    registers = np.zeros((basis.n_registers, WIDE))
    known = inputs[: len(compiled.frame.inputs)]
    evaluate_lanes(basis, np.ascontiguousarray(constants.T), t, columns, known, registers, out)
    return -out[:, :-1]


def _draw_starts(picture: _Picture, positive: bool, rng: np.random.Generator) -> np.ndarray:
    """Initial states [order, LANES]: some at rest, some at the origin."""
    starts, speed = np.zeros((picture.order, LANES)), picture.size * picture.frequency
    for lane in range(LANES):
        u = picture.size * (0.15, 0.5, 1.0, 2.0)[rng.integers(4)] * rng.uniform(0.5, 1.5)
        u *= 1.0 if picture.positive or rng.random() < 0.6 else -1.0
        if picture.order == 2:
            if rng.random() < 0.15 and not positive:
                u = 0.0
            at_rest = rng.random() < 0.35 and u != 0.0
            starts[1, lane] = 0.0 if at_rest else speed * rng.normal(0.0, 0.7)
        starts[0, lane] = u
    return starts


def _solve(
    compiled: CompiledSkeleton,
    picture: _Picture,
    constants: np.ndarray,
    starts: np.ndarray,
) -> np.ndarray:
    """The trajectories [POINTS, order + 1, LANES], NaN where a lane did not get to the end."""
    flow, order = compiled.flow, picture.order
    scale = np.full(order, picture.size)
    limit = 40.0 * picture.size * np.array([1.0, 10.0 * picture.frequency])[:order]
    options = Options(
        _RTOL, 1e-2 * _RTOL * scale, picture.window / 20, limit, 1e-6 * scale, _MOST_STEPS,
        0.0, 0.0,
    )  # fmt: skip
    table = _table(picture) if compiled.frame.inputs else NO_TABLE
    work = make_workspace(flow, POINTS)
    integrate(
        flow, constants, LANES, starts.copy(), picture.start + picture.window * _TAU, table, options, False, True, work
    )
    values = work.Y
    values[:, :, (work.status != 0) | (work.reached < POINTS)] = np.nan
    return values


def _table(picture: _Picture) -> np.ndarray:
    """The input as the register machine reads it: cubic pieces with slopes by central differences."""
    f = picture.forcing
    rise, slope = np.diff(f), np.empty(_PIECES + 1)
    slope[0], slope[1:-1], slope[-1] = rise[0], (f[2:] - f[:-2]) / 2, rise[-1]
    table = np.empty((_PIECES + 1, 4))
    table[0] = picture.start, _PIECES / picture.window, 1.0, _PIECES
    table[1:, 0], table[1:, 1] = f[:-1], slope[:-1]
    table[1:, 2] = 3 * rise - 2 * slope[:-1] - slope[1:]
    table[1:, 3] = slope[:-1] + slope[1:] - 2 * rise
    return table


def _sound(values: np.ndarray, order: int, positive: bool) -> np.ndarray:
    """[LANES]: whether the solution is finite, moves, and is no single spike."""
    # one row a lane: along rows NumPy adds up much faster
    u, top = np.ascontiguousarray(values[:, 0].T), np.ascontiguousarray(values[::_EVERY, order].T)
    with np.errstate(all="ignore"):
        deviation, size, rate = _deviation(u), np.sqrt(_mean_square(u)), np.sqrt(_mean_square(top))
        # what is not finite compares as false
        good = (deviation > 0.04 * size) & (deviation > 1e-6) & (_deviation(u[:, POINTS // 4 :]) > 0.02 * deviation)
        good &= (rate > 1e-9) & (rate < 1e9) & (np.abs(top).max(1) < 12.5 * rate)
        if positive:
            good &= u.min(1) > 0
    return good


def _mean_square(rows: np.ndarray) -> np.ndarray:
    return np.einsum("lt,lt->l", rows, rows) / rows.shape[1]


def _deviation(rows: np.ndarray) -> np.ndarray:
    return np.sqrt(_mean_square(rows - rows.mean(1, keepdims=True)))


def _every_term_matters(
    compiled: CompiledSkeleton,
    constants: np.ndarray,
    picture: _Picture,
    columns: np.ndarray,
    forcing: np.ndarray,
) -> np.ndarray:
    """[lanes]: whether each term has its share of the highest derivative, and a part that the other terms cannot say.

    constants [p, lanes], columns [POINTS, order + 1, lanes].
    """
    t = picture.start + picture.window * _TAU[::_EVERY]
    few = np.ascontiguousarray(columns[::_EVERY].transpose(2, 1, 0))
    terms = _terms(compiled, constants, t, few, np.ascontiguousarray(forcing[None, ::_EVERY]))
    terms = terms * constants[compiled.equations[0].linear].T[:, :, None]
    sizes = np.sqrt((terms * terms).mean(2))
    shares = sizes / np.sqrt((few[:, -1] ** 2).mean(1))[:, None]
    good = (shares.min(1) >= _LEAST_SHARE) & (shares.max(1) <= _LARGEST_SHARE)
    if terms.shape[1] > 1:
        units = terms / np.maximum(sizes * np.sqrt(terms.shape[2]), 1e-300)[:, :, None]
        gram = units @ units.transpose(0, 2, 1) + 1e-10 * np.eye(terms.shape[1])
        gram[~good] = np.eye(terms.shape[1])
        own = 1.0 / np.sqrt(np.diagonal(np.linalg.inv(gram), axis1=1, axis2=2))
        good &= (own * shares).min(1) >= _LEAST_OWN_SHARE
    return good
