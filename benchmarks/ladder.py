"""The ladder from the paper to the default: one part after the other of the preset "paper" is replaced.

A rung has the parts of all rungs below it. Budgets stay the paper's until the last rung.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from lgf.fit.settings import FitSettings
from lgf.search.settings import DiscoverySettings

Change = Callable[[DiscoverySettings], DiscoverySettings]
DEFAULT = DiscoverySettings()


@dataclass(frozen=True)
class Rung:
    """One part of the paper's method replaced: what it is in words, and the change of the settings."""

    words: str
    change: Change
    own_grammar: bool = False  # the standard grammar in place of the benchmark's


def _fit(settings: DiscoverySettings) -> DiscoverySettings:
    """Variable projection and Levenberg-Marquardt, on the measured columns."""
    return replace(settings, fit=FitSettings(), all_modes=False)


def _choice(settings: DiscoverySettings) -> DiscoverySettings:
    return replace(settings, objective=DEFAULT.objective, selection=DEFAULT.selection)


def _proposers(settings: DiscoverySettings) -> DiscoverySettings:
    return replace(
        settings, proposers=DEFAULT.proposers, enumeration=DEFAULT.enumeration, conditional=DEFAULT.conditional
    )


RUNGS: dict[str, Rung] = {
    "paper": Rung("the paper's method, latent aligned to summands", lambda settings: settings),
    "smoothing": Rung("Gaussian process in place of the perceptron", lambda s: replace(s, smoothing=DEFAULT.smoothing)),
    "fit": Rung("least squares on the measured columns in place of Nelder-Mead on all modes", _fit),
    "choice": Rung("description length in place of L_IC", _choice),
    "proposers": Rung("missing terms and evolution beside the flow", _proposers),
    "grammar": Rung("the standard grammar, its flow that reads the record", lambda settings: settings, True),
    "default": Rung("this project's budget: a search ends when it has settled", lambda settings: DEFAULT, True),
}


def rung_settings(paper: DiscoverySettings, rung: str) -> DiscoverySettings:
    """The settings of the paper with the parts of this rung and of all below it."""
    for name, step in RUNGS.items():
        paper = step.change(paper)
        if name == rung:
            break
    return paper
