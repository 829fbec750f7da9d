"""The linear responses of a fitted system to terms added to its rows, as inner products with its residual."""

from collections.abc import Sequence

import numpy as np

from lgf.expression.numeric import evaluate
from lgf.expression.tree import ONE
from lgf.fit.target import Target
from lgf.search.sensitivity import Linearisation
from lgf.search.systems.component import Components
from lgf.search.systems.conservation import Direction
from lgf.search.systems.term_grid import TermGrid
from lgf.solver.kernels.machine import BLOCK, LARGEST_VALUE, evaluate_each

_TOGETHER = 16 * BLOCK  # columns whose responses are computed at a time


def inverse_divisors(components: Components, line: Linearisation, target: Target) -> dict[int, np.ndarray]:
    """One over the divisor along the trajectory, of the rows that have one."""
    environment: dict = {str(v): line.columns[i] for i, v in enumerate(target.frame.columns)}
    return {
        row: 1.0 / np.broadcast_to(evaluate(c.divisor, environment, c.others), line.t.shape)
        for row, c in enumerate(components)
        if c.divisor != ONE
    }


def _responses(
    line: Linearisation, terms: TermGrid, columns: np.ndarray, row: int, factor: np.ndarray | None
) -> np.ndarray:
    """Responses [column, measured value] to these columns of the grid in a row, times a factor along the trajectory."""
    along = np.zeros((-(-len(columns) // BLOCK), len(line.t), BLOCK))
    owner, values = terms.owner[columns], terms.values[columns]
    evaluate_each(terms.programs, owner, values, line.t, line.columns, line.inputs, LARGEST_VALUE, along)
    if factor is not None:
        along *= factor[None, :, None]
    return line.responses(along, row).swapaxes(1, 2).reshape(-1, len(line.residual))[: len(columns)]


class Responses:
    """The residual of a system and its responses to terms added in each direction, as inner products.

    A slot is a direction with one of its columns; those of all directions stand one after the other.
    """

    def __init__(
        self,
        line: Linearisation,
        terms: TermGrid,
        ways: Sequence[Direction],
        factors_along: dict[int, np.ndarray],
    ):
        self.position = {constant: i for i, constant in enumerate(dict.fromkeys(line.constants))}
        own = np.zeros((len(self.position), len(line.residual)))
        for constant, response in zip(line.constants, line.own, strict=True):
            own[self.position[constant]] += response  # a tied constant acts in several rows
        own = np.concatenate([own, line.initial])
        self.residual, self.own = line.residual, own
        self.n_samples = len(line.residual) / len(line.measured)
        squares, products = [], []
        both = np.concatenate([own, line.residual[None]])
        for way in ways:
            for first in range(0, len(way.columns[0]), _TOGETHER):
                responses = np.zeros((0, 0))
                for row, weight, columns in zip(way.rows, way.weights, way.columns, strict=True):
                    some = columns[first : first + _TOGETHER]
                    response = _responses(line, terms, some, row, factors_along.get(row)) * weight
                    responses = responses + response if responses.size else response
                squares.append(np.einsum("ij,ij->i", responses, responses))
                products.append(responses @ both.T)
        self.squares = np.concatenate(squares)  # [slot]
        self.with_own = np.concatenate(products)[:, :-1]
        self.with_residual = np.concatenate(products)[:, -1]
        self.kept = [i for i in range(len(own)) if np.any(own[i])]
        self.back = np.zeros(len(own))

    def without(self, rows: list[int], row: int, value: float) -> "Responses":
        """The same with a term of the system taken out: its responses `rows`, `value` times the response `row`."""
        other = object.__new__(Responses)
        other.__dict__.update(self.__dict__)
        other.kept = [i for i in self.kept if i not in rows]
        other.back = self.back.copy()
        other.back[row] = value
        return other

    def gains(self) -> tuple[float, np.ndarray, np.ndarray]:
        """(squared residual, its fall [slot] if the slot is added, its coefficient)."""
        residual = self.residual + self.back @ self.own
        with_residual = self.with_residual + self.with_own @ self.back
        own = self.own[self.kept]
        sizes = np.linalg.norm(own, axis=1)
        u, s, basis = np.linalg.svd(own / sizes[:, None], full_matrices=False)
        good = s > 1e-7 * s[0]
        inside = (self.with_own[:, self.kept] / sizes) @ (u[:, good] / s[good])
        along = basis[good] @ residual
        left = float(residual @ residual - along @ along)
        free = self.squares - np.einsum("ck,ck->c", inside, inside)
        moment = with_residual - inside @ along
        sound = free > 1e-6 * self.squares
        safe = np.where(sound, free, 1.0)
        return left, np.where(sound, moment**2 / safe, 0.0), np.where(sound, moment / safe, 0.0)
