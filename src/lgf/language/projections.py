"""Projections of a record on every term of a grammar, and the features that a conditional flow reads of them.

In integral form the equation u^(n) = sum of C_j f_j says that u is a polynomial of degree n - 1 plus the sum of C_j
times the n-fold integral of f_j. So no derivative of the measured column is needed to see what a term explains of it.
Two integrals make large slow errors of the small ones that noise makes in f_j. So the columns are compared mode by
mode, and for order 2 modes slower than the record itself have little weight (see `_weights`).
What the initial values and the known input explain is projected out first. Features: what each term explains alone,
beside the linear terms, with its best partner, and of what the best pair leaves; what the headers of the grammar leave
(`header_features`); `missing` gives the first of these beside any terms. All features are free of units.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lgf.language.header_features import header_features, n_header_features
from lgf.language.term_table import FIRST_PEAK, FREQUENCY, N_UNITS, ONE_UNIT, PEAKS, RATE, TermTable
from lgf.smoothing.grid_integrals import GRID, TAU, grid_integrals
from lgf.solver.kernels.machine import LARGEST_VALUE
from lgf.solver.kernels.projections import beside, best_pairs, subtract_projection, term_rows

_MODES = 64  # of the grid, that are compared; faster ones are mostly noise
_LEAST = 1e-5  # of what is left, before its logarithm is taken
_CYCLES = np.geomspace(0.4, 24.0, 72)  # at which the spectrum is searched
_STEP = float(_CYCLES[1] / _CYCLES[0])
_LINE = np.linalg.qr(np.stack([np.ones(GRID), TAU], 1))[0]
_WAVES = np.exp(2j * np.pi * _CYCLES[:, None] * TAU) * np.hanning(GRID)
_WAVES = _WAVES - (_WAVES @ _LINE) @ _LINE.T  # a straight line has no spectrum
_COSINES, _SINES = np.ascontiguousarray(_WAVES.real), np.ascontiguousarray(_WAVES.imag)
_SINGLE_SCALARS = 17


@dataclass(frozen=True, eq=False)
class GridRecord:
    """One or more experiments of one state on the common grid.

    columns [experiment, order + 1, GRID], forcing [experiment, GRID] (zeros without an input), start and window
    [experiment]. `observed` is the derivative that was measured, `noise` the standard deviation of its noise relative
    to its own, `samples` the number of samples.
    """

    columns: np.ndarray
    forcing: np.ndarray
    start: np.ndarray
    window: np.ndarray
    order: int
    forced: bool
    observed: int
    noise: float
    samples: float


@dataclass(frozen=True, eq=False)
class Projections:
    """Inner products of the terms of a record, as unit columns beside initial values and the known input.

    gram [K, K], with_measured [K]; left is the share of the measured column outside initial values and input, group [K]
    the group of each column, features the static ones.
    """

    table: TermTable
    order: int
    gram: np.ndarray
    with_measured: np.ndarray
    left: float
    features: np.ndarray

    @property
    def group(self) -> np.ndarray:
        """The group of each column."""
        return self.table.by_order[self.order].group

    def missing(self, groups: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """(features of what is missing beside these groups, the column chosen for each group).

        Each group enters with the column that explains most beside those before it. The features are, for each group
        of the table, the logarithm of what it leaves of the rest, and two about the size of the rest.
        """
        chosen: list[int] = []
        free, share = np.zeros(len(self.group)), np.zeros(len(self.group))
        left = beside(self.gram, self.with_measured, np.array(chosen, np.int64), free, share)
        for group in groups:
            columns = _columns_of(self.table, self.order, group)
            if len(columns):
                chosen.append(int(columns[np.argmax(share[columns] ** 2)]))
                left = beside(self.gram, self.with_measured, np.array(chosen, np.int64), free, share)
        rest = np.log10(max(left, 1e-9))
        scalars = [rest, np.log10(self.left) + 0.5 * rest]
        explained = _by_group(_leaves(share**2), self.group, self.table.n_groups)
        return np.concatenate([explained, scalars]), np.array(chosen, np.int64)


def n_features(table: TermTable) -> tuple[int, int]:
    """The numbers of static features and of features of what is missing."""
    return 5 * table.n_groups + 8 + n_header_features(table) + _SINGLE_SCALARS, table.n_groups + 2


class ProjectionMemory:
    """The large arrays of the projections of one record after the other, of one experiment each.

    Fresh ones cost a third of the time of `project`, for the pages that the system has to clear. The inner products of
    a record are overwritten by the next one.
    """

    def __init__(self) -> None:
        self._arrays: dict[tuple[str, int], np.ndarray] = {}

    def array(self, name: str, shape: tuple[int, int]) -> np.ndarray:
        """The array of this name, in single precision, as it was left."""
        key = name, shape[0]
        if key not in self._arrays or self._arrays[key].shape != shape:
            self._arrays[key] = np.empty(shape, np.float32)
        return self._arrays[key]


def project(record: GridRecord, table: TermTable, memory: ProjectionMemory | None = None) -> Projections:
    """The projections of the record; without a memory of other records, in fresh arrays."""
    memory = ProjectionMemory() if memory is None else memory
    order, n = record.order, len(record.start)
    columns = np.ascontiguousarray(record.columns[:, : order + 1].swapaxes(0, 1).reshape(order + 1, -1), float)
    t = (record.start[:, None] + record.window[:, None] * TAU).ravel()
    forcing = np.ascontiguousarray(record.forcing.reshape(1, -1), float)
    measured = columns[record.observed]
    cycles, powers = _peaks(measured[:GRID])
    window = float(record.window.mean())
    units = np.ones(N_UNITS)
    units[RATE], units[FREQUENCY] = window, window / (2 * np.pi)
    units[FIRST_PEAK:] = window / (2 * np.pi * cycles)
    assert units[ONE_UNIT] == 1.0
    by_order = table.by_order[order]
    rows = memory.array("rows", (len(by_order.owner) + 1, len(t)))
    term_rows(
        by_order.programs, by_order.owner, by_order.relative, by_order.unit, units, by_order.cofactors, t, columns,
        forcing, LARGEST_VALUE, rows[:-1],
    )  # fmt: skip
    rows[-1] = forcing[0] / max(np.sqrt(_mean_square(forcing)), 1e-30) if record.forced else 0.0
    times = order - record.observed
    weights = _weights(record)
    # Terms, the known input, the measured column; single precision halves the time of the products.
    both = memory.array("both", (len(rows) + 1, n * _MODES))
    own = np.zeros((n * times, n * _MODES), np.float32)
    integrated, onto, of_start = _onto_modes(order, times)
    for e in range(n):
        here, there = slice(e * GRID, (e + 1) * GRID), slice(e * _MODES, (e + 1) * _MODES)
        np.matmul(rows[:, here], integrated, out=both[:-1, there])
        both[:-1, there] *= weights * np.float32(record.window[e] / window) ** times
        both[-1, there] = measured[here] @ onto * weights
        own[e * times : (e + 1) * times, there] = of_start * weights
    nuisance = np.concatenate([both[-2:-1] if record.forced else both[:0], own])
    both[-2] = 0.0
    both /= np.maximum(np.sqrt(np.einsum("kt,kt->k", both, both)), 1e-30)[:, None]
    left = subtract_projection(both, nuisance)
    both *= np.where(left > 1e-3, 1.0 / np.maximum(left, 1e-30), 0.0).astype(np.float32)[:, None]
    terms = len(both) - 2
    gram = np.matmul(both[:-2], both[:-2].T, out=memory.array("gram", (terms, terms)))
    with_measured = (both[:-2] @ both[-1]).astype(float)
    share = float(max(left[-1], 1e-6))
    scalars = _scalars(record, cycles, powers)
    features = _static(table, order, gram, with_measured, share, record.noise)
    headers = header_features(table, order, gram, with_measured)
    return Projections(table, order, gram, with_measured, share, np.concatenate([features, headers, scalars]))


@lru_cache(maxsize=4)
def _onto_modes(order: int, times: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Integration onto modes [GRID, _MODES], no integration onto modes, and the modes [times, _MODES] of the start."""
    integrals = grid_integrals(times or order)
    onto = integrals.modes[:, :_MODES].astype(np.float32)
    integrated = (integrals.sources * integrals.sizes)[:, :_MODES].astype(np.float32) if times else onto
    return np.ascontiguousarray(integrated), np.ascontiguousarray(onto), TAU ** np.arange(times)[:, None] @ onto


def _weights(record: GridRecord) -> np.ndarray:
    """The weight of each mode: of a record of order 2, 1 over the size of the errors in it.

    Noise in u makes errors of f(u) about w^2 times as large; w is the frequency of the record. They are integrated
    and added to those of the measured column. If u'' is measured, w^2 times the errors of u are added to it.
    """
    if record.order == 1 or record.observed == 1:
        return np.ones(_MODES, np.float32)
    u, du = record.columns[:, 0], record.columns[:, 1]
    level = 0.0 if record.observed else u.mean(1, keepdims=True)
    ratio = _mean_square(du * record.window[:, None]) / max(float(_mean_square(u - level)), 1e-300)
    sizes = grid_integrals(record.order).sizes[:_MODES]
    return (1.0 / np.sqrt(1.0 + (ratio * sizes) ** 2)).astype(np.float32)


def _static(
    table: TermTable, order: int, gram: np.ndarray, with_measured: np.ndarray, left: float, noise: float
) -> np.ndarray:
    group, n_groups = table.by_order[order].group, table.n_groups
    base = _base(table, order)
    free, share = np.zeros(len(group)), np.zeros(len(group))
    alone = _by_group(_leaves(with_measured**2), group, n_groups)
    of_base = beside(gram, with_measured, base, free, share)
    single, signed = _by_group(_leaves(share**2), group, n_groups), _signed(share, group, n_groups)
    pair = np.zeros(len(group))
    first, second = best_pairs(gram, with_measured, base, pair)
    paired = _by_group(_leaves(pair), group, n_groups)
    both = np.array([*base, first, second], np.int64)
    of_pair = beside(gram, with_measured, both, free, share)
    third = _by_group(_leaves(share**2), group, n_groups)
    # what each linear term is worth beside the best pair
    worth = np.zeros(3)
    for i in range(len(base)):
        without = beside(gram, with_measured, both[_others(len(both), i)], free, share)
        worth[i] = min(np.log10(max(without, 1e-10) / max(of_pair, 1e-10)), 4.0)
    sizes = [
        np.log10(left),
        0.5 * np.log10(of_base),
        0.5 * np.log10(of_pair / of_base),
        np.log10(left) + 0.5 * np.log10(of_pair),
        np.log10(noise + 1e-4),
    ]
    return np.concatenate([alone, single, signed, paired - paired.min(), third, sizes, worth])


@lru_cache(maxsize=8)
def _base(table: TermTable, order: int) -> np.ndarray:
    """The columns of the linear terms."""
    return np.array([_columns_of(table, order, g)[0] for g in table.base(order)], np.int64)


@lru_cache(maxsize=1024)
def _columns_of(table: TermTable, order: int, group: int) -> np.ndarray:
    """The columns of a group."""
    return np.flatnonzero(table.by_order[order].group == group)


@lru_cache(maxsize=32)
def _others(n: int, i: int) -> np.ndarray:
    """The numbers below n without i."""
    return np.delete(np.arange(n), i)


def _leaves(explained: np.ndarray) -> np.ndarray:
    return np.log10(np.maximum(1.0 - explained, _LEAST))


def _by_group(values: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
    """The smallest value of the columns of each group; 0 for a group without columns."""
    out = np.zeros(n_groups)
    np.minimum.at(out, group, values)
    return out


def _signed(share: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
    """The correlation of the column of each group that has the largest one."""
    low, high = np.zeros(n_groups), np.zeros(n_groups)
    np.minimum.at(low, group, share)
    np.maximum.at(high, group, share)
    return np.where(high > -low, high, low)


def _peaks(measured: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(cycles in the window, share of the power) of the strongest local maxima of the spectrum, strongest first."""
    power = (_COSINES @ measured) ** 2 + (_SINES @ measured) ** 2
    inner = np.flatnonzero((power[1:-1] >= power[:-2]) & (power[1:-1] > power[2:])) + 1
    strongest = inner[np.argsort(-power[inner], kind="stable")[:PEAKS]]
    cycles, powers = np.array([0.5, 1.0, 2.0]), np.zeros(PEAKS)
    total = max(float(power.sum()), 1e-300)
    for i, k in enumerate(strongest.tolist()):
        a, b, c = power[k - 1 : k + 2].tolist()
        shift = 0.5 * (a - c) / (a - 2 * b + c) if a - 2 * b + c < 0 else 0.0
        cycles[i] = float(_CYCLES[k]) * _STEP**shift
        powers[i] = b / total
    return cycles, powers


def _mean_square(values: np.ndarray) -> np.floating:
    """The mean of the squares, in the precision of the values; `np.mean` takes several times as long for so few."""
    return (values * values).sum() / values.size


def _scalars(record: GridRecord, cycles: np.ndarray, powers: np.ndarray) -> np.ndarray:
    order, window = record.order, float(record.window.mean())
    u, du, top = record.columns[:, 0], record.columns[:, 1], record.columns[:, order]
    size = max(float(np.sqrt(_mean_square(u))), 1e-30)
    low, high = float(u.min()), float(u.max())
    start = float(record.start[0])

    def logarithm(x: float) -> float:
        return float(np.log(max(x, 1e-6)))

    return np.array(
        [
            order == 2, record.forced, record.observed > 0, start > 0, start / (abs(start) + window),
            float(u.mean()) / size, low > 0, high < 0, order == 2 and (du.min() > 0 or du.max() < 0),
            (high - low) / size, logarithm(float(np.sqrt(_mean_square(du))) * window / size),
            logarithm(float(np.sqrt(_mean_square(top))) * window**order / size), np.log(record.samples),
            np.log(cycles[0]), np.log(cycles[1]), powers[0], powers[1],
        ],
        float,
    )  # fmt: skip
