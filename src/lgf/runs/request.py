"""`Request` (data, knowledge, settings, seed) and its result, `Run`."""

import platform
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from pydantic import ConfigDict, Field, InstanceOf, PlainSerializer, PlainValidator

import lgf
from lgf.data import Finding, Problem, check, make_inputs
from lgf.data.experiments import ForcingLike
from lgf.data.orders import with_likely_orders
from lgf.equation.system import System
from lgf.errors import LgfError, quoted
from lgf.expression.frame import Frame
from lgf.expression.mathml import markup
from lgf.grammar import Grammar, read_grammar
from lgf.runs.journal import Journal, Tick
from lgf.runs.presets import proposers_for
from lgf.runs.starting_equations import check_shared, starting_proposals
from lgf.search.candidate import Candidate, Proposal
from lgf.search.discover import Discovery, discover
from lgf.search.hidden.given import started_at_numbers
from lgf.search.loop import Iteration
from lgf.search.mixture import MakeProposer, check_proposers
from lgf.search.notes import Note
from lgf.search.precompilation import precompile
from lgf.search.proposers.hidden import SEGMENTS
from lgf.search.settings import DiscoverySettings
from lgf.search.verdict import Verdict
from lgf.settings.ranges import Tally, Weight
from lgf.solver.forcing import Forcing
from lgf.solver.reference import solve_by_reference
from lgf.solver.solve import Initial, Inputs, solve
from lgf.solver.stability import assess
from lgf.solver.trajectory import SolveStatus, Trajectory
from lgf.stopping import StopToken, asked_by_ctrl_c
from lgf.threads import on_threads

Notify = Callable[[Iteration | Tick], None]


@dataclass(frozen=True, eq=False)
class Request:
    """All inputs that determine the result of a run; states that need equations of second order get them."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")
    problem: Problem
    grammar: Annotated[Grammar, PlainValidator(read_grammar), PlainSerializer(lambda grammar: grammar.text)]
    settings: DiscoverySettings = DiscoverySettings()
    seed: Tally = 0
    start: tuple[str, ...] = ()  # equations to try first
    trained: str | None = None  # folder of the user's trained model; None = the model of the package
    source: str = ""  # file or record of the data; "" = arrays
    notes: tuple[str, ...] = ()  # on how the table was read

    def __post_init__(self) -> None:
        object.__setattr__(self, "problem", with_likely_orders(self.problem))

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of the data check."""
        return check(self.problem)

    @cached_property
    def proposals(self) -> list[Proposal]:
        """The equations to try first."""
        proposals = starting_proposals(self.start, self.grammar, self.problem, self.settings.objective)
        if not self.problem.hidden:
            return proposals
        texts, frame = (*self.start, *[""] * (len(proposals) - len(self.start))), self.problem.frames[-1]
        return [started_at_numbers(p, t, frame, SEGMENTS) for p, t in zip(proposals, texts, strict=True)]


@dataclass(frozen=True, eq=False)
class Run:
    """A request with its result."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")
    request: Annotated[InstanceOf[Request], Field(exclude=True)]
    best: Candidate
    verdict: Verdict
    notes: tuple[Note, ...]
    growth: float | None  # of the noise with the signal; None = constant noise
    prediction_front: tuple[Candidate, ...]
    front: tuple[Candidate, ...]
    indistinguishable: tuple[Candidate, ...]
    branches: tuple[tuple[float, float], ...]  # (value, slope) of the highest derivative at the start, by experiment
    history: tuple[Iteration, ...]
    evaluations: Tally
    seconds: Weight
    interrupted: bool
    versions: Mapping[str, str]
    journal: Annotated[tuple[str, ...], Field(exclude=True)] = field(default=(), repr=False)
    equivalents: tuple[Candidate, ...] = ()  # systems that differ in the state that was not measured only
    discovery: Annotated[InstanceOf[Discovery] | None, Field(exclude=True)] = field(default=None, repr=False)

    def __post_init__(self) -> None:
        n = len(self.request.problem.observations)
        for candidate in (self.best, *self.front, *self.indistinguishable, *self.prediction_front, *self.equivalents):
            if len(candidate.fit.initial) != n:
                raise ValueError(f"initial states for {len(candidate.fit.initial)} experiments, not {n}")
        if len(self.branches) != n:
            raise ValueError(f"branches for {len(self.branches)} experiments, not {n}")

    @property
    def frame(self) -> Frame:
        """The states and inputs of the chosen system."""
        return self.best.skeleton.frame

    @cached_property
    def system(self) -> System:
        """The chosen system; a single equation has its input alone on the right-hand side."""
        return self.display_system(self.best)

    def _repr_html_(self) -> str:
        return f"{markup(self.system.mathml())}<p>error {100 * self.best.loss**0.5:.3g} % of the signal</p>"

    def _repr_latex_(self) -> str:
        return self.system._repr_latex_()

    def display_system(self, candidate: Candidate) -> System:
        """The candidate's system in operator form, with standard errors; as it was fitted if constants vary.

        In operator form all constants are divided by that of the input, and would vary with it.
        """
        fit, problem = candidate.fit, self.request.problem
        if fit.sharing.varying:
            return System(fit.skeleton, fit.values, fit.errors, problem.formulas, problem.units)
        return candidate.shown(problem)

    def trajectory(self, experiment: int = 0, t: ArrayLike | None = None) -> Trajectory:
        """The solution of the chosen system for this experiment, at its times or at t."""
        problem = self.request.problem
        self._check_experiment(experiment)
        observation = problem.observations[experiment]
        start = observation.t[0]
        times = observation.t if t is None else np.asarray(t, float)
        unique_times, inverse = np.unique(times, return_inverse=True)
        if len(unique_times) and unique_times[0] < start:
            raise LgfError(
                f"t begins at {unique_times[0]:.6g}, before the record at {start:.6g}; predict later times, or use "
                "simulate from a state of your own."
            )
        solver_times = np.union1d([start], unique_times)
        values = tuple(float(v) for v in self.best.fit.by_experiment[experiment])
        solved = _solved(
            System(self.best.skeleton, values), self.best.fit.initial[experiment], solver_times,
            problem.signals(experiment), self.branches[experiment],
        )  # fmt: skip
        rows = np.searchsorted(solver_times, unique_times)[inverse]
        inputs = {name: column[rows] for name, column in solved.inputs.items()}
        return Trajectory(times, solved.values[rows], solved.variables, inputs, solved.status, solved.end)

    def simulate(
        self,
        t: ArrayLike,
        initial: Initial,
        forcing: ForcingLike | Mapping[str, ForcingLike] = None,
        experiment: int | None = None,
    ) -> Trajectory:
        """The solution of the chosen system from any initial state at t[0] (in order or by name), under any inputs.

        Missing inputs are taken from the data if they are formulas there. Samples are held if those of the data were.
        Constants that vary by experiment are those of `experiment`, or else their means.
        """
        if experiment is not None:
            self._check_experiment(experiment)
        fit, inputs = self.best.fit, self.simulation_inputs(t, forcing)
        values = fit.values if experiment is None else tuple(float(v) for v in fit.by_experiment[experiment])
        return _solved(System(self.best.skeleton, values), initial, t, inputs)

    def simulation_inputs(
        self, t: ArrayLike, forcing: ForcingLike | Mapping[str, ForcingLike] = None
    ) -> dict[str, Forcing]:
        """The inputs of a simulation by name; LgfError if the chosen system needs one that is not known."""
        known = {name: Forcing.from_formula(f) for name, f in self.request.problem.formulas}
        held = self.request.problem.held_inputs
        inputs = {**known, **make_inputs(_named(forcing, self.frame), np.asarray(t, float), held)}
        missing = [s.args[0] for s in self.frame.input_symbols if s in self.best.skeleton.symbols]
        missing = [name for name in missing if name not in inputs]
        if missing:
            raise LgfError(
                f"the forcing {missing[0]} of the data was given by samples; say what drives the system now: "
                f'a formula (--forcing "{missing[0]}=2") or samples (--forcing-file new.csv); in Python a function too.'
            )
        return inputs

    def _check_experiment(self, experiment: int) -> None:
        n = len(self.request.problem.observations)
        if experiment not in range(n):
            raise LgfError(f"experiment is {quoted(experiment)}; give one from 0 to {n - 1}.")


def execute(
    request: Request,
    *,
    proposers: Mapping[str, MakeProposer] = MappingProxyType({}),
    n_jobs: int = 1,
    path: Path | None = None,
    lines: Sequence[str] = (),
    notify: Notify | None = None,
    stop: StopToken | None = None,
) -> Run:
    """The run of the request.

    `proposers` are the user's own, by name; the settings hold their shares. Every fit is appended to the journal at
    `path`; fits that are in `lines` are not repeated. `stop`, which Ctrl-C asks too, ends the search with the best
    equation so far. A second Ctrl-C, or one before the first fit, raises KeyboardInterrupt.
    """
    problem, grammar = request.problem, request.grammar
    check_request(request, proposers)
    precompile()
    # The models of the package speak of one state.
    flow = proposers_for(grammar, request.trained) if len(problem.states) == 1 or request.trained else {}
    stop = stop or StopToken()
    with asked_by_ctrl_c(stop), on_threads(n_jobs) as spread:
        journal = Journal(path, lines, spread, notify, stop)
        try:
            discovery = discover(
                problem, grammar, request.settings,
                proposers={**flow, **proposers},
                seed=request.seed, spread=spread, warm=request.proposals, mapper=journal, stop=stop,
                progress=None if notify is None else lambda iteration, _: notify(iteration),
            )  # fmt: skip
        except SystemError as error:
            if not stop.asked:
                raise
            raise KeyboardInterrupt from error
    finalists = {c.skeleton.structure: c for c in (*discovery.indistinguishable, discovery.best)}
    assessed = {c.skeleton.structure: _assessed(c, discovery) for c in (*discovery.front, *finalists.values())}
    record = discovery.target.record
    return Run(
        request=request,
        best=assessed[discovery.best.skeleton.structure],
        verdict=discovery.verdict,
        notes=discovery.notes,
        growth=discovery.growth,
        prediction_front=discovery.prediction_front,
        front=tuple(assessed[c.skeleton.structure] for c in discovery.front),
        indistinguishable=tuple(assessed[c.skeleton.structure] for c in discovery.indistinguishable),
        branches=tuple((float(v), float(s)) for v, s in zip(record.root, record.root_slope, strict=True)),
        history=discovery.history,
        evaluations=discovery.evaluations,
        seconds=discovery.seconds,
        interrupted=stop.asked,
        versions={"lgf": lgf.__version__, "python": platform.python_version(), "numpy": np.__version__},
        journal=tuple(journal.lines),
        equivalents=discovery.equivalents,
        discovery=discovery,
    )


def check_request(request: Request, proposers: Iterable[str] = ()) -> None:
    """Raises LgfError if the request cannot be executed.

    Causes are an error in the data, a missing input, or a share of a proposer that is unknown to the package and not
    among the user's `proposers`.
    """
    check_proposers(request.settings, proposers)
    for finding in request.findings:
        if finding.severity == "error":
            raise LgfError(finding.sentence)
    if request.grammar.template == "given forcing" and not request.problem.forced:
        raise LgfError(
            f"every equation of the grammar {quoted(request.grammar.name)} has a given input, but none is given; "
            "give a forcing, or take another model."
        )
    if request.problem.hidden and request.settings.all_modes:
        raise LgfError(
            "a hidden state cannot be inferred where completed columns count as measured; leave out the preset paper."
        )
    check_shared(request.grammar, request.problem, request.proposals)


def warn(findings: Sequence[Finding]) -> None:
    """Issues the warnings among the findings as Python warnings."""
    for finding in findings:
        if finding.severity == "warning":
            warnings.warn(finding.sentence, UserWarning, stacklevel=3)


def _named(forcing: ForcingLike | Mapping[str, ForcingLike], frame: Frame) -> Mapping[str, ForcingLike] | ForcingLike:
    """Inputs by name; an unnamed input is the only one of the frame."""
    if forcing is None or (isinstance(forcing, Mapping) and not forcing):
        return None
    if not frame.inputs:
        raise LgfError("the data of this run have no input, and neither has its equation; leave the forcing out.")
    if isinstance(forcing, Mapping):
        for name in forcing:
            if name not in frame.inputs:
                raise LgfError(f"the input {quoted(name)} is not known; the inputs are {', '.join(frame.inputs)}.")
        return forcing
    if len(frame.inputs) > 1:
        raise LgfError(f"the system has the inputs {', '.join(frame.inputs)}; say which one is given, by name.")
    return dict.fromkeys(frame.inputs, forcing)


def _assessed(candidate: Candidate, discovery: Discovery) -> Candidate:
    if candidate.stability is not None or candidate.fit.status is not SolveStatus.OK:
        return candidate
    target = discovery.targets[candidate.skeleton.frame]
    return replace(candidate, stability=assess(candidate.fit.system(target), target.sizes, target.window, target.box))


def _solved(
    system: System, initial: Initial, t: ArrayLike, inputs: Inputs, branch: tuple[float, float] | None = None
) -> Trajectory:
    """The trajectory of the system; by the slow solver where the fast one does not reach the end.

    Over a window of millions of its time constants every equation is stiff.
    """
    solved = solve(system, initial, t, inputs, branch=branch)
    if solved.status in (SolveStatus.OUT_OF_STEPS, SolveStatus.SINGULAR) and system.skeleton.right_sides is not None:
        patient = solve_by_reference(system, initial, solved.t, inputs)
        if patient.status is SolveStatus.OK:
            return replace(solved, values=patient.values, status=SolveStatus.OK, end=None)
    return solved
