"""What is stored of a grammar is what would be made anew, and a spoilt file is made anew."""

import pytest

from lgf.grammar import load_grammar, restrict
from lgf.language import cheapest_derivation, stored, term_dictionary

GRAMMAR = load_grammar("standard")
ALLOWED = restrict(GRAMMAR, order=2, forced=True).tobytes()
FUNCTIONS = {"headers": (cheapest_derivation._headers, ()), "terms": (term_dictionary._dictionary, (12.0,))}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_stored_is_what_is_made(name, monkeypatch, tmp_path):
    function, numbers = FUNCTIONS[name]

    def fresh(folder):
        monkeypatch.setattr(stored, "_folder", lambda: folder)
        function.cache_clear()
        return function(GRAMMAR, ALLOWED, *numbers)

    made = fresh(None)
    assert fresh(tmp_path / "new") == made  # makes and writes it
    (file,) = (tmp_path / "new").iterdir()
    loaded = fresh(tmp_path / "new")
    assert loaded == made
    if isinstance(made, dict):
        assert list(loaded) == list(made)  # the order decides between equal bits
    file.write_bytes(file.read_bytes()[:1000])
    assert fresh(tmp_path / "new") == made
    assert len(file.read_bytes()) > 1000
    function.cache_clear()


def test_only_the_newest_files_stay(monkeypatch, tmp_path):
    monkeypatch.setattr(stored, "MOST_FILES", 2)
    for i in range(4):
        stored._write(tmp_path / f"lgf-{i}.grammar", b"")
    assert len(list(tmp_path.iterdir())) == 2
    assert (tmp_path / "lgf-3.grammar").exists()
