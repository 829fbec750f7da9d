"""`bits`: quality of a grammar, which is the bits of true equations or systems, and the redundancy of its rules.

Bits of an equation are those of the cheapest derivation with its structure, order and forcing being known. How far
to trust them: the rules of grammar `standard`, and first guesses of its weights, were written by someone who had read
all named problems and knew which textbook equations were to come; the guesses were then moved towards the named
problems at even positions only, and not changed after the textbook equations had been measured.

Bits of a system are those of its rows in grammar `systems`, measured on ODEBench's forty systems of two to four states
and on 45 textbook systems. Its weights were written with the median bits of a prototype on ODEBench in mind and
with the names of half of the textbook systems known, before any system was measured; afterwards one was
halved (wave*cos(u)/sin(u)).
At that first look the grammar could say 38 of the forty and 41 of the 45; the rules that were missing were then added:
functions of two other states, cotangents and products of three waves (ODEBench), distances in the plane and the double
pendulum (textbook), and exponents above 5 are now read as values of an open exponent (Goodwin).
"""

import argparse
import csv
import json
import math
import tomllib
from pathlib import Path
from statistics import mean, median
from typing import Any

from benchmarks.problems import problems
from benchmarks.recording import RESULTS
from lgf.equation.system import System
from lgf.grammar import Grammar, enumerate_derivations, load_grammar, restrict, spell
from lgf.language.cheapest_derivation import encoding
from lgf.language.sentences import grammar_frame, skeleton_of
from lgf.language.system_encoding import system_encoding

CASES = ((1, False), (1, True), (2, False), (2, True))
LISTED_BITS = 14.0
HERE = Path(__file__).parent


def measure(name: str = "standard") -> dict[str, Any]:
    """Bits of every named problem and textbook equation, their summaries, and the redundancy."""
    grammar = load_grammar(name)
    named = {p.id: encoding(grammar, p.true_equation(), p.forcing is not None).bits for p in problems().values()}
    textbook = {row["name"]: encoding(grammar, System.read(row["equation"])).bits for row in _table("textbook.csv")}
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


def measure_systems(name: str = "systems") -> dict[str, Any]:
    """Bits of every system of ODEBench and of the textbooks, and their medians by number of states."""
    grammar = load_grammar(name)
    figures: dict[str, Any] = {"grammar": grammar.fingerprint, "rules": grammar.n_rules}
    for title, systems in true_systems().items():
        rows = {name: [row.bits for row in system_encoding(grammar, text).rows] for name, text in systems.items()}
        totals = [(len(bits), sum(bits)) for bits in rows.values() if math.isfinite(sum(bits))]
        figures[f"{title}_said"] = f"{len(totals)} of {len(rows)}"
        for n in sorted({n for n, _ in totals}):
            figures[f"{title}_median_{n}_states"] = round(median(bits for count, bits in totals if count == n), 2)
        figures[f"{title}_rows_median"] = round(median(b for bits in rows.values() for b in bits), 2)
        figures[title] = {
            name: [round(b, 2) if math.isfinite(b) else None for b in bits] for name, bits in rows.items()
        }
    return figures


def true_systems() -> dict[str, dict[str, str]]:
    """The systems of ODEBench and of the textbooks as text, by name."""
    problems_ = tomllib.loads((HERE / "odebench.toml").read_text(encoding="utf-8"))["problem"]
    odebench = {
        f"{p['id']} {p['name']}": "; ".join(f"x{i}' = {right}" for i, right in enumerate(p["rhs"]))
        for p in problems_
        if p["dim"] > 1
    }
    return {"odebench": odebench, "textbook": {row["name"]: row["system"] for row in _table("textbook_systems.csv")}}


def _table(name: str) -> list[dict[str, str]]:
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `bits`."""
    parser.add_argument("grammar", nargs="?", default="standard", help="name of a grammar, or path of a file")
    parser.add_argument("--write", action="store_true", help="store the bits of systems among the results")


def main(args: argparse.Namespace) -> None:
    """Prints the bits of every equation or system, and the summaries."""
    if load_grammar(args.grammar).template == "system":
        figures = measure_systems(args.grammar)
        if args.write:
            (RESULTS / "system_bits.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        for table in ("odebench", "textbook"):
            for what, rows in figures.pop(table).items():
                total = "     -" if None in rows else f"{sum(rows):6.1f}"
                print(f"{total}  {what:48s} {' '.join('-' if b is None else f'{b:.1f}' for b in rows)}")
            print()
    else:
        figures = measure(args.grammar)
        for table in ("named", "textbook"):
            print("\n".join(f"{bits:7.2f}  {what}" for what, bits in figures.pop(table).items()), end="\n\n")
    print(json.dumps(figures, indent=2))
