"""The page of results is that of the committed files."""

import json

from benchmarks.efficiency import BASE, table
from benchmarks.recording import RESULTS
from benchmarks.reporting import MARKS, errors, headline, markdown, with_headline
from benchmarks.surroundings import ROOT
from benchmarks.tables import tables


def line(method, seed, evaluations, hit=True, problem="b4/x"):
    return {
        "problem": problem, "method": method, "seed": seed, "budget": 250, "hit": hit, "evaluations": evaluations,
        "seconds": evaluations / 100,
    }  # fmt: skip


def test_gains_are_geometric_means_of_pairs():
    lines = [line(BASE, 0, 16), line(BASE, 1, 40, hit=False), line("default", 0, 4), line("default", 1, 25)]
    lines += [line(m, 2, 30, hit=False) for m in (BASE, "default")]
    found = table(lines)
    default = found["methods"]["default"]
    assert abs(default["fewer"] - (16 / 4 * 250 / 25) ** (1 / 3)) < 1e-9
    assert abs(default["evaluations"] - (4 * 25 * 250) ** (1 / 3)) < 1e-9
    assert abs(default["of those found"] - 10) < 1e-9
    assert (default["hits"], default["within"][10], default["within"][30]) == (2, 1, 2)
    assert found["runs"] == {"all": 3, "found": 2}
    assert abs(found["problems"]["b4/x"]["default"] - default["evaluations"]) < 1e-9


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
