"""`python -m benchmarks COMMAND ...`: every command is a module with `add_arguments(parser)` and `main(args)`."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

COMMANDS = {
    "floor": ("floor", "fit the true structures and compare with the floor"),
    "speed": ("speed", "measure the numerical core"),
    "flow": ("flow", "measure the trained flows: guided samples, predictors, approximation"),
    "run": ("running", "discover the problems of a benchmark, one line of JSON for each problem and seed"),
    "table": ("tables", "set the results beside the published ones and the floor"),
    "report": ("reporting", "write the page of results in the docs"),
    "figures": ("figures", "draw the results"),
    "hidden": ("hidden", "one state measured, another one inferred: is the truth found?"),
    "clean": ("clean", "textbook systems without noise: are the right terms found?"),
    "made": ("made", "made records with varying constants, drift and growing noise: are the right terms found?"),
    "checks": ("checks", "how much longer a discovery takes with the checks than without them"),
    "bits": ("grammar_bits", "measure a grammar: the bits of true equations or systems"),
    "real": ("real.running", "real records: forecasts and left-out experiments beside naive predictions"),
    "bands": ("bands", "how often 90 % bands hold samples that were not seen"),
    "suggest": ("suggesting", "is the truth chosen after a second record as suggested, or from a random start?"),
    "batch": ("many_records", "200 short records in one command: seconds and right answers"),
    "long": ("long_records", "100,000 samples beside 2,000 of them: seconds and error"),
    "cost": ("cost", "how seconds and memory grow with samples, states, experiments and workers"),
    "giving-up": ("giving_up", "are true structures lost because a fit gives up early?"),
    "odebench": ("odebench_protocol", "all 63 systems of ODEBench by its own protocol"),
    "llmode": ("llmode", "the 91 systems of LLM-ODE by its own protocol"),
    "odebench-page": ("odebench_page", "write the page on ODEBench: shares against noise, ours beside published"),
    "release": ("releases", "run a command by released versions, or by several versions in turn"),
    "peers": ("peers.asking", "list or install other programs to compare with"),
    "model": ("model_metrics", "measure a trained model: reconstruction, one-token changes, samples of its flow"),
    "rows": ("row_training", "train the ranking of right-hand sides of systems on simulated ones"),
    "autoencoder": ("paper_autoencoder", "train the autoencoder of a recipe alone, in pieces; exact reconstruction"),
    "conditional": ("conditional", "the rank of the truth in the list of the conditional flow, and its bits"),
    "lists": ("first_lists", "processor time of the first list of proposals for a system"),
    "first-minutes": ("first_minutes", "six tables as new users bring them: what is the answer?"),
    "efficiency": ("efficiency", "count the evaluations that each way of proposing needs"),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command named by the arguments."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    parser = argparse.ArgumentParser("python -m benchmarks", description=sys.modules["benchmarks"].__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    named = given[0] if given else None
    for name, (module, help_) in COMMANDS.items():
        command = commands.add_parser(name, help=help_.replace("%", "%%"))
        if name == named:  # the others are not imported, because some take seconds
            loaded = import_module(f"benchmarks.{module}")
            loaded.add_arguments(command)
            command.set_defaults(main=loaded.main)
    args = parser.parse_args(given)
    args.main(args)


if __name__ == "__main__":
    main()
