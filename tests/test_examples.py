"""The examples run and print an equation; those of the gallery with a small budget, since their answers are stored."""

import re
import runpy
import warnings
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from lgf import LatentGrammarFlow
from lgf.runs.presets import with_budget

FOLDER = Path(__file__).parents[1].joinpath("examples")
EXAMPLES = sorted(FOLDER.glob("*.py"))
GALLERY = sorted(FOLDER.glob("gallery/*.py"))


@pytest.mark.parametrize("path", EXAMPLES + GALLERY, ids=lambda p: p.stem)
def test_an_example_runs_and_prints_an_equation(path, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if path in GALLERY:
        settings = LatentGrammarFlow.search_settings
        monkeypatch.setattr(LatentGrammarFlow, "search_settings", lambda self: with_budget(settings(self), 15, None))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # real records are noisy, and short
        names = runpy.run_path(str(path), run_name="__main__")
    assert re.match(r"\w+'+ |.*\bu'+ ", capsys.readouterr().out)
    assert not list(tmp_path.iterdir())
    if path in GALLERY:
        assert isinstance(names["FIGURE"](), Figure)


def test_the_gallery_has_its_pictures():
    page = FOLDER.parent.joinpath("docs/gallery.md").read_text(encoding="utf-8")
    assert len(GALLERY) == 8
    for name in (path.stem for path in GALLERY):
        assert FOLDER.parent.joinpath(f"docs/figures/gallery-{name}.png").is_file()
        assert f"<!-- {name} -->\n```\n" in page


def test_the_picture_of_how_it_works_is_that_of_its_script():
    script = runpy.run_path(str(FOLDER.parent / "docs/how_it_works.py"))
    assert FOLDER.parent.joinpath("docs/figures/how-it-works.svg").read_text(encoding="utf-8") == script["picture"]()
