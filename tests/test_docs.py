"""The pages tell the truth: links lead somewhere, commands and options exist, grammars are grammars."""

import importlib
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from lgf.cli import main
from lgf.grammar import read_grammar
from lgf.training.progress import Progress

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/*.md"))]

RUN = ["forcing", "extending"]  # pages with a block of Python that stands on its own


def blocks(text, kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_commands_and_options_exist(page, capsys):
    for line in "\n".join(blocks(page.read_text(), "sh")).splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] != ["lgf"]:
            continue
        command = [words[1], "show"] if words[1:3] == ["models", "show"] else [words[1]]
        assert main([*command, "--help"]) == 0
        known = capsys.readouterr().out
        for word in words:
            if re.match(r"--?[a-z]", word):
                assert re.search(rf"(^|[\s,/]){re.escape(word)}\b", known), (line, word)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_python_is_python(page):
    for block in blocks(page.read_text(), "python"):
        compile(block, page.name, "exec")


def test_the_grammars_of_the_page_are_grammars():
    fenced = (ROOT / "docs/grammar.md").read_text().split("```")[1::2]
    found = [b.removeprefix("\n") for b in fenced if b.startswith("\n") and "template:" in b]
    assert [read_grammar(b).template for b in found] == ["explicit", "system"]
    assert all(len(read_grammar(b).rules) >= 6 for b in found)


def test_every_page_is_reached_from_the_index():
    index = (ROOT / "docs/index.md").read_text()
    for page in ROOT.glob("docs/*.md"):
        assert page.name == "index.md" or f"({page.name})" in index, page.name


def test_names_of_the_code_are_there():
    pages = {page.name: set(re.findall(r"\blgf(?:\.\w+)+", page.read_text())) for page in ROOT.glob("docs/*.md")}
    assert len(pages["method.md"]) > 40
    assert len(pages["api.md"]) > 40
    for page, names in pages.items():
        for name in names:
            assert resolves(name), (page, name)


def resolves(name):
    """Whether a dotted name is a module, or what is left of it an attribute of one."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for part in parts[cut:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def test_the_example_of_an_own_grammar_is_that_of_its_folder():
    page, folder = (ROOT / "docs/training.md").read_text(), ROOT / "examples/own_grammar"
    assert blocks(page, "toml") == [(folder / "recipe.toml").read_text()]
    assert f"\n```\n{(folder / 'oscillator.grammar').read_text()}```\n" in page


def test_the_training_of_the_page_tells_how_far_it_is(monkeypatch, capsys):
    def train(plan, out, resume, progress):
        progress(Progress("corpus", 100, 300, None, None, None, 1.0))
        return SimpleNamespace(metrics={}, name=plan.name)

    monkeypatch.setattr("lgf.paper.training.stages.train", train)
    assert main(["train", str(ROOT / "examples/own_grammar/recipe.toml")]) == 0
    assert "corpus" in capsys.readouterr().err


def test_the_tables_of_the_models_are_those_of_their_files(tmp_path):
    tables = runpy.run_path(str(ROOT / "docs/tables.py"))
    for file in ("docs/models.md", "docs/training.md"):
        page = (ROOT / file).read_text()
        assert tables["written"](page) == page, "stale; run: python docs/tables.py"
    page = (ROOT / "docs/models.md").read_text()
    assert tables["written"](page, tmp_path) != page


@pytest.mark.parametrize("name", RUN)
def test_python_that_stands_on_its_own_runs(name, tmp_path, capsys):
    (block,) = [b for b in blocks((ROOT / f"docs/{name}.md").read_text(), "python") if "print(" in b]
    script = tmp_path / "script.py"
    script.write_text(block)
    runpy.run_path(str(script))
    assert "u''" in capsys.readouterr().out


def test_the_site_is_built_without_warnings(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    assert "LatentGrammarFlow.fit" in (tmp_path / "api" / "index.html").read_text()


def test_tests_that_the_pages_cite_exist():
    for page in PAGES:
        cited = set(re.findall(r"`(tests/[\w/]+\.py)`", page.read_text()))
        assert not [file for file in cited if not (ROOT / file).is_file()], page.name
