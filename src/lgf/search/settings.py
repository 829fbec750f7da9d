"""All settings of a discovery, and the presets."""

from collections import Counter
from dataclasses import dataclass

from lgf.data.condensation import SAMPLES
from lgf.errors import LgfError, quoted
from lgf.fit.settings import FitMethod, FitSettings
from lgf.search.loop import SearchSettings
from lgf.search.noise_model import NoiseSettings
from lgf.search.objective import Criterion, ObjectiveSettings
from lgf.search.prediction import PredictionSettings
from lgf.search.proposers.components import ComponentSettings
from lgf.search.select import SelectionSettings
from lgf.settings.flow import ConditionalSettings, FlowSettings
from lgf.settings.ranges import Count, Positive, Tally, Weight


@dataclass(frozen=True)
class ProposerShare:
    """The share of the proposals that a proposer makes, relative to the others.

    If a proposer runs short, the proposers after it fill the gap. Share 0 marks a reserve.
    Reserves are used, in equal parts, if no other proposer can be: the flow needs a model, evolution needs summands.
    """

    name: str
    share: Weight


@dataclass(frozen=True)
class EnumerationSettings:
    """The enumeration of the grammar's most probable sentences, before the other proposers start."""

    iterations: Tally = 1


@dataclass(frozen=True)
class HiddenSettings:
    """The verdict on a system with a hidden state."""

    refuted_above: Positive = 20.0  # z^2 of a prediction: the first half of a record hardly determines a hidden path


@dataclass(frozen=True)
class DiscoverySettings:
    """All settings of a discovery. Data, grammar, trained model and seed complete the request."""

    search: SearchSettings = SearchSettings()
    fit: FitSettings = FitSettings()
    objective: ObjectiveSettings = ObjectiveSettings()
    samples: Count = SAMPLES  # of all experiments; records with more are condensed
    smoothing: str = "auto"
    all_modes: bool = False  # completed derivatives count as measured (the paper's solution loss)
    enumeration: EnumerationSettings = EnumerationSettings()
    proposers: tuple[ProposerShare, ...] = (
        ProposerShare("components", 1.0),  # for several states only
        ProposerShare("hidden", 1.0),  # for a hidden state only
        ProposerShare("missing terms", 0.6),
        ProposerShare("conditional flow", 0.1),
        ProposerShare("evolution", 0.1),
        ProposerShare("enumeration", 0.1),  # slow, but nothing is lost
        ProposerShare("monte carlo", 0.0),
    )
    components: ComponentSettings = ComponentSettings()
    hidden: HiddenSettings = HiddenSettings()
    flow: FlowSettings = FlowSettings()
    conditional: ConditionalSettings = ConditionalSettings()
    selection: SelectionSettings = SelectionSettings()
    prediction: PredictionSettings = PredictionSettings()
    noise: NoiseSettings = NoiseSettings()

    @property
    def as_written(self) -> bool:
        """Whether an operator stays C*u'' + C*u = F, as the paper fits it, in place of u'' = C*u + C*F.

        Nelder-Mead starts at 1 for every constant. There the operator is a damped spring, and its explicit form is
        u'' = u + F, which blows up.
        """
        return self.fit.method is FitMethod.NELDER_MEAD

    def __post_init__(self):
        if not self.proposers:
            raise LgfError("there are no proposers; name at least one, such as ProposerShare('evolution', 1.0).")
        name, times = Counter(part.name for part in self.proposers).most_common(1)[0]
        if times > 1:
            raise LgfError(f"the proposer {quoted(name)} is named {times} times; give it one share.")


PAPER = DiscoverySettings(
    search=SearchSettings(first=100, growth=0.0, iterations=10, max_evaluations=None, patience=None),
    # The tolerance of SciPy's solvers; finalists are solved more accurately.
    fit=FitSettings(method=FitMethod.NELDER_MEAD, gate=200.0, rtol=1e-3, steps_per_solve=400),
    objective=ObjectiveSettings(criterion=Criterion.PAPER),
    smoothing="mlp",
    all_modes=True,
    enumeration=EnumerationSettings(iterations=0),
    proposers=(
        ProposerShare("flow", 1.0),
        ProposerShare("components", 0.0),
        ProposerShare("hidden", 0.0),
        ProposerShare("missing terms", 0.0),
        ProposerShare("evolution", 0.0),
    ),
    conditional=ConditionalSettings(iterations=0),
    selection=SelectionSettings(n_finalists=6),
)  # fmt: skip

PRESETS = {"default": DiscoverySettings(), "paper": PAPER}
