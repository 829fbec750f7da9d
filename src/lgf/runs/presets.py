"""The user's choices: model, grammar, preset, settings, budgets."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from numbers import Real
from pathlib import Path
from typing import Any

from lgf.errors import LgfError, quoted
from lgf.expression.frame import Frame
from lgf.fit.target import Target
from lgf.grammar import Grammar, load_grammar
from lgf.language.language import Language
from lgf.search.mixture import CONDITIONAL, FLOW, MakeProposer
from lgf.search.proposers.basic import Proposer
from lgf.search.settings import PRESETS, DiscoverySettings
from lgf.settings.toml_tables import Table, described, read_table
from lgf.trained.folders import fingerprint_of, model_grammar, model_names


def model_named(model: str | Path) -> tuple[Grammar, str | None]:
    """(grammar, folder of the trained model or None) of a model, by its name or path."""
    if not isinstance(model, (str, Path)):
        raise LgfError(f"the model is {quoted(model)}; give its name, or the path of a grammar or of a trained model.")
    if Path(model).is_dir():
        return model_grammar(Path(model)), str(model)
    return grammar_named(model), None


def grammar_named(model: str | Path) -> Grammar:
    """The grammar of a model, by its name or the path of a file."""
    try:
        return load_grammar(model)
    except (OSError, UnicodeDecodeError) as error:
        raise LgfError(
            f"the grammar {quoted(str(model))} cannot be read ({type(error).__name__}); give a text file."
        ) from error


def preset_named(name: str) -> DiscoverySettings:
    """The settings of a preset."""
    if not isinstance(name, str) or name not in PRESETS:
        raise LgfError(f"no preset is called {quoted(name)}; choose from {', '.join(PRESETS)}.")
    return PRESETS[name]


def settings_in(path: str | Path, preset: DiscoverySettings) -> DiscoverySettings:
    """The preset, overridden by the values in the TOML file; LgfError names the first wrong key."""
    return described(DiscoverySettings, _merged(asdict(preset), read_table(path)), Path(path).name)


def checked_settings(settings: Any) -> DiscoverySettings:
    """The validated settings; LgfError names the first value out of range."""
    if not isinstance(settings, DiscoverySettings):
        raise LgfError(f"settings is {quoted(settings)}; give a DiscoverySettings, or None for those of the preset.")
    return described(DiscoverySettings, asdict(settings), "settings")


def _merged(table: Table, overrides: Table) -> Table:
    """The table with the overrides applied recursively."""
    both = {
        key: _merged(table[key], value) if isinstance(table.get(key), dict) and isinstance(value, dict) else value
        for key, value in overrides.items()
    }
    return {**table, **both}


def with_budget(
    settings: DiscoverySettings, max_evaluations: int | None, max_seconds: float | None, patience: int | None = None
) -> DiscoverySettings:
    """The settings with these budgets and this patience; None leaves them as they are."""
    limits = settings.search
    if patience is not None:
        if patience < 1:
            raise LgfError(f"the patience is {quoted(patience)} evaluations; give at least 1.")
        limits = replace(limits, patience=int(patience), persistence=0.0)
    if max_evaluations is not None:
        if not isinstance(max_evaluations, Real) or not 1 <= max_evaluations < float("inf"):
            raise LgfError(f"the budget is {quoted(max_evaluations)} evaluations; give at least 1.")
        limits = replace(limits, max_evaluations=int(max_evaluations))
    if max_seconds is not None:
        if not isinstance(max_seconds, Real) or not 0 < max_seconds < 1e300:
            raise LgfError(f"the budget is {quoted(max_seconds)} seconds; give a positive number.")
        limits = replace(limits, max_seconds=float(max_seconds))
    return replace(settings, search=limits)


def longer(settings: DiscoverySettings, evaluations: int) -> DiscoverySettings:
    """The settings for a search of at least twice as many evaluations as a first one, which ended by itself."""
    limits = settings.search
    if limits.max_evaluations is not None:
        limits = replace(limits, max_evaluations=max(limits.max_evaluations, 2 * evaluations))
    if limits.patience is not None:
        limits = replace(limits, patience=max(limits.patience, 2 * evaluations))
    return replace(settings, search=limits)


def proposers_for(grammar: Grammar, trained: str | None = None) -> dict[str, MakeProposer]:
    """The proposers of the trained model of this grammar by name; empty if there is none.

    The model is the one in folder `trained`, or else the one that comes with the package.
    """
    from lgf.conditional_flow import conditional_proposers
    from lgf.trained.rule_flow_file import load_rule_flow

    name = trained or (grammar.name if grammar.name in model_names() else None)
    if name is None or fingerprint_of(name) != grammar.fingerprint:
        return {}
    conditional = load_rule_flow(name, grammar)
    listed = {} if conditional is None else {CONDITIONAL: conditional_proposers(conditional)}
    return {FLOW: _latent_flow(name), **listed}


def _latent_flow(name: str) -> MakeProposer:
    """The maker of the paper's proposer, which is imported if it is used."""

    def make(
        languages: Sequence[Language], targets: Mapping[Frame, Target], settings: DiscoverySettings, seed: int
    ) -> Proposer | None:
        from lgf.paper.discovery.proposer import flow_proposer

        return flow_proposer(name, languages, settings.flow, seed)

    return make
