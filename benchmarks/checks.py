"""`checks`: the time that predictions, noise models and varying constants take, in units of a discovery without them.

`python -m benchmarks checks [--only b1/03,...]` discovers each problem twice in turn, with and without the checks, and
prints the processor seconds of both and the ratio. Without: no origins, no noise model, no simpler equations.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.choosing import chosen
from benchmarks.recording import RESULTS
from benchmarks.running import Options, observed
from benchmarks.surroundings import machine, versions
from lgf.grammar import load_grammar
from lgf.runs.presets import proposers_for
from lgf.search.discover import discover
from lgf.search.settings import DiscoverySettings

FILE = RESULTS / "checks.json"
PROBLEMS = "b1/03,b1/10,b1/16,b1/25,b2/nlode2,b4/seasonal-budworm"


def without_checks(settings: DiscoverySettings) -> DiscoverySettings:
    """The settings with predictions, the examination of residuals, and simpler equations switched off."""
    never = 10**9
    prediction = replace(settings.prediction, origins=(), n_first_order=1, discounts=())
    noise = replace(settings.noise, least_samples=never)
    return replace(settings, prediction=prediction, noise=noise)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    parser.add_argument("--only", default=PROBLEMS, metavar="IDS")
    parser.add_argument("--json", type=Path, default=FILE)


def main(args: argparse.Namespace) -> None:
    """Measures every problem and prints the ratios."""
    grammar, rows = load_grammar("standard"), []
    variants = {"with": DiscoverySettings(), "without": without_checks(DiscoverySettings())}
    for problem in chosen(args.only, ("b1", "b2", "b3", "b4")):
        options = Options(problem.id.split("/")[0])
        data, seconds = observed(problem, options, 0), {}
        for name, settings in (*variants.items(), *reversed(variants.items())):  # the first pass loads what is cached
            began = time.process_time()
            discover(data, grammar, settings, proposers=proposers_for(grammar, None), seed=0)
            seconds[name] = min(time.process_time() - began, seconds.get(name, float("inf")))
        ratio = seconds["with"] / seconds["without"]
        rows.append({"problem": problem.id, **seconds, "ratio": ratio})
        print(f"{problem.id:22s} {seconds['with']:6.2f} s  {seconds['without']:6.2f} s  {ratio:5.2f}", flush=True)
    total = sum(r["with"] for r in rows) / sum(r["without"] for r in rows)
    print(f"all: {total:.2f}")
    args.json.write_text(
        json.dumps({"rows": rows, "ratio": total, "versions": versions(), "machine": machine()}, indent=1) + "\n"
    )
