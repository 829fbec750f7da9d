"""The conditional flow on the named problems: the rank of the truth in its list, and the bits of the truth.

    python -m benchmarks.conditional --seed 0 --out benchmarks/results/conditional.json

Ranks are among distinct structures, up to 100. Bits are -log2 p(truth | record), all orders of the summands added, for
the problems whose truth the grammar says with rules that are defined on the data.
"""

import argparse
import json
import math
import time
from itertools import permutations
from pathlib import Path

import numpy as np

from benchmarks.problems import problems
from benchmarks.surroundings import machine, versions
from lgf.conditional_flow import ConditionalFlowProposer, sentence_bits
from lgf.fit.target import make_target
from lgf.grammar import bits, load_grammar, split_rules
from lgf.language.cheapest_derivation import encode
from lgf.language.language import make_language
from lgf.language.projections import project
from lgf.language.term_table import term_table
from lgf.latent.rule_flow_file import load_rule_flow
from lgf.smoothing.complete import complete

MOST = 100


def study(model: str, seed: int) -> dict[str, dict]:
    """For each problem: rank, bits by the grammar and by the flow, processor seconds of the first eight proposals."""
    grammar = load_grammar(model)
    flow, table = load_rule_flow(model, grammar), term_table(grammar)
    assert flow is not None
    rows = {}
    for name, named in problems().items():
        problem = named.observe(seed=seed)
        (frame,) = problem.frames
        completions = [complete(o, frame, "auto", problem.signals(e)) for e, o in enumerate(problem.observations)]
        target = make_target(problem, frame, completions)
        language = make_language(grammar, problem, frame, target.ranges)
        truth = named.true_equation().skeleton
        began = time.process_time()
        proposer = ConditionalFlowProposer(flow, [language], {frame: target})
        listed = proposer.ask(8)
        seconds = time.process_time() - began
        listed += proposer.ask(MOST - len(listed))
        rank = next((i for i, p in enumerate(listed, 1) if p.skeleton.structure == truth.structure), None)
        row = {"rank": rank, "seconds": round(seconds, 4), "grammar_bits": None, "bits": None}
        derivation = encode(grammar, truth, bool(problem.forced))
        record = proposer.records[0] if proposer.records else None
        if derivation is not None and record is not None and language.allowed[list(derivation)].all():
            header, summands = split_rules(grammar, derivation)
            orders = sorted(set(permutations(summands)))
            row["grammar_bits"] = bits(grammar, derivation, language.allowed) - math.log2(len(orders))
            row["bits"] = sentence_bits(flow, project(record, table), language.allowed, tuple(header), orders)
        rows[name] = row
    return rows


def main() -> None:
    """Runs the study and prints its summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="standard")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rows = study(arguments.model, arguments.seed)
    ranks = [row["rank"] or math.inf for row in rows.values()]
    coded = [row for row in rows.values() if row["bits"] is not None]
    summary = {f"within {n}": sum(r <= n for r in ranks) / len(ranks) for n in (10, 30, 100)}
    summary |= {key: float(np.mean([row[key] for row in coded])) for key in ("grammar_bits", "bits")}
    summary |= {"coded": len(coded), "seconds": float(np.median([row["seconds"] for row in rows.values()]))}
    print(json.dumps(summary, indent=2))
    if arguments.out:
        facts = {"model": arguments.model, "seed": arguments.seed, "machine": machine(), "versions": versions()}
        arguments.out.write_text(json.dumps({**facts, "summary": summary, "problems": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
