"""Simulated solutions of a skeleton: constants by which every term matters, starts, inputs, windows.

Constants are drawn against a rough picture of the solution: an oscillation of some size, about some level, with some
number of cycles in the window. A coefficient is drawn by the share that its term has of the highest derivative of that
picture, and a constant inside a function relative to the size of its cofactor. What is drawn so is solved, and a
solution is returned only if it stays finite, moves, and each term contributes to it what the others cannot say.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lgf.equation.skeleton import Skeleton
from lgf.expression.numeric import evaluate
from lgf.expression.tree import Expression, T, is_input
from lgf.solver.constant_roles import Role
from lgf.solver.kernels.integrator import N_STAGES, N_WORK, Options, Workspace, integrate
from lgf.solver.kernels.machine import LANES, NO_TABLE, WIDE, evaluate_wide
from lgf.solver.program import CompiledSkeleton, compile_skeleton

POINTS = 385
"""The samples of a solution: even over the window, and 384 has many divisors."""

_TAU = np.linspace(0.0, 1.0, POINTS)
_EVERY = 6  # of the points, at which the terms are compared
_PICTURE = 40  # points of the rough picture
_PIECES = 256  # of the table of an input
_INPUT_TAU = np.linspace(0.0, 1.0, _PIECES + 1)
_EXPONENTS = np.array([0.5, 1.5, 2.5, -1.0, 0.25, -0.5, 1.2, 0.75, -2.0, 3.5])


@dataclass(frozen=True)
class SimulationSettings:
    """Ranges of what is drawn, and when a solution is used.

    window, cycles   shortest and longest window, and fewest and most cycles of the picture in it (orders 1 and 2)
    most_of_one      the most solutions of one draw of a skeleton, of the eight that are tried
    least_share      a term's root mean square, relative to the highest derivative
    least_own_share  the same for the part of it that the other terms cannot say
    """

    window: tuple[float, float] = (1.0, 60.0)
    cycles: tuple[tuple[float, float], tuple[float, float]] = ((0.15, 6.0), (0.25, 16.0))
    natural: float = 0.35  # share of the windows chosen so that frequencies are about 1, as people choose units
    most_of_one: int = 3
    least_share: float = 0.03
    largest_share: float = 30.0
    least_own_share: float = 0.02
    rtol: float = 1e-5
    max_steps: int = 3000


@dataclass(frozen=True, eq=False)
class Solution:
    """A solution: columns [POINTS, order + 1] over an even window, and its input [POINTS] (zeros without one)."""

    columns: np.ndarray
    start: float
    window: float
    initial: np.ndarray
    forcing: np.ndarray


def solutions(
    skeleton: Skeleton,
    positive: bool,
    late: bool,
    rng: np.random.Generator,
    settings: SimulationSettings = SimulationSettings(),
) -> list[Solution]:
    """Solutions of the skeleton of one state for constants, starts, a window and an input drawn by `rng`; may be empty.

    positive  only solutions with u > 0 are defined
    late      the window may not begin at t = 0
    """
    compiled = compile_skeleton(skeleton)
    frame = skeleton.frame
    order, forced = frame.orders[0], bool(frame.inputs)
    picture = _draw_picture(order, forced, positive, late, rng, settings)
    drawn = _draw_constants(compiled, picture, rng)
    if drawn is None:
        return []
    constants, starts = drawn, _draw_starts(picture, positive, rng)
    values = _solve(compiled, picture, constants, starts, settings)
    good = np.flatnonzero(_sound(values, order, positive))
    found: list[Solution] = []
    forcing = np.interp(_TAU, _INPUT_TAU, picture.forcing) if forced else np.zeros(POINTS)
    for lane in good:
        columns = values[:, :, lane]
        if _every_term_matters(compiled, constants[:, lane], picture, columns, forcing, settings):
            start = starts[:, lane].copy()
            found.append(Solution(columns.copy(), picture.start, picture.window, start, forcing))
            if len(found) == settings.most_of_one:
                break
    return found


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
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _draw_picture(
    order: int, forced: bool, positive: bool, late: bool, rng: np.random.Generator, settings: SimulationSettings
) -> _Picture:
    window = _log_uniform(rng, *settings.window)
    cycles = _log_uniform(rng, *settings.cycles[order - 1])
    if rng.random() < settings.natural:
        window = 2 * np.pi * cycles / np.exp(rng.normal(0.3, 0.7))
    start = 0.0 if not late and rng.random() < 0.55 else _log_uniform(rng, 0.1, 5.0)
    if late:
        start = max(start, 0.03 * window)
    size = float(np.exp(rng.normal(0.0, 1.2)))
    above = positive or (order == 1 and rng.random() < 0.6)
    tau = np.linspace(0.0, 1.0, _PICTURE)
    w = 2 * np.pi * cycles / window
    angle = w * window * tau + rng.uniform(0, 2 * np.pi)
    level, amplitude = (1.0, 0.7) if above else (0.0, 1.0)
    columns = size * np.stack(
        [level + amplitude * np.sin(angle), amplitude * w * np.cos(angle), -amplitude * w * w * np.sin(angle)]
    )
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
    sizes_inside = [_cofactor_size(role.cofactor, picture) for role in equation.roles]
    shares = np.exp(rng.uniform(np.log(0.08), np.log(1.5), (LANES, len(linear))))
    signs = rng.choice([-1.0, 1.0], (LANES, len(linear)))
    chance = rng.random((LANES, len(linear)))
    u, du = picture.columns[0] - picture.columns[0].mean(), picture.columns[1]
    u, du = u / np.linalg.norm(u), du / np.linalg.norm(du)
    inputs = np.interp(np.linspace(0, 1, _PICTURE), _INPUT_TAU, picture.forcing)[None]
    sizes = like_u = like_du = np.zeros(0)
    for lane in range(LANES):
        if lane == 0 or len(nonlinear):
            for i, role, size in zip(nonlinear, equation.roles, sizes_inside, strict=True):
                constants[i, lane] = _draw_inner(role, size, picture, rng)
            columns = _terms(compiled, constants[:, lane], picture.t, picture.columns, inputs)
            if columns is None:
                return None
            sizes = np.sqrt(np.minimum(columns**2, 1e30).mean(1))
            if not (len(sizes) and sizes.min() > 1e-14):
                return None
            norms = sizes * np.sqrt(_PICTURE)
            like_u, like_du = columns @ u / norms, columns @ du / norms
        share, sign = shares[lane], signs[lane]
        restoring = np.abs(like_u) > 0.4
        mostly = np.where(chance[lane] < (0.85 if order == 2 else 0.65), -1.0, 1.0)
        sign = np.where(restoring, mostly * np.sign(like_u), sign)
        if order == 2:
            damping = (np.abs(like_du) > 0.4) & ~restoring
            mostly = np.where(chance[lane] < 0.8, -1.0, 1.0)
            sign = np.where(damping, mostly * np.sign(like_du), sign)
            share = np.where(damping, share * np.exp(-rng.uniform(0, 1.5)), share)
            if restoring.any():
                share[np.flatnonzero(restoring)[0]] = np.exp(rng.normal(0.0, 0.25))
        constants[linear, lane] = sign * share * picture.size * picture.frequency**order / sizes
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
    values = values[np.isfinite(values)]
    return float(np.median(values)) or 1.0 if len(values) else 1.0


def _terms(
    compiled: CompiledSkeleton, constants: np.ndarray, t: np.ndarray, columns: np.ndarray, inputs: np.ndarray
) -> np.ndarray | None:
    """The terms [linear constant, sample] of the right side, without their coefficients; None if one is not finite."""
    basis = compiled.equations[0].basis
    out = np.zeros((len(basis.outputs), len(t)))
    registers = np.zeros((basis.n_registers, WIDE))
    known = inputs[: len(compiled.frame.inputs)]
    evaluate_wide(basis, np.ascontiguousarray(constants), t, np.ascontiguousarray(columns), known, registers, out)
    return -out[:-1] if np.all(np.isfinite(out)) else None


def _draw_starts(picture: _Picture, positive: bool, rng: np.random.Generator) -> np.ndarray:
    """Initial states [order, LANES]: some at rest, some at the origin."""
    starts = np.zeros((picture.order, LANES))
    for lane in range(LANES):
        u = picture.size * (0.15, 0.5, 1.0, 2.0)[rng.integers(4)] * rng.uniform(0.5, 1.5)
        u *= 1.0 if picture.positive or rng.random() < 0.6 else -1.0
        if picture.order == 2:
            if rng.random() < 0.15 and not positive:
                u = 0.0
            at_rest = rng.random() < 0.35 and u != 0.0
            starts[1, lane] = 0.0 if at_rest else picture.size * picture.frequency * rng.normal(0.0, 0.7)
        starts[0, lane] = u
    return starts


def _solve(
    compiled: CompiledSkeleton,
    picture: _Picture,
    constants: np.ndarray,
    starts: np.ndarray,
    settings: SimulationSettings,
) -> np.ndarray:
    """The trajectories [POINTS, order + 1, LANES], NaN where a lane did not get to the end."""
    flow, order = compiled.flow, picture.order
    scale = np.full(order, picture.size)
    limit = 40.0 * picture.size * np.array([1.0, 10.0 * picture.frequency])[:order]
    options = Options(
        settings.rtol, 1e-2 * settings.rtol * scale, picture.window / 20, limit, 1e-6 * scale, settings.max_steps,
        0.0, 0.0,
    )  # fmt: skip
    table = _table(picture) if compiled.frame.inputs else NO_TABLE
    work = _workspace(order, flow.program.n_registers)
    work.Y.fill(np.nan)
    integrate(
        flow, constants, LANES, starts.copy(), picture.start + picture.window * _TAU, table, options, False, True, work
    )
    values = work.Y
    values[:, :, (work.status != 0) | (work.reached < POINTS)] = np.nan
    return values


@lru_cache(maxsize=64)
def _workspace(order: int, registers: int) -> Workspace:
    """Memory that every solve of this size uses again."""
    return Workspace(
        np.zeros((registers, LANES)),
        np.zeros((registers, WIDE)),
        np.zeros((N_WORK, LANES)),
        np.zeros((N_STAGES, order, LANES)),
        np.zeros((POINTS, order + 1, LANES)),
        np.zeros(LANES, np.int64),
        np.zeros(LANES, np.int64),
    )


def _table(picture: _Picture) -> np.ndarray:
    """The input as the register machine reads it: cubic pieces with slopes by central differences."""
    f = picture.forcing
    slope = np.gradient(f)
    rise = np.diff(f)
    pieces = np.stack([f[:-1], slope[:-1], 3 * rise - 2 * slope[:-1] - slope[1:], slope[:-1] + slope[1:] - 2 * rise], 1)
    return np.concatenate([[[picture.start, _PIECES / picture.window, 1.0, float(_PIECES)]], pieces])


def _sound(values: np.ndarray, order: int, positive: bool) -> np.ndarray:
    """[LANES]: whether the solution is finite, moves, and is no single spike."""
    u, top = values[:, 0], values[::_EVERY, order]
    with np.errstate(all="ignore"):
        good = np.isfinite(u).all(0) & np.isfinite(top).all(0)
        deviation, size = u.std(0), np.sqrt((u**2).mean(0))
        rate = np.sqrt((top**2).mean(0))
        good &= (deviation > 0.04 * size) & (deviation > 1e-6) & (u[POINTS // 4 :].std(0) > 0.02 * deviation)
        good &= (rate > 1e-9) & (rate < 1e9) & (np.abs(top).max(0) < 12.5 * rate)
        if positive:
            good &= u.min(0) > 0
    return good


def _every_term_matters(
    compiled: CompiledSkeleton,
    constants: np.ndarray,
    picture: _Picture,
    columns: np.ndarray,
    forcing: np.ndarray,
    settings: SimulationSettings,
) -> bool:
    """Whether each term has its share of the highest derivative, and a part that the other terms cannot say."""
    t = picture.start + picture.window * _TAU[::_EVERY]
    few = np.ascontiguousarray(columns[::_EVERY].T)
    terms = _terms(compiled, constants, t, few, forcing[None, ::_EVERY])
    if terms is None:
        return False
    terms = terms * constants[compiled.equations[0].linear][:, None]
    sizes = np.sqrt((terms**2).mean(1))
    shares = sizes / np.sqrt((few[-1] ** 2).mean())
    if not (shares.min() >= settings.least_share and shares.max() <= settings.largest_share):
        return False
    if len(terms) > 1:
        unit = terms / sizes[:, None]
        gram = unit @ unit.T / unit.shape[1] + 1e-10 * np.eye(len(unit))
        own = 1.0 / np.sqrt(np.diag(np.linalg.inv(gram)))
        return bool((own * shares).min() >= settings.least_own_share)
    return True
