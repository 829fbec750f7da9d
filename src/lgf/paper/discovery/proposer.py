"""The proposer on the guided latent flow; it connects the networks with equations.

Latent codes are decoded to derivations, and these to skeletons. The decoder's masks enforce what the user knows (order,
forcing, allowed rules). New sentences are sampled from noise. The codes of good candidates are partly noised, by whole
summands or single tokens, and denoised. Two predictors are trained during the search on all candidates so far. The
stability predictor guides the sampling if stability is known. The objective predictor guides it too or, by default,
screens a larger number of proposals.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import zip_longest

import numpy as np

from lgf.expression.frame import Frame
from lgf.grammar import Derivation, pad, unpad
from lgf.language.language import Language
from lgf.paper.autoencoder.autoencoder import decode, encode
from lgf.paper.bundle import ModelBundle, load_bundle
from lgf.paper.corpus import HIGHEST_ORDER
from lgf.paper.flow.guidance import STATIC_TEMPERATURE, Guide
from lgf.paper.flow.predictor import new_predictor, predict
from lgf.paper.flow.predictor_training import train_predictor
from lgf.paper.flow.sampling import resample
from lgf.paper.layout import HEADER
from lgf.search.candidate import Candidate, Population, Proposal
from lgf.search.proposers.basic import DeferredProposer, Proposer, propose
from lgf.settings.flow import FlowSettings
from lgf.threads import one_blas_thread

_WHOLE_SUMMANDS = 0.5  # share of renoised rows that lose whole summands instead of single tokens
_SECOND_SUMMAND = 0.3  # share of these that lose a second one
_NOISE = 0.2, 0.6  # the share of single tokens that a row loses is drawn between these two
_BATCH = 40  # least number of proposals made at a time
_UNSCREENED = 0.15  # share passed at random
_ELITE = 50
_ELITE_DECAY = 4.0  # candidates are drawn by rank, with mean rank _ELITE / _ELITE_DECAY
_QUANTILE = 0.07  # the target is to be as good as this share of the evaluated candidates
_LEAST = 100  # evaluations before the predictors are used


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
        self._learned = 0
        self._queue: list[tuple[Language, Derivation]] = []
        self._codes: dict[str, np.ndarray | None] = {}
        self._elites: dict[Frame, np.ndarray] = {}

    def tell(self, population: Population) -> None:
        """Takes the elites for renoising, and trains the dynamic predictors on all candidates so far if it is time."""
        with one_blas_thread():  # so that sums and samples are reproducible
            self._learn(population)

    def _learn(self, population: Population) -> None:
        ranked = sorted(population, key=lambda c: c.objective)
        self._encode(ranked)
        coded = [(c, codes) for c in ranked if (codes := self._codes[c.skeleton.structure]) is not None]
        self._elites = {}
        for language in self._languages:
            rows = [codes for c, codes in coded if c.skeleton.frame == language.frame][:_ELITE]
            if rows:
                self._elites[language.frame] = np.array(rows)
        if len(coded) < max(_LEAST, self._settings.growth * self._learned):
            return
        self._learned = len(coded)
        self._queue = []  # sampled with the former predictors
        from scipy.special import ndtri  # imported late: a search starts sooner

        tokens = np.array([codes for _, codes in coded])
        values = np.array([c.objective for c, _ in coded])
        scores = ndtri((_ranks(values) - 0.5) / len(values))
        seed = int(self._rng.integers(2**31))
        if self._settings.guided:
            self._objective = train_predictor(self._objective, tokens, scores, seed, self._settings.predictor_steps)
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
                    self._settings.predictor_steps,
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
        settings, trained = self._settings, self._target is not None
        n_samples = n * (settings.screening if trained else 1)
        elites = self._elites.get(language.frame)
        renoised = int(settings.renoised * n_samples) if elites is not None and settings.renoised > 0 else 0
        # Screening already selects by the objective; guidance by it too would reduce diversity.
        guides = self._guides(language, objective=trained and settings.screening == 1)
        known, masks = self._noised(elites, renoised, n_samples)
        tokens = resample(self._bundle.denoiser, known, masks, self._seed(), guides, settings.sampling)
        if trained and settings.screening > 1:
            tokens = tokens[self._screen(tokens, n)]
        derivations = decode(self._bundle.autoencoder, tokens, language.allowed, language.max_order)
        return unpad(language.grammar, derivations)

    def _guides(self, language: Language, objective: bool) -> list[Guide]:
        guides: list[Guide] = []
        if self._settings.static:
            static = self._bundle.predictors
            if "order" in static:
                guides.append(Guide(static["order"], language.frame.orders[0], STATIC_TEMPERATURE))
            if "forced" in static:
                guides.append(Guide(static["forced"], int(language.forced), STATIC_TEMPERATURE))
        if objective and self._target is not None and self._settings.guided:
            guides.append(Guide(self._objective, self._target))
        if self._stability_learned:
            guides.append(Guide(self._stability, 1))
        return guides

    def _noised(self, elites: np.ndarray | None, renoised: int, n: int) -> tuple[np.ndarray, np.ndarray]:
        """(tokens [n, D], mask of those to sample): elites with masked summands or tokens, then pure noise.

        Better elites are drawn more often.
        """
        blocks = self._bundle.denoiser.layout.blocks()
        tokens, masks = np.zeros((n, len(blocks)), int), np.ones((n, len(blocks)), bool)
        if elites is None or renoised == 0:
            return tokens, masks
        rows = np.minimum(self._rng.exponential(len(elites) / _ELITE_DECAY, renoised).astype(int), len(elites) - 1)
        tokens[:renoised] = elites[rows]
        slots = blocks.max() + 1 if (blocks != HEADER).any() else 0
        single = self._rng.random((renoised, len(blocks))) < self._rng.uniform(*_NOISE, (renoised, 1))
        masks[:renoised] = single
        if slots:
            chosen = self._rng.integers(slots, size=(renoised, 1))
            also = self._rng.random((renoised, 1)) < _SECOND_SUMMAND
            second = self._rng.integers(slots, size=(renoised, 1))
            whole = (blocks == chosen) | (also & (blocks == second))
            masks[:renoised] = np.where(self._rng.random((renoised, 1)) < _WHOLE_SUMMANDS, whole, single)
        return tokens, masks

    def _screen(self, tokens: np.ndarray, n: int) -> np.ndarray:
        """The selected rows: the predictor's best, and some at random."""
        by_chance = int(_UNSCREENED * n)
        ranking = np.argsort(predict(self._objective, tokens), kind="stable")
        best, rest = ranking[: n - by_chance], ranking[n - by_chance :]
        return np.concatenate([best, self._rng.permutation(rest)[:by_chance]])

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
