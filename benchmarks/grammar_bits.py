"""Quality of a grammar: the bits of true equations, and its redundancy. `python benchmarks/grammar_bits.py`.

Bits of an equation are those of the cheapest derivation with its structure, order and forcing being known. How far
to trust them: the rules of grammar `standard`, and first guesses of its weights, were written by someone who had read
all named problems and knew which textbook equations were to come; the guesses were then moved towards the named
problems at even positions only, and not changed after the textbook equations had been measured.
"""

import csv
import json
import sys
from pathlib import Path
from statistics import mean, median

from benchmarks.problems import problems
from lgf.equation.system import System
from lgf.grammar import Grammar, enumerate_derivations, load_grammar, restrict, spell
from lgf.language.cheapest_derivation import bits_of
from lgf.language.sentences import grammar_frame, skeleton_of

CASES = ((1, False), (1, True), (2, False), (2, True))
LISTED_BITS = 14.0


def measure(name: str = "standard") -> dict:
    """Bits of every named problem and textbook equation, their summaries, and the redundancy."""
    grammar = load_grammar(name)
    named = {p.id: bits_of(grammar, p.true_equation(), p.forcing is not None) for p in problems().values()}
    with Path(__file__).with_name("textbook.csv").open(encoding="utf-8", newline="") as file:
        textbook = {row["name"]: bits_of(grammar, System.read(row["equation"])) for row in csv.DictReader(file)}
    published = [bits for id_, bits in named.items() if not id_.startswith("b4/")]
    hard = [bits for id_, bits in named.items() if id_.startswith("b4/")]
    return {
        "grammar": grammar.fingerprint,
        "rules": grammar.n_rules,
        "published_mean": mean(published),
        "published_median": median(published),
        "b4_median": median(hard),
        "even_positions_mean": mean(list(named.values())[::2]),
        "odd_positions_mean": mean(list(named.values())[1::2]),
        "textbook_mean": mean(textbook.values()),
        "redundancy": redundancy(grammar),
        "named": named,
        "textbook": textbook,
    }


def redundancy(grammar: Grammar) -> dict[str, float]:
    """1 - structures/derivations among the derivations up to 14 bits, by order and forcing, and over all of them."""
    figures = {}
    all_derivations = all_structures = 0
    for order, forced in CASES:
        allowed = restrict(grammar, order=order, forced=forced)
        sentences = [spell(grammar, d) for _, d in enumerate_derivations(grammar, LISTED_BITS, allowed=allowed)]
        structures = {skeleton_of(grammar.template, s, grammar_frame(order, forced)).structure for s in sentences}
        figures[f"order {order}, {'forced' if forced else 'free'}"] = 1 - len(structures) / len(sentences)
        all_derivations += len(sentences)
        all_structures += len(structures)
    return figures | {"all": 1 - all_structures / all_derivations}


if __name__ == "__main__":
    found = measure(*sys.argv[1:])
    for table in ("named", "textbook"):
        print("\n".join(f"{bits:7.2f}  {what}" for what, bits in found.pop(table).items()), end="\n\n")
    print(json.dumps(found, indent=2))
