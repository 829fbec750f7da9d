"""The commands `models`, `sample` and `train`."""

import json
import math
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lgf.cli.options import AsJson
from lgf.errors import quoted

if TYPE_CHECKING:
    from lgf.expression.frame import Frame
    from lgf.grammar import Grammar
    from lgf.training.progress import Progress

MOST_SAMPLES = 1_000_000
MOST_TERMS = 40  # listed for a row

models_app = typer.Typer(
    help="The grammars and trained models that come with the package.", rich_markup_mode=None,
    invoke_without_command=True,
)  # fmt: skip
Model = Annotated[str, typer.Argument(metavar="MODEL", help="standard, systems, b1, b2, b3, or path of a grammar.")]


@models_app.callback()
def models(context: typer.Context, as_json: AsJson = False) -> None:
    """List the grammars and trained models that come with the package."""
    if context.invoked_subcommand is not None:
        return
    from lgf.grammar import grammar_names, load_grammar

    facts = [_facts(load_grammar(name)) for name in grammar_names()]
    if as_json:
        typer.echo(json.dumps(facts, indent=1))
        return
    for fact in facts:
        trained = "trained" if fact["trained"] else "grammar only"
        typer.echo(f"{fact['name']:12s} {fact['rules']:3d} rules   {fact['template']:14s} {trained}")


@models_app.command()
def show(
    model: Model,
    equation: Annotated[
        str | None, typer.Argument(help="Equation, or system with ; between its equations, to look up in the grammar.")
    ] = None,
    inputs: Annotated[
        list[str] | None, typer.Option("--input", metavar="NAME", help="Known input of the equation. Default: F.")
    ] = None,
    terms: Annotated[
        str | None,
        typer.Option(metavar="ROWS", help="List the cheapest terms of each row, such as \"x', y''\"; F is an input."),
    ] = None,
) -> None:
    """Print a grammar, the bits of an equation or system in it, or the terms that a row of a system may have."""
    from lgf.runs.presets import grammar_named

    grammar = grammar_named(model)
    if terms is not None:
        _show_terms(grammar, terms)
    elif equation is None:
        typer.echo(grammar.text, nl=False)
        metrics = _metrics(grammar.name)
        if metrics:
            typer.echo(json.dumps(metrics, indent=1))
    elif grammar.template == "system":
        _show_system(grammar, equation, tuple(inputs or ()))
    else:
        _show_equation(grammar, equation, tuple(inputs or ()))


def _show_equation(grammar: "Grammar", text: str, inputs: tuple[str, ...]) -> None:
    from lgf.equation.skeleton import Skeleton, read_sides
    from lgf.equation.structure import open_constants
    from lgf.errors import LgfError
    from lgf.expression.parse import ReadingError
    from lgf.expression.tree import number, substitute
    from lgf.grammar import spell
    from lgf.language.cheapest_derivation import encoding

    try:
        frame, sides = read_sides(text, inputs=inputs)
    except ReadingError as error:
        raise LgfError(f"the equation {quoted(text)} cannot be read: {error.message}.") from error
    if len(frame.states) > 1:
        raise LgfError(f"{grammar.name} says equations of one state; look systems up in 'systems'.")
    (pair,) = sides
    values = {n: number(1.5) for side in pair for n in side.nodes() if n.head == "constant"}  # any value but a unit
    left, right, _ = open_constants(*(substitute(side, values) for side in pair))
    skeleton = Skeleton(frame, ((left, right),))
    encoded = encoding(grammar, skeleton)
    if encoded.derivation is None:
        missing = f": it has no {', '.join(encoded.unsaid)}" if encoded.unsaid else ""
        typer.echo(f"{grammar.name} cannot say {skeleton}{missing}.")
        return
    typer.echo(f"{grammar.name} says {skeleton} in {encoded.bits:.1f} bits, as {spell(grammar, encoded.derivation)}.")


def _show_system(grammar: "Grammar", text: str, inputs: tuple[str, ...]) -> None:
    from lgf.errors import LgfError
    from lgf.expression.parse import ReadingError
    from lgf.language.system_encoding import system_encoding

    try:
        encoded = system_encoding(grammar, text, inputs)
    except ReadingError as error:
        raise LgfError(f"the system {quoted(text)} cannot be read: {error.message}.") from error
    said = math.isfinite(encoded.bits)
    typer.echo(f"{grammar.name} {f'says this in {encoded.bits:.1f} bits' if said else 'cannot say this'}:")
    for row, right, unsaid in zip(encoded.rows, encoded.right_sides, encoded.unsaid, strict=True):
        bits = f"{row.bits:8.1f}" if math.isfinite(row.bits) else "       -"
        typer.echo(f"{bits}   {right}{f', but it has no {chr(44).join(unsaid)}' if unsaid else ''}")


def _show_terms(grammar: "Grammar", rows: str) -> None:
    from lgf.expression.print import plain
    from lgf.language.system_language import unrestricted

    language = unrestricted(grammar, _frame_of_rows(rows, "--terms"))
    for i, highest in enumerate(language.frame.highest):
        listed = language.terms(i)[:MOST_TERMS]
        typer.echo(f"{highest} = the cheapest {len(listed)} of {len(language.terms(i))} terms, with their bits")
        typer.echo("\n".join(f"{bits:8.1f}   {plain(e, ['C'] * 9)}" for e, bits in listed))


def _frame_of_rows(rows: str, option: str) -> "Frame":
    """The frame of rows given by their highest derivatives; names without primes are inputs."""
    from lgf.errors import LgfError
    from lgf.expression.frame import Frame, Variable

    variables = [Variable.read(name) for name in rows.split(",")]
    states = tuple((v.name, v.derivative) for v in variables if v.derivative)
    if not states:
        raise LgfError(f"{option} is {quoted(rows)}; name the derivatives that the rows give, such as x', y''.")
    return Frame(states, tuple(v.name for v in variables if not v.derivative))


def sample(
    model: Model,
    n: Annotated[int, typer.Option("-n", "--n", help="Number of equations.")] = 10,
    order: Annotated[int, typer.Option(help="Order of the equations.")] = 2,
    forced: Annotated[bool, typer.Option("--forced", help="Equations with an input F.")] = False,
    rows: Annotated[
        str,
        typer.Option(metavar="ROWS", help="Rows of systems, such as \"x', y''\"; a name without primes is an input."),
    ] = "x', y'",
    seed: Annotated[int, typer.Option(help="Random seed; the same seed gives the same sample.")] = 0,
) -> None:
    """Draw random equations from a model's grammar."""
    import numpy as np

    from lgf.errors import LgfError
    from lgf.grammar import restrict, spell
    from lgf.grammar import sample as sample_derivations
    from lgf.language.sentences import NoEquation, grammar_frame, skeleton_of
    from lgf.runs.presets import grammar_named

    if not 1 <= n <= MOST_SAMPLES:
        raise LgfError(f"-n is {n}; give a number from 1 to {MOST_SAMPLES}.")
    if seed < 0:
        raise LgfError(f"--seed is {seed}; give a whole number that is not negative.")
    grammar = grammar_named(model)
    if grammar.template == "system":
        _sample_systems(grammar, _frame_of_rows(rows, "--rows"), n, seed)
        return
    if not 1 <= order <= 4:
        raise LgfError(f"--order is {order}; give a whole number from 1 to 4.")
    allowed = restrict(grammar, order=order, forced=forced)
    rng = np.random.default_rng(seed)
    cap = None if grammar.template == "explicit" else order
    frame = grammar_frame(order, forced)
    count = tries = 0
    while count < n:
        tries += 1
        if tries > 100 + n:
            raise LgfError(f"{grammar.name} hardly says any equation of order {order}; ask for another order.")
        for derivation in sample_derivations(grammar, rng, min(n, 1000), allowed, max_order=cap):
            try:
                skeleton = skeleton_of(grammar.template, spell(grammar, derivation), frame)
            except NoEquation:
                continue
            typer.echo(str(skeleton))
            count += 1
            if count == n:
                break


def _sample_systems(grammar: "Grammar", frame: "Frame", n: int, seed: int) -> None:
    import numpy as np

    from lgf.expression.canonical import canonical
    from lgf.expression.monomials import n_constants
    from lgf.expression.parse import read_expression
    from lgf.expression.print import plain
    from lgf.grammar import instantiate, spell
    from lgf.grammar import sample as sample_derivations

    rng = np.random.default_rng(seed)
    rules = [instantiate(grammar, frame, row) for row in range(len(frame.states))]
    for _ in range(n):
        for left, row in zip(frame.highest, rules, strict=True):
            (derivation,) = sample_derivations(row, rng, 1)
            right, _ = canonical(read_expression(spell(row, derivation), frame))
            typer.echo(f"{left} = {plain(right, ['C'] * n_constants(right))}")
        typer.echo()


def train(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="TOML file with the training recipe.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the model. Default: models/NAME.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted training.")] = False,
) -> None:
    """Train a model from a recipe."""
    from lgf.errors import LgfError
    from lgf.paper.training.recipe import load_recipe

    plan = load_recipe(recipe)
    folder = out if out is not None else Path("models") / plan.name
    try:
        from lgf.paper.training.stages import train as train_model
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise LgfError(
            "training needs the package torch; install it by: pip install 'latent-grammar-flow[train]'."
        ) from error
    bundle = train_model(plan, folder, resume, _print_progress)
    typer.echo(json.dumps(dict(bundle.metrics), indent=1, default=str))
    typer.echo(f"the model {bundle.name} is in {folder}", err=True)


def _print_progress(progress: "Progress") -> None:
    from lgf.runs.percentages import percentage

    parts = [progress.stage, f"{progress.epoch} of {progress.epochs}"]
    figures = {"loss": progress.loss, "validation": progress.validation_loss}
    parts += [f"{name} {value:.4g}" for name, value in figures.items() if value is not None]
    parts += [] if progress.exact is None else [f"exact {percentage(progress.exact)}"]
    typer.echo("   ".join([*parts, f"{progress.seconds_left:.0f} s left"]), err=True)


def _facts(grammar: "Grammar") -> dict[str, Any]:
    return {
        "name": grammar.name,
        "rules": len(grammar.rules),
        "template": grammar.template,
        "trained": _metrics(grammar.name) is not None,
        "metrics": _metrics(grammar.name),
    }


def _metrics(name: str) -> dict[str, Any] | None:
    """The metrics of the trained model of this name, read without loading networks; None if there is none."""
    from lgf.grammar import grammar_names

    if name not in grammar_names():  # the name of a user's grammar may be unsafe as a path, such as ../..
        return None
    facts = files("lgf").joinpath("models", name, "model.json")
    return json.loads(facts.read_text(encoding="utf-8")).get("metrics") if facts.is_file() else None
