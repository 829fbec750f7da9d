"""The proposer on the guided latent flow; it connects the networks with equations.

Latent codes are decoded to derivations, and these to skeletons. The decoder's masks enforce what the user knows (order,
forcing, allowed rules). Sentences are sampled from noise. Predictors of the objective and, if it is known, of stability
are trained during the search on all candidates so far, and guide the sampling.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import zip_longest

import numpy as np

from lgf.grammar import Derivation, pad, unpad
from lgf.language.language import Language
from lgf.paper.autoencoder.autoencoder import decode, encode
from lgf.paper.bundle import ModelBundle, load_bundle
from lgf.paper.corpus import HIGHEST_ORDER
from lgf.paper.flow.guidance import STATIC_TEMPERATURE, Guide
from lgf.paper.flow.predictor import new_predictor
from lgf.paper.flow.predictor_training import train_predictor
from lgf.paper.flow.sampling import sample
from lgf.search.candidate import Candidate, Population, Proposal
from lgf.search.proposers.basic import DeferredProposer, Proposer, propose
from lgf.settings.flow import FlowSettings
from lgf.threads import one_blas_thread

_BATCH = 40  # least number of proposals made at a time
_QUANTILE = 0.07  # the target is to be as good as this share of the evaluated candidates
_LEAST = 100  # evaluations before the predictors are used
_STEPS = 200  # of a training of the predictors


class FlowProposer:
    """Proposals from the guided flow, alternating between the languages."""

    def __init__(
        self, bundle: ModelBundle, languages: Sequence[Language], seed: int = 0, settings: FlowSettings = FlowSettings()
    ):
        self._bundle = bundle
        self._languages = tuple(languages)
        self._settings = settings
        self._rng = np.random.default_rng([seed, 3])
        layout = bundle.denoiser.layout
        self._objective = new_predictor(layout, 0, self._seed())
        self._stability = new_predictor(layout, 2, self._seed())
        self._target: float | None = None
        self._stability_learned = False
        self._queue: list[tuple[Language, Derivation]] = []
        self._codes: dict[str, np.ndarray | None] = {}

    def tell(self, population: Population) -> None:
        """Trains the predictors on all candidates so far."""
        with one_blas_thread():  # so that sums and samples are reproducible
            self._learn(population)

    def _learn(self, population: Population) -> None:
        ranked = sorted(population, key=lambda c: c.objective)
        self._encode(ranked)
        coded = [(c, codes) for c in ranked if (codes := self._codes[c.skeleton.structure]) is not None]
        if len(coded) < _LEAST:
            return
        self._queue = []  # sampled with the former predictors
        from scipy.special import ndtri  # imported late: a search starts sooner

        tokens = np.array([codes for _, codes in coded])
        values = np.array([c.objective for c, _ in coded])
        scores = ndtri((_ranks(values) - 0.5) / len(values))
        seed = int(self._rng.integers(2**31))
        if self._settings.guided:
            self._objective = train_predictor(self._objective, tokens, scores, seed, _STEPS)
            self._target = float(np.quantile(scores, _QUANTILE))
        known = self._languages[0].stable
        if self._settings.stability and known is not None:
            assessed = [(codes, c.stability.kind) for c, codes in coded if c.stability is not None]
            agrees = np.array([not verdict.contradicts(known) for _, verdict in assessed], int)
            self._stability_learned = len(assessed) >= _LEAST and 0 < agrees.mean() < 1
            if self._stability_learned:
                self._stability = train_predictor(
                    self._stability,
                    np.array([codes for codes, _ in assessed]),
                    agrees,
                    seed,
                    _STEPS,
                )

    def ask(self, n: int) -> list[Proposal]:
        """About n proposals. They are sampled in large batches, which is cheaper, and the rest is queued."""
        if len(self._queue) < n:
            share = -(-max(n, _BATCH) // len(self._languages))
            with one_blas_thread():  # so that sums and samples are reproducible
                parts = [[(language, d) for d in self._ask(language, share)] for language in self._languages]
            self._queue += [p for together in zip_longest(*parts) for p in together if p is not None]
        proposals: list[Proposal] = []
        while self._queue and len(proposals) < n:
            proposal = propose(*self._queue.pop(0), "flow")
            if proposal is not None:
                proposals.append(proposal)
        return proposals

    def _ask(self, language: Language, n: int) -> list[Derivation]:
        settings, guides = self._settings, self._guides(language)
        tokens = sample(self._bundle.denoiser, n, self._seed(), guides, settings.steps, settings.eta)
        derivations = decode(self._bundle.autoencoder, tokens, language.allowed, language.max_order)
        return unpad(language.grammar, derivations)

    def _guides(self, language: Language) -> list[Guide]:
        guides: list[Guide] = []
        if self._settings.static:
            static = self._bundle.predictors
            if "order" in static:
                guides.append(Guide(static["order"], language.frame.orders[0], STATIC_TEMPERATURE))
            if "forced" in static:
                guides.append(Guide(static["forced"], int(language.forced), STATIC_TEMPERATURE))
        if self._target is not None:
            guides.append(Guide(self._objective, self._target))
        if self._stability_learned:
            guides.append(Guide(self._stability, 1))
        return guides

    def _encode(self, candidates: Sequence[Candidate]) -> None:
        """Stores the tokens of new candidates; None for a candidate that the model cannot encode."""
        model, longest = self._bundle.autoencoder, self._bundle.grammar.max_length
        uncoded = {c.skeleton.structure: c.proposal.derivation for c in candidates}
        uncoded = {structure: d for structure, d in uncoded.items() if structure not in self._codes}
        self._codes.update(dict.fromkeys(uncoded))
        encodable = {structure: d for structure, d in uncoded.items() if d is not None and len(d) <= longest}
        encodable = {structure: d for structure, d in encodable.items() if model.fits(d)}
        if encodable:
            tokens = encode(model, pad(self._bundle.grammar, list(encodable.values())))
            self._codes.update(zip(encodable, tokens, strict=True))

    def _seed(self) -> int:
        return int(self._rng.integers(2**31))


def _ranks(values: np.ndarray) -> np.ndarray:
    """The rank of each value from 1; equal values share their mean rank."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[which]


@lru_cache(maxsize=1)
def _model(name: str) -> ModelBundle:
    """A trained model, built once for all runs of a process, which only read it."""
    return load_bundle(name)


def flow_proposer(
    model: str, languages: Sequence[Language], settings: FlowSettings = FlowSettings(), seed: int = 0
) -> Proposer | None:
    """The proposer with the model of this name or folder; None if it covers none of the orders.

    The model is loaded when the first proposals are due.
    """
    known = [language for language in languages if language.frame.orders[0] <= HIGHEST_ORDER]
    return DeferredProposer(lambda: FlowProposer(_model(model), known, seed, settings)) if known else None
