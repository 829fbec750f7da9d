"""Thinning of long records for plots."""

import numpy as np

MOST_POINTS = 2000


def thinned_rows(columns: np.ndarray, most: int = MOST_POINTS) -> np.ndarray:
    """Row numbers of at most about `most` samples [N, K] that keep the lowest and highest value of every stretch.

    >>> spike = np.zeros((10_000, 1))
    >>> spike[1234] = 1.0
    >>> rows = thinned_rows(spike)
    >>> len(rows) <= 2000, 1234 in rows
    (True, True)
    """
    n, k = columns.shape
    if n <= most:
        return np.arange(n)
    stretches = np.array_split(np.arange(n), max(most // (2 * max(k, 1) + 1), 1))
    rows = {0, n - 1}
    for stretch in stretches:
        rows.add(int(stretch[0]))
        for column in columns[stretch].T:
            if not np.all(np.isnan(column)):
                rows |= {int(stretch[np.nanargmin(column)]), int(stretch[np.nanargmax(column)])}
    return np.array(sorted(rows))
