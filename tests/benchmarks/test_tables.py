from dataclasses import asdict

import pytest
from benchmarks.problems import problems
from benchmarks.publishing import mean_errors, published
from benchmarks.recording import append
from benchmarks.reporting import variants_section
from benchmarks.reproduction import by_benchmark, by_problem, ladder, section
from benchmarks.running import Options
from benchmarks.tables import beside_default, groups, summary, tables

from benchmarks import figures


def _line(problem, seed, objective, u, exact, cause, options=None):
    options = options or Options("b1")
    return {
        "problem": problem, "seed": seed, "objective": objective, "errors": [u, 2 * u], "exact": exact,
        "complexity": 10 + seed, "other_start": {"r2": 1.0 - u, "error": u}, "seconds": 2.0, "cpu_seconds": 1.5,
        "evaluations": 100,
        "truth": {"cause": cause, "in_set": exact}, "digest": options.digest(), "options": asdict(options),
        "equation": problems()[problem].true_equation().text, "versions": {"lgf": "0.2.0 abcdef"},
    }  # fmt: skip


def _lines():
    return [
        _line("b1/01", 0, -5.0, 0.4, False, "not proposed"),
        _line("b1/01", 1, -9.0, 0.02, True, "exact"),
        _line("b1/01", 2, -1.0, 0.01, True, "exact"),
        _line("b1/02", 0, 3.0, 0.06, False, "wrongly chosen"),
    ]


def test_the_best_seed_is_chosen_by_the_objective_and_never_by_the_error():
    found = summary(_lines())
    assert found["errors"] == pytest.approx([0.04, 0.08])
    assert found["mean_errors"][0] == pytest.approx(0.1225)
    assert (found["exact"], found["exact_at_median_seed"], found["problems"]) == (1, 1, 2)
    assert found["worst_u"] == (0.06, "b1/02")
    assert found["truth_in_set"] == 0.5
    assert found["generalises"] == 0.75
    assert found["misses"] == {"b1/01": ["not proposed"], "b1/02": ["wrongly chosen"]}


def test_errors_are_capped_and_means_leave_out_what_is_not_there():
    assert mean_errors([[20.0, 0.5], [0.0, 0.5, 0.3]]) == pytest.approx([0.5, 0.5, 0.3])


def test_results_of_different_settings_are_not_mixed(tmp_path):
    for line in _lines():
        append(tmp_path / "a.jsonl", line)
    append(tmp_path / "a.jsonl", _line("b1/01", 0, 0.0, 0.9, False, "not proposed", Options("b1", noise=0.2)))
    assert sorted(len(lines) for lines in groups(tmp_path)) == [1, 4]
    assert [summary(lines)["method"] for lines in groups(tmp_path)] == [
        "this project: b1-standard-default",
        "this project: b1-standard-default-noise0.2",
    ]


def test_a_variant_stands_beside_the_default_on_the_same_runs_only(tmp_path):
    for line in _lines():
        append(tmp_path / "a.jsonl", line)
    noisy = Options("b1", noise=0.2)
    for seed, u in ((0, 0.8), (1, 3.0), (7, 0.5)):  # the default never saw seed 7
        append(tmp_path / "b.jsonl", _line("b1/01", seed, 0.0, u, False, "not proposed", noisy))
    (row,) = beside_default(tmp_path)
    assert (row["name"], row["runs"], row["problems"]) == ("standard-default-noise0.2", 2, 1)
    assert row["it"]["errors"] == pytest.approx([0.9, 1.0])
    assert row["default"]["errors"] == pytest.approx([0.21, 0.42])
    assert (row["it"]["exact"], row["default"]["exact"]) == (0, 1)
    assert [s["method"] for s in tables(tmp_path)["b1"] if "mean_errors" in s] == ["this project: b1-standard-default"]
    assert "noise0.2 | 1 | 2 | 0.9000 | 1.0000 | 4.29" in variants_section([row])
    assert figures.variants_drawn(tmp_path, tmp_path / "out").stat().st_size > 5_000


def test_a_peer_stands_beside_the_default_and_not_among_the_benchmarks(tmp_path):
    for line in _lines():
        append(tmp_path / "a.jsonl", line)
    append(tmp_path / "b.jsonl", _line("b1/02", 0, 0.0, 0.5, False, "not proposed", Options("b1", peer="eggp")))
    (row,) = beside_default(tmp_path, peers=True)
    assert (row["name"], row["runs"], row["it"]["errors"][0]) == ("eggp", 1, 0.5)
    assert beside_default(tmp_path) == []
    assert [s["method"] for s in tables(tmp_path)["b1"] if "mean_errors" in s] == ["this project: b1-standard-default"]


def test_the_published_means_are_those_of_the_protocol():
    b1 = {s["method"]: s for s in published("b1")}
    assert b1["PySR"]["errors"] == pytest.approx([0.084, 0.148], abs=1.5e-3)
    assert b1["LGF, as the paper states"]["errors"] == [0.139, 0.221]
    floor = b1["floor (true structure, fitted)"]
    assert floor["errors"] == pytest.approx([0.0027, 0.0096], abs=1e-4)
    assert floor["complexity"] == pytest.approx(23.2, abs=0.05)
    b3 = {s["method"]: s for s in published("b3")}
    assert b3["LGF, as the paper states"]["errors"] == pytest.approx([0.183, 0.186, 0.281], abs=1e-3)


def test_the_paper_stands_beside_its_own_figures_and_the_ladder_on_common_runs(tmp_path):
    assert section(tmp_path) == ""
    paper = Options("b3", "b3", "paper")
    for seed, u in ((0, 0.1), (1, 0.3)):
        append(tmp_path / "a.jsonl", _line("b3/duffing", seed, 1.0 + seed, u, seed == 1, "exact", paper))
    (row,) = by_problem("b3", tmp_path)
    assert row["errors"] == pytest.approx([0.2, 0.4])
    assert (row["seeds"], row["exact"], row["stated"]) == (2, 1, [0.278, 0.237, 0.288])
    assert ladder(tmp_path) == []
    for rung, u, seeds in (("fit", 0.1, (0, 1)), ("smoothing", 0.4, (0,))):
        for seed in seeds:
            options = Options("b3", "b3", "paper", rung=rung)
            append(tmp_path / "b.jsonl", _line("b3/duffing", seed, 1.0, u, False, "exact", options))
    rungs = ladder(tmp_path)
    of_rungs = [(r["rung"], r["runs"], r["errors"][0]) for r in rungs]
    assert of_rungs == [("paper", 1, 0.1), ("smoothing", 1, 0.4), ("fit", 1, 0.1)]
    (means,) = by_benchmark(tmp_path)
    assert (means["problems"], means["runs"], means["exact"]) == (1, 2, 1)
    assert (means["errors"][0], means["best"][0]) == pytest.approx((0.2, 0.1))
    assert means["stated"] == pytest.approx([0.278, 0.237, 0.288])
    assert figures.ladder_drawn(tmp_path, tmp_path / "out").stat().st_size > 5_000
    assert "0.2780" in section(tmp_path)
    assert "least squares" in section(tmp_path)
    assert beside_default(tmp_path) == []


def test_figures_are_drawn_from_results(tmp_path):
    for line in _lines():
        append(tmp_path / "a.jsonl", line)
    append(tmp_path / "b.jsonl", _line("b2/ode4", 0, 0.0, 0.0, True, "exact", Options("b2")))
    drawn = [figures.violin(tmp_path, tmp_path / "out"), figures.trajectories("b2", tmp_path, tmp_path / "out")]
    assert all(file is not None and file.stat().st_size > 10_000 for file in drawn)
    assert figures.trajectories("b3", tmp_path, tmp_path / "out") is None
