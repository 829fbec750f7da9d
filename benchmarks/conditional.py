"""`conditional`: the conditional flow on the named problems, the rank of the truth in its list and the truth's bits.

    python -m benchmarks conditional --json benchmarks/results/conditional.json

Ranks are among distinct structures, up to 100. Bits are -log2 p(truth | record), all orders of the summands added, for
the problems whose truth the grammar says with rules that are defined on the data; "free_bits" are those of strength 0,
without the record, to be compared with the grammar's. "missing" ranks the term that the truth lacks without its last
summand, by the flow and by linear responses. "simpler" tells whether one of the first eight has a smaller
description length than the truth: then the truth is not what the draw pays for. "fitted_rank" is the rank of the truth
by description length among 400 of the list, each fitted: no list can know more of the draw than its fits.
"searched_rank" is the rank of the truth among the first hundred equations that the default search tries, which begins
with the list and goes on with what its fits tell.
"""

import argparse
import json
import math
import time
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np

from benchmarks.problems import problems
from benchmarks.sentence_bits import sentence_bits
from benchmarks.surroundings import machine, versions
from lgf.conditional_flow import ConditionalFlowProposer
from lgf.data.problem import Problem
from lgf.equation.terms import term_of
from lgf.expression.tree import summands as terms
from lgf.fit.target import Target
from lgf.fit.target_assembly import make_target
from lgf.grammar import Derivation, bits, load_grammar, spell, split_rules
from lgf.grammar.blocks import summand_symbols
from lgf.language.cheapest_derivation import cheapest, encode
from lgf.language.language import Language, make_language
from lgf.language.projections import Projections, project
from lgf.language.sentence_order import spoken
from lgf.language.term_dictionary import parts_of, term_dictionary
from lgf.language.term_table import summand_group, term_table
from lgf.runs.presets import proposers_for
from lgf.search.discover import discover
from lgf.search.evaluate import Evaluator
from lgf.search.proposers.basic import propose
from lgf.search.proposers.missing_terms import moves
from lgf.search.settings import DiscoverySettings
from lgf.search.term_columns import TermColumns
from lgf.settings.flow import ConditionalSettings
from lgf.smoothing.complete import complete
from lgf.trained.rule_flow import RuleFlow
from lgf.trained.rule_flow_file import load_rule_flow

MOST, FITTED = 100, 400


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
        derivation = encode(grammar, truth, bool(problem.forced))
        own = propose(language, derivation, "truth") if derivation is not None else None
        # an implicit truth, u''^2 = C*u^2, is said by its branch
        right = {truth.structure} | ({own.skeleton.structure} if own is not None else set())
        began = time.process_time()
        proposer = ConditionalFlowProposer(flow, [language], {frame: target}, ConditionalSettings(most=FITTED))
        listed = proposer.ask(8)
        seconds = time.process_time() - began
        listed += proposer.ask(FITTED - len(listed))
        rank = next((i for i, p in enumerate(listed[:MOST], 1) if p.skeleton.structure in right), None)
        row = {"rank": rank, "seconds": round(seconds, 4), "grammar_bits": None, "free_bits": None, "bits": None}
        record = proposer.records[0] if proposer.records else None
        if derivation is not None and record is not None and language.allowed[list(derivation)].all():
            header, summands = split_rules(grammar, derivation)
            orders = sorted(set(permutations(summands)))
            row["grammar_bits"] = bits(grammar, derivation, language.allowed) - math.log2(len(orders))
            read = project(record, table)
            for key, strength in (("free_bits", 0.0), ("bits", 1.0)):
                row[key] = sentence_bits(flow, read, language.allowed, tuple(header), orders, strength)
            evaluator = Evaluator({frame: target}, problem.knowledge)
            assert own is not None
            lengths = [evaluator(p).objective for p in listed]
            length = evaluator(own).objective
            row["simpler"] = min(lengths[:8]) < length
            row["fitted_rank"] = 1 + sum(other < length - 1e-9 for other in lengths)
            row["missing"] = missing_term(flow, read, language, target, evaluator, derivation)
        row["searched_rank"] = searched_rank(problem, model, right, seed)
        rows[name] = row
    return rows


def searched_rank(problem: Problem, model: str, right: set[str], seed: int) -> int | None:
    """The rank of the truth among the first equations that the default search tries."""
    settings = DiscoverySettings()
    settings = replace(settings, search=replace(settings.search, max_evaluations=MOST, patience=None))
    grammar = load_grammar(model)
    found = discover(problem, grammar, settings, proposers=proposers_for(grammar), seed=seed)
    tried = [candidate.skeleton.structure for candidate in found.population][:MOST]
    return next((i for i, structure in enumerate(tried, 1) if structure in right), None)


def missing_term(
    flow: RuleFlow,
    record: Projections,
    language: Language,
    target: Target,
    evaluator: Evaluator,
    derivation: Derivation,
) -> dict[str, int | None] | None:
    """The ranks of the term that the truth without its last summand lacks; None if that is no term of the table.

    Both rank the terms of the table: "flow" by p(next summand | the equation so far, record), "responses" by what they
    explain of the residual of the fitted equation, as the proposer of missing terms does.
    """
    grammar = language.grammar
    header, summands = split_rules(grammar, derivation)
    said, _ = spoken(grammar, tuple(header), summands, record)
    whole = propose(language, derivation, "truth")
    if not said or summand_group(grammar, said[-1]) is None or whole is None:
        return None
    *rest, lost = said
    (term,) = parts_of(spell(grammar, lost, summand_symbols(grammar)))
    parts = frozenset(map(term_of, terms(whole.skeleton.right)))
    short = parts - {language.term(term)}
    derived = cheapest(grammar, language.allowed, language.sentence_parts(tuple(sorted(short))))
    shortened = None if derived is None or short == parts else propose(language, derived[1], "shortened")
    if shortened is None:
        return None
    known = [t for t in term_dictionary(grammar, language.allowed).terms if summand_group(grammar, t.derivation)]
    lengths = {
        t.parts[0]: sentence_bits(flow, record, language.allowed, tuple(header), [[*rest, t.derivation]]) for t in known
    }
    changes = moves(evaluator(shortened), target, TermColumns(language, target))
    of_table = {short | {language.term(t)} for t in lengths}
    added = [p for move in changes if move.kind == "add" and (p := frozenset(move.parts)) in of_table]
    return {
        "flow": sorted(lengths, key=lambda t: lengths[t]).index(term) + 1,
        "responses": added.index(parts) + 1 if parts in added else None,
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("--model", default="standard")
    parser.add_argument("--seed", type=int, default=0, help="of the noise; 0 to 4 judge, tune on others")
    parser.add_argument("--json", type=Path, help="write the figures here")


def main(args: argparse.Namespace) -> None:
    """Runs the study and prints its summary."""
    rows = study(args.model, args.seed)
    ranks = [row["rank"] or math.inf for row in rows.values()]
    coded = [row for row in rows.values() if row["bits"] is not None]
    summary = {f"within {n}": sum(r <= n for r in ranks) / len(ranks) for n in (10, 30, 100)}
    paid = [row["rank"] or math.inf for row in coded if not row["simpler"]]
    summary |= {f"within {n}, truth paid for": sum(r <= n for r in paid) / len(paid) for n in (10, 30, 100)}
    fitted = [row["fitted_rank"] for row in coded]
    summary |= {f"within {n}, by 400 fits": sum(r <= n for r in fitted) / len(ranks) for n in (10, 30, 100)}
    searched = [row["searched_rank"] or math.inf for row in rows.values()]
    summary |= {f"within {n}, by the search": sum(r <= n for r in searched) / len(ranks) for n in (10, 30, 100)}
    summary |= {key: float(np.mean([row[key] for row in coded])) for key in ("grammar_bits", "free_bits", "bits")}
    summary |= {"coded": len(coded), "paid for": len(paid)}
    missing = [row["missing"] for row in coded if row["missing"] is not None]
    for n in (1, 3, 10):
        for way in ("flow", "responses"):
            summary[f"missing term within {n} by {way}"] = sum((m[way] or math.inf) <= n for m in missing)
    summary |= {"missing terms": len(missing)}
    summary |= {"seconds": float(np.median([row["seconds"] for row in rows.values()]))}
    print(json.dumps(summary, indent=2))
    if args.json:
        facts = {"model": args.model, "seed": args.seed, "machine": machine(), "versions": versions()}
        args.json.write_text(json.dumps({**facts, "summary": summary, "problems": rows}, indent=1) + "\n")
