"""What a user chooses by name: a model and its grammar, a preset and its budgets; and the proposer that follows."""

from dataclasses import replace
from pathlib import Path

from lgf.errors import LgfError, quoted
from lgf.grammar import Grammar, load_grammar
from lgf.search.discover import PRESETS, DiscoverySettings, MakeProposer, without_model


def model_named(model: str | Path) -> tuple[Grammar, str | None]:
    """(grammar, folder of the trained model or None) of the model of this name, in this folder, or in this file."""
    if Path(model).is_dir():
        from lgf.errors import LgfError
        from lgf.latent.bundle import load_bundle

        try:
            return load_bundle(Path(model)).grammar, str(model)
        except LgfError as error:
            raise LgfError(str(error)) from error
    return grammar_named(model), None


def grammar_named(model: str | Path) -> Grammar:
    """The grammar of the model of this name, or in the file of this path."""
    try:
        return load_grammar(model)
    except FileNotFoundError as error:
        raise LgfError(str(error)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise LgfError(
            f"the grammar {quoted(str(model))} cannot be read ({type(error).__name__}); give a text file."
        ) from error


def preset_named(name: str) -> DiscoverySettings:
    """The settings of this name."""
    if name not in PRESETS:
        raise LgfError(f"no preset is called {quoted(name)}; choose from {', '.join(PRESETS)}.")
    return PRESETS[name]


def with_budget(
    settings: DiscoverySettings, max_evaluations: int | None, max_seconds: float | None
) -> DiscoverySettings:
    """The settings with these budgets, where they are given."""
    limits = settings.search
    if max_evaluations is not None:
        if not max_evaluations >= 1:
            raise LgfError(f"the budget is {max_evaluations} evaluations; give at least 1.")
        limits = replace(limits, max_evaluations=int(max_evaluations))
    if max_seconds is not None:
        if not 0 < max_seconds < float("inf"):
            raise LgfError(f"the budget is {max_seconds} seconds; give a positive number.")
        limits = replace(limits, max_seconds=float(max_seconds))
    return replace(settings, search=limits)


def proposer_for(grammar: Grammar, trained: str | None = None) -> MakeProposer:
    """Where the proposals for this grammar come from once enumeration has had its turn: the flow of a trained model.

    That is the model in the folder `trained`, else the one that comes with the package and has this grammar; where
    there is none, missing terms and evolution search alone.
    """
    from lgf.errors import LgfError
    from lgf.flow_proposer import flow_proposers
    from lgf.latent.bundle import bundle_names, load_bundle

    name = trained or (grammar.name if grammar.name in bundle_names() else None)
    if name is None:
        return without_model
    try:
        bundle = load_bundle(name)
    except LgfError as error:
        raise LgfError(str(error)) from error
    return flow_proposers(bundle) if bundle.grammar.fingerprint == grammar.fingerprint else without_model
