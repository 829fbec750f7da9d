"""Latent Grammar Flow: ordinary differential equations from noisy measurements."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lgf.batch.files import fit_files
    from lgf.data.knowledge import Knowledge
    from lgf.equation.system import System
    from lgf.errors import LgfError
    from lgf.estimator import LatentGrammarFlow
    from lgf.search.settings import DiscoverySettings, ProposerShare

__version__ = "0.3.0.dev0"
__all__ = [
    "DiscoverySettings", "Knowledge", "LatentGrammarFlow", "LgfError", "ProposerShare", "System", "__version__",
    "fit_files",
]  # fmt: skip

_HOMES = {
    "LgfError": "lgf.errors",
    "System": "lgf.equation.system",
    "LatentGrammarFlow": "lgf.estimator",
    "fit_files": "lgf.batch.files",
    "Knowledge": "lgf.data.knowledge",
    "DiscoverySettings": "lgf.search.settings",
    "ProposerShare": "lgf.search.settings",
}


def __getattr__(name: str) -> Any:
    """The public names, imported when first used: `import lgf` alone must be quick."""
    if name not in _HOMES:
        raise AttributeError(f"module 'lgf' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
