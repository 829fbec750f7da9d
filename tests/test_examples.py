import re
import runpy
import warnings
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1].joinpath("examples")
EXAMPLES = [*sorted(FOLDER.glob("*.py")), *(FOLDER / f"gallery/{name}.py" for name in ("cooling", "growth"))]


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


def test_the_gallery_has_its_pictures():
    page = FOLDER.parent.joinpath("docs/gallery.md").read_text(encoding="utf-8")
    names = [path.stem for path in FOLDER.glob("gallery/*.py")]
    assert len(names) == 8
    for name in names:
        assert FOLDER.parent.joinpath(f"docs/figures/gallery-{name}.png").is_file()
        assert f"<!-- {name} -->\n```\n" in page


def test_the_picture_of_how_it_works_is_that_of_its_script():
    script = runpy.run_path(str(FOLDER.parent / "docs/how_it_works.py"))
    assert FOLDER.parent.joinpath("docs/figures/how-it-works.svg").read_text(encoding="utf-8") == script["picture"]()
