"""The pages tell the truth: links lead somewhere, commands and options exist, grammars are grammars."""

import re
import shlex
from pathlib import Path

import pytest

from lgf.cli import main
from lgf.grammar import read_grammar

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/*.md"))]


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


def test_the_grammar_of_the_page_is_a_grammar():
    found = [b for b in blocks((ROOT / "docs/grammar.md").read_text(), "") if "template:" in b]
    assert len(found) == 1
    assert len(read_grammar(found[0]).rules) >= 6


def test_every_page_is_reached_from_the_index():
    index = (ROOT / "docs/index.md").read_text()
    for page in ROOT.glob("docs/*.md"):
        assert page.name == "index.md" or f"({page.name})" in index, page.name
