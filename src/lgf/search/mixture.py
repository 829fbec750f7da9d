"""The proposers by name, and their mixture by the shares in the settings."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from lgf.data.row_knowledge import RowKnowledge
from lgf.errors import LgfError, quoted
from lgf.expression.frame import Frame
from lgf.fit.target import Target
from lgf.language.language import Language
from lgf.language.system_language import SystemLanguage
from lgf.search.proposers.basic import (
    EnumerationProposer,
    EvolutionProposer,
    MixedProposer,
    MonteCarloProposer,
    PlainProposer,
    Proposer,
)
from lgf.search.proposers.components import ComponentProposer
from lgf.search.proposers.hidden import HiddenProposer
from lgf.search.proposers.missing_terms import MissingTermProposer
from lgf.search.settings import DiscoverySettings
from lgf.threads import Spread, alone

# Makes a proposer for the languages and targets; None if it cannot propose anything for them.
MakeProposer = Callable[[Sequence[Language], Mapping[Frame, Target], DiscoverySettings, int], Proposer | None]

# These need a trained model, so the caller makes them.
FLOW = "flow"
CONDITIONAL = "conditional flow"
TRAINED = (FLOW, CONDITIONAL)
PROPOSERS: dict[str, MakeProposer] = {
    "enumeration": lambda languages, targets, settings, seed: EnumerationProposer(languages),
    "missing terms": lambda languages, targets, settings, seed: (
        MissingTermProposer(languages, targets) if _have_summands(languages) else None
    ),
    "evolution": lambda languages, targets, settings, seed: (
        EvolutionProposer(languages, seed) if _have_summands(languages) else None
    ),
    "monte carlo": lambda languages, targets, settings, seed: MonteCarloProposer(languages, seed),
}


# For frames of several states.
MakeSystemProposer = Callable[[SystemLanguage, Target, RowKnowledge, DiscoverySettings, Spread], Proposer | None]
SYSTEM_PROPOSERS: dict[str, MakeSystemProposer] = {
    "components": lambda language, target, known, settings, spread: (
        ComponentProposer(language, target, known, settings.components, spread) if known.hidden is None else None
    ),
    "hidden": lambda language, target, known, settings, spread: (
        None if known.hidden is None else HiddenProposer(language, target, known)
    ),
}


OF_PACKAGE = (*PROPOSERS, *SYSTEM_PROPOSERS, *TRAINED)


def check_proposers(settings: DiscoverySettings, own: Iterable[str] = ()) -> None:
    """Raises LgfError unless each share names a known proposer and each of the user's proposers has a share."""
    names = [part.name for part in settings.proposers]
    own = tuple(own)
    for name in own:
        if name in OF_PACKAGE:
            raise LgfError(f"{quoted(name)} is a proposer of the package; call your own by another name.")
        if name not in names:
            raise LgfError(
                f"the proposer {quoted(name)} has no share; add ProposerShare({quoted(name)}, 0.2) to the proposers of "
                "the settings."
            )
    for name in foreign_proposers(settings):
        if name not in own:
            raise LgfError(
                f"no proposer is called {quoted(name)}; choose from {', '.join([*OF_PACKAGE, *own])}, or give one "
                f"of your own, which takes Python: proposers={{{quoted(name)}: ...}}."
            )


def foreign_proposers(settings: DiscoverySettings) -> list[str]:
    """The names of the proposers that the user must supply."""
    return [part.name for part in settings.proposers if part.name not in OF_PACKAGE]


def make_schedule(
    languages: Sequence[Language],
    targets: Mapping[Frame, Target],
    settings: DiscoverySettings,
    seed: int,
    own: Mapping[str, MakeProposer],
    systems: Sequence[tuple[SystemLanguage, RowKnowledge]] = (),
    spread: Spread = alone,
) -> list[tuple[Proposer, int]]:
    """Pairs (proposer, iterations): the first list, plain equations, then the mixture of the proposers by their shares.

    The first list is that of the conditional flow, if it is among the proposers, or else the enumeration. The plain
    equations, linear ones and those with all products, are tried whatever it says.

    Proposers of share 0 are used only if no other can be (see `ProposerShare`). `languages` are of frames with one
    state, `systems` of frames with several. Without both only the user's proposers are used; without those the schedule
    is empty.
    """
    check_proposers(settings, [name for name in own if name not in TRAINED])
    enumeration = EnumerationProposer(languages)
    makers = {**PROPOSERS, "enumeration": lambda *_: enumeration, **own}
    listed = None
    if CONDITIONAL in own and languages and any(part.name == CONDITIONAL for part in settings.proposers):
        listed = own[CONDITIONAL](languages, targets, settings, seed)
        makers[CONDITIONAL] = lambda *_: listed

    def make(name: str) -> Proposer | None:
        if name in SYSTEM_PROPOSERS:
            if not systems:
                return None
            ((language, known),) = systems
            return SYSTEM_PROPOSERS[name](language, targets[language.frame], known, settings, spread)
        if name not in makers or (not languages and (name in PROPOSERS or name in TRAINED)):
            return None
        return makers[name](languages, targets, settings, seed)

    parts = [(make(part.name), part.share) for part in settings.proposers if part.share > 0]
    # Enumeration alone never ends at long equations.
    if all(proposer is None or proposer is enumeration for proposer, _ in parts):
        parts += [(make(part.name), 1.0) for part in settings.proposers if part.share == 0]
    usable = [proposer for proposer, _ in parts if proposer is not None]
    if not usable and not languages and not systems:
        return []
    if not usable:
        names = ", ".join(part.name for part in settings.proposers)
        raise LgfError(
            f"none of the proposers ({names}) can propose for this grammar and order; add another one, such as "
            "monte carlo with share 0."
        )
    mixture = usable[0] if len(usable) == 1 else MixedProposer(parts)
    if not languages:
        return [(mixture, 1)]
    first = enumeration, settings.enumeration.iterations
    if listed is not None and settings.conditional.iterations > 0:
        first = listed, settings.conditional.iterations
    plain = PlainProposer(languages)
    return [first, (plain, 1 if plain.waiting and first[1] else 0), (mixture, 1)]


def _have_summands(languages: Sequence[Language]) -> bool:
    """Whether every grammar names a summand to add and exchange."""
    return all(language.grammar.summand for language in languages)
