"""`python -m lgf.training RECIPE.toml OUT [--resume]` trains the model of a recipe."""

import argparse
import sys

from lgf.training.loop import Progress
from lgf.training.stages import train


def main() -> None:
    """Trains and writes progress, one line an epoch."""
    parser = argparse.ArgumentParser(prog="python -m lgf.training")
    parser.add_argument("recipe")
    parser.add_argument("out")
    parser.add_argument("--resume", action="store_true")
    given = parser.parse_args()
    bundle = train(given.recipe, given.out, given.resume, _write)
    for name, value in bundle.metrics.items():
        sys.stdout.write(f"{name}: {value}\n")


def _write(progress: Progress) -> None:
    parts = [f"{progress.stage}  {progress.epoch}/{progress.epochs}"]
    figures = {"loss": progress.loss, "validation": progress.validation_loss, "exact": progress.exact}
    parts += [f"{name} {value:.4f}" for name, value in figures.items() if value is not None]
    sys.stdout.write("  ".join([*parts, f"{progress.seconds_left:.0f} s left\n"]))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
