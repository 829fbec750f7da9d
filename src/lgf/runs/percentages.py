"""Formatting of percentages."""

from decimal import Decimal

_LEAST, _MOST = 1e-4, 1e6


def percentage(share: float) -> str:
    """The share in per cent, with three digits and without an exponent.

    >>> percentage(0.0512), percentage(1.0), percentage(12.3), percentage(1e-9), percentage(float("inf"))
    ('5.12 %', '100 %', '1230 %', 'less than 0.0001 %', 'more than 1000000 %')
    """
    value = 100 * share
    if not value < _MOST:
        return f"more than {_MOST:.0f} %"
    if 0 < value < _LEAST:
        return f"less than {_LEAST} %"
    return f"{Decimal(f'{value:.3g}'):f} %"
