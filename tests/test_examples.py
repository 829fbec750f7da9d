import re
import runpy
import warnings
from pathlib import Path

import pytest

EXAMPLES = sorted(Path(__file__).parents[1].joinpath("examples").glob("*.py"))


def test_there_are_examples():
    assert len(EXAMPLES) >= 3


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_runs_and_prints_an_equation(path, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # real records are noisy, and short
        runpy.run_path(str(path), run_name="__main__")
    assert re.match(r"\w+'+ |.*\bu'+ ", capsys.readouterr().out)
    assert not list(tmp_path.iterdir())
