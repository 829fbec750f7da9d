"""The page of results is that of the committed files."""

import json

from benchmarks.efficiency import table
from benchmarks.recording import RESULTS
from benchmarks.reporting import MARKS, errors, headline, markdown, with_headline
from benchmarks.surroundings import ROOT
from benchmarks.tables import tables


def line(method, seed, evaluations, hit=True, problem="b4/x"):
    return {
        "problem": problem, "model": "standard", "method": method, "seed": seed, "budget": 2000, "hit": hit,
        "evaluations": evaluations, "seconds": evaluations / 100,
    }  # fmt: skip


def test_gains_are_geometric_means_over_the_hard_problems():
    lines = [line("monte carlo", 0, 1600), line("monte carlo", 1, 1500, hit=False), line("evolution", 0, 400)]
    lines += [line("default", 0, 100), line("default", 1, 400)]
    lines += [line(m, 0, 10, problem="b4/easy") for m in ("monte carlo", "evolution", "default")]
    found = table(lines)
    assert found["hard"] == ["b4/x (standard)"]
    assert abs(found["gain over evolution, evaluations"]["default"] - 2.0) < 1e-9
    expected = (1600 * 2000) ** 0.5 / 200
    assert abs(found["gain over Monte Carlo, evaluations"]["default"] - expected) < 1e-9
    assert found["hits"]["monte carlo"] == 2
    assert abs(found["easier of B4, evaluations"]["default"] - 10) < 1e-9


def test_cells_and_tables():
    assert errors([0.25, 0.5]) == ["0.2500", "0.5000", ""]
    assert markdown(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"


def test_the_table_goes_between_its_marks_again_and_again():
    readme = f"before\n{MARKS[0]}\nold\n{MARKS[1]}\nafter\n"
    once = with_headline(readme, "| new |")
    assert once == f"before\n{MARKS[0]}\n| new |\n{MARKS[1]}\nafter\n"
    assert with_headline(once, "| new |") == once


def test_the_readme_shows_the_committed_results():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert with_headline(readme, headline(tables(RESULTS))) == readme


def test_results_are_lines_of_json():
    for file in RESULTS.glob("*.jsonl"):
        for text in file.read_text(encoding="utf-8").splitlines():
            assert isinstance(json.loads(text), dict)
