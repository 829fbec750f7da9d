import argparse
import json

import numpy as np
import pytest
from benchmarks.__main__ import main
from benchmarks.choosing import chosen, true_skeleton
from benchmarks.ladder import RUNGS
from benchmarks.problems import problem_named, problems
from benchmarks.recording import append, digest, rows
from benchmarks.running import Options, observed

from benchmarks import running
from lgf.equation.skeleton import Skeleton
from lgf.errors import LgfError
from lgf.search.settings import DiscoverySettings


def test_a_line_that_was_cut_off_is_left_out_and_swallows_nothing(tmp_path):
    file = tmp_path / "deep" / "results.jsonl"
    append(file, {"a": 1})
    with file.open("a") as out:
        out.write('{"a": 2, "b"')
    append(file, {"a": 3})
    assert [row["a"] for row in rows(file)] == [1, 3]
    assert rows(tmp_path / "nothing.jsonl") == []


def test_nan_never_reaches_a_file(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        append(tmp_path / "x.jsonl", {"error": float("nan")})


def test_equal_settings_have_equal_digests_and_others_have_not():
    assert digest({"a": 1, "b": [2.0]}) == digest({"b": [2.0], "a": 1})
    plain = Options("b1")
    others = [Options("b2"), Options("b1", thin=2), Options("b1", initial=False), Options("b1", evaluations=9)]
    names = [options.digest() for options in (plain, Options("b1"), *others)]
    assert names[0] == names[1]
    assert len(set(names)) == 5
    assert len({options.name for options in (plain, *others)}) == 5


def test_the_preset_paper_has_the_budgets_of_the_paper():
    for benchmark, population, fine in (("b1", 100, 150), ("b2", 100, 250), ("b3", 250, 250)):
        settings = Options(benchmark, benchmark, "paper").settings()
        assert settings.search.iterations == 10
        assert settings.search.batch(0) == settings.search.batch(2000) == population
        assert settings.fit.fine_iterations == fine


def test_the_ladder_leads_from_the_paper_to_the_default():
    options = [Options("b3", "b3", "paper", rung=rung) for rung in RUNGS]
    assert options[0].settings() == Options("b3", "b3", "paper").settings()
    assert options[-1].settings() == DiscoverySettings()
    assert len({o.name for o in options}) == len({o.digest() for o in options}) == len(RUNGS)


def test_problems_are_chosen_by_benchmark_and_by_name():
    assert len(chosen(None)) == 57
    assert [p.id for p in chosen("b3/duffing, b2/ode1")] == ["b2/ode1", "b3/duffing"]
    assert len(chosen("b1,b3/duffing")) == 31
    with pytest.raises(LgfError, match="b9"):
        chosen("b9")


def test_the_searched_form_of_every_truth_is_the_same_structure_but_of_a_square_the_branch():
    for problem in problems().values():
        written = problem.true_equation().skeleton
        wanted = Skeleton.read("u'' = C*u") if problem.id == "b2/nlode4" else written
        assert true_skeleton(problem).structure == wanted.structure, problem.id


def test_thinning_keeps_the_start_and_the_initial_state_can_be_withheld():
    problem = problem_named("b1/03")
    whole = problem.observe(0.1, 3).observations[0]
    seen = observed(problem, Options("b1", noise=0.1, thin=4, initial=False), 3).observations[0]
    assert np.array_equal(seen.values, whole.values[::4])
    assert seen.t[0] == whole.t[0]
    assert seen.initial == {}
    assert list(whole.initial.values()) == list(problem.initial)


def test_finished_runs_are_not_run_again(tmp_path, monkeypatch):
    file, made = tmp_path / "out.jsonl", []

    def fake(problem, options, seed, jobs):
        made.append((problem.id, seed))
        facts = {"errors": [0.1], "seconds": 1.0, "truth": None, "exact": False, "equation": ""}
        return {"problem": problem.id, "seed": seed, "digest": options.digest()} | facts

    monkeypatch.setattr(running, "run_one", fake)
    command = ["run", "b1", "--only", "b1/01,b1/02", "--out", str(file)]
    main([*command, "--seeds", "1"])
    main([*command, "--seeds", "2"])
    assert made == [("b1/01", 0), ("b1/02", 0), ("b1/01", 1), ("b1/02", 1)]
    main([*command, "--seeds", "1", "--noise", "0.1"])
    assert len(made) == 6


def test_a_small_run_says_everything_about_its_result(tmp_path):
    file = tmp_path / "out.jsonl"
    parser = argparse.ArgumentParser()
    running.add_arguments(parser)
    running.main(
        parser.parse_args(
            ["b1", "--only", "b1/02", "--seeds", "1", "--evaluations", "20", "--jobs", "1", "--out", str(file)]
        )
    )
    (line,) = [json.loads(text) for text in file.read_text().splitlines()]
    assert line["exact"]
    assert line["errors"][0] < 0.02
    assert line["truth"]["cause"] == "exact"
    assert line["truth"]["tried"]
    assert line["truth"]["in_set"]
    assert line["truth"]["objective"] == pytest.approx(line["objective"], abs=0.1)
    assert line["evaluations"] == 20
    assert line["other_start"]["r2"] > 0.9
    assert {"machine", "versions", "options", "complexity", "seconds"} <= line.keys()


def test_the_list_of_commands_can_be_printed(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    assert "90 % bands" in capsys.readouterr().out
