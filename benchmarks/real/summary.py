"""Summary of Benchmark 5: wins over the best naive prediction, geometric mean of the ratios, constants."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Summary:
    """One method over its tests."""

    method: str
    tests: int
    wins: int  # tests in which it beats every naive prediction
    records: int
    record_wins: int  # records whose geometric mean ratio over their tests is below 1
    ratio: float  # geometric mean of error over that of the best naive prediction
    median: float
    constants: float  # mean number
    failures: int
    seconds: float  # mean processor time


def summaries(rows: Sequence[dict[str, Any]]) -> list[Summary]:
    """The summary of each method, in the order of the rows."""
    by_method: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_method.setdefault(row["method"], []).append(row)
    return [_summary(method, lines) for method, lines in by_method.items()]


def _summary(method: str, rows: Sequence[dict[str, Any]]) -> Summary:
    ratios = sorted(row["ratio"] for row in rows)
    by_record: dict[str, list[float]] = {}
    for row in rows:
        by_record.setdefault(row["record"], []).append(row["ratio"])
    answered = [row for row in rows if "failure" not in row]
    return Summary(
        method,
        tests=len(rows),
        wins=sum(ratio < 1 for ratio in ratios),
        records=len(by_record),
        record_wins=sum(geometric_mean(part) < 1 for part in by_record.values()),
        ratio=geometric_mean(ratios),
        median=ratios[len(ratios) // 2],
        constants=sum(row["constants"] for row in answered) / max(len(answered), 1),
        failures=len(rows) - len(answered),
        seconds=sum(row["seconds"] for row in answered) / max(len(answered), 1),
    )


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean; 0 counts as 1e-9."""
    return math.exp(sum(math.log(max(v, 1e-9)) for v in values) / len(values))


def print_summary(rows: Sequence[dict[str, Any]]) -> None:
    """Prints a line for each method."""
    print(f"{'':18s} tests  wins  records  wins  ratio  median  constants  failures  CPU s")
    for s in summaries(rows):
        print(
            f"{s.method:18s} {s.tests:5d} {s.wins:5d} {s.records:8d} {s.record_wins:5d} {s.ratio:6.2f} {s.median:7.2f} "
            f"{s.constants:10.1f} {s.failures:9d} {s.seconds:6.1f}"
        )
