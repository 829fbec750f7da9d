"""The weak form of an equation over a record: integrals against test functions instead of derivatives of noisy data.

With a test function phi that vanishes at the ends of its support, the integral of phi * u^(n) is (-1)^k times that of
phi^(k) * u^(n - k): the measured derivative n - k is never differentiated. A term g of the equation becomes the
integral of phi * g along the completed record. Each row is scaled to unit noise.
"""

from dataclasses import dataclass

import numpy as np

from lgf.discovery.target import Target

MOST_SAMPLES = 600


@dataclass(frozen=True, eq=False)
class WeakForm:
    """A thinned record and the matrix that integrates over it."""

    samples: np.ndarray  # positions of the samples that take part
    tests: np.ndarray  # [rows, samples] test functions with the weights of the quadrature
    highest: np.ndarray  # [rows] the integrals of phi * u^(n)

    def rows(self, columns: np.ndarray) -> np.ndarray:
        """The integrals [column, row] of terms given at the samples [column, sample]."""
        return columns @ self.tests.T


def make_weak_form(target: Target, widths: tuple[float, ...] = (0.12, 0.05), n_centres: int = 60) -> WeakForm:
    """The weak form of a target; widths are half supports of the test functions, as parts of the window."""
    lowest = min(target.measured)
    by_parts = target.order - lowest
    bump = np.poly1d([-1.0, 0.0, 1.0]) ** (target.order + 3)
    derived = bump.deriv(by_parts) if by_parts else bump
    first = target.record.first
    longest = max(1, int(np.ceil(len(target.t) / MOST_SAMPLES)))
    kept, tests, highest, offset = [], [], [], 0
    blocks = []
    for e in range(target.n_experiments):
        positions = np.arange(first[e], first[e + 1], longest)
        if len(positions) < 2 * (target.order + 3):
            positions = np.arange(first[e], first[e + 1])
        t = target.t[positions]
        weights = np.gradient(t) if len(t) > 1 else np.ones(1)
        signal = target.states[lowest, positions]
        span = float(t[-1] - t[0])
        block_tests, block_highest = [], []
        for width in widths:
            half = max(width * span, 4.0 * float(np.median(np.diff(t))))
            if 2 * half > span:
                half = span / 2
            for centre in np.linspace(t[0] + half, t[-1] - half, n_centres):
                s = (t - centre) / half
                inside = np.abs(s) < 1.0
                if inside.sum() < target.order + 3:
                    continue
                phi = np.where(inside, bump(s), 0.0) * weights
                moved = np.where(inside, derived(s), 0.0) * weights * (-1.0 / half) ** by_parts
                scale = np.linalg.norm(moved)
                if scale > 0:
                    block_tests.append(phi / scale)
                    block_highest.append(float(moved @ signal) / scale)
        kept.append(positions)
        blocks.append((np.array(block_tests).reshape(-1, len(positions)), offset))
        highest += block_highest
        offset += len(positions)
    tests = np.zeros((len(highest), offset))
    row = 0
    for block, begin in blocks:
        tests[row : row + len(block), begin : begin + block.shape[1]] = block
        row += len(block)
    return WeakForm(np.concatenate(kept), tests, np.array(highest))
