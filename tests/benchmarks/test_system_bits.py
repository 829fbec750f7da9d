import json

import pytest
from benchmarks.grammar_bits import true_systems
from benchmarks.recording import RESULTS

from lgf.grammar import load_grammar
from lgf.language.system_encoding import system_encoding

SYSTEMS = load_grammar("systems")
STORED = json.loads((RESULTS / "system_bits.json").read_text())


@pytest.mark.parametrize("title", ["odebench", "textbook"])
def test_the_stored_bits_of_systems_are_those_of_the_grammar(title):
    assert STORED["grammar"] == SYSTEMS.fingerprint, "measure again: python -m benchmarks bits systems --write"
    systems = true_systems()[title]
    assert STORED[title].keys() == systems.keys()
    for name in list(systems)[::5]:
        rows = [row.bits for row in system_encoding(SYSTEMS, systems[name]).rows]
        assert rows == pytest.approx(STORED[title][name], abs=0.01), name


def test_true_systems_can_be_said_and_are_cheap():
    assert (STORED["odebench_said"], STORED["textbook_said"]) == ("40 of 40", "45 of 45")
    assert STORED["odebench_median_2_states"] < 20
    assert STORED["odebench_median_3_states"] < 26
