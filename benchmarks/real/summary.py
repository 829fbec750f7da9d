"""Summary of Benchmark 5: wins over the best naive prediction, geometric mean of the ratios, constants."""

import math
from collections.abc import Mapping, Sequence
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
    ratio: float  # geometric mean of error over that of the best naive prediction, picked in hindsight
    ratio_in_advance: float  # the same over the naive prediction chosen on the training part; NaN if not known
    advance_wins: int  # tests in which it beats that one
    median: float
    constants: float  # mean number
    failures: int
    seconds: float  # mean processor time


def summaries(rows: Sequence[dict[str, Any]], chosen: Mapping[tuple[str, str], str] | None = None) -> list[Summary]:
    """The summary of each method, in the order of the rows.

    `chosen` names the naive prediction chosen in advance by (record, test); by default the rows themselves say it.
    """
    by_method: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_method.setdefault(row["method"], []).append(row)
    names = {(row["record"], row["test"]): row["in_advance"] for row in rows if "in_advance" in row}
    return [_summary(method, lines, chosen or names) for method, lines in by_method.items()]


def in_advance(row: dict[str, Any], chosen: Mapping[tuple[str, str], str]) -> float:
    """The ratio to the naive prediction that was chosen in advance; NaN if none was recorded."""
    name = chosen.get((row["record"], row.get("test", "")))
    if name is None:
        return math.nan
    return min(row["ratio"] * min(row["baselines"].values()) / row["baselines"][name], row["ratio"])


def _summary(method: str, rows: Sequence[dict[str, Any]], chosen: Mapping[tuple[str, str], str]) -> Summary:
    advance = [value for row in rows if not math.isnan(value := in_advance(row, chosen))]
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
        ratio_in_advance=geometric_mean(advance) if advance else math.nan,
        advance_wins=sum(ratio < 1 for ratio in advance),
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
    print(f"{'':18s} tests  wins  records  wins  ratio  in advance  median  constants  failures  CPU s")
    for s in summaries(rows):
        print(
            f"{s.method:18s} {s.tests:5d} {s.wins:5d} {s.records:8d} {s.record_wins:5d} {s.ratio:6.2f} "
            f"{s.ratio_in_advance:6.2f} {s.advance_wins:4d} {s.median:7.2f} "
            f"{s.constants:10.1f} {s.failures:9d} {s.seconds:6.1f}"
        )
