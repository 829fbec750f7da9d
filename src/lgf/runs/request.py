"""A question (data, knowledge, settings, seed) and the run that answers it."""

import platform
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

import lgf
from lgf.data import Finding, Problem, check, make_forcing
from lgf.data.experiments import ForcingLike
from lgf.equation.operator_form import in_operator_form
from lgf.equation.skeleton import Equation, Skeleton
from lgf.errors import LgfError, quoted
from lgf.expression.parse import ReadingError, read_equation
from lgf.expression.tree import Expression, symbol
from lgf.grammar import Grammar
from lgf.language.cheapest_derivation import encoding
from lgf.language.language import explicit_form, linear_form
from lgf.runs.journal import Journal, Tick, interruptible
from lgf.runs.presets import proposers_for
from lgf.runs.serialisation import Plain
from lgf.search.candidate import Candidate, Proposal
from lgf.search.discover import Discovery, discover
from lgf.search.loop import Iteration
from lgf.search.mixture import MakeProposer, check_proposers
from lgf.search.objective import ObjectiveSettings
from lgf.search.settings import DiscoverySettings
from lgf.solver.solve import solve
from lgf.solver.stability import assess
from lgf.solver.trajectory import Forcing, SolveStatus, Trajectory

Notify = Callable[[Iteration | Tick], None]


@dataclass(frozen=True, eq=False)
class Question:
    """Everything that decides the outcome of a run."""

    problem: Problem
    grammar: Grammar
    settings: DiscoverySettings = DiscoverySettings()
    seed: int = 0
    start: tuple[str, ...] = ()  # equations to try first
    trained: str | None = None  # folder of the user's own trained model; None = the one that comes with the package
    source: str = ""  # the file or record that the data were read from; "" = arrays

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What the check of the data says."""
        return check(self.problem)

    @cached_property
    def proposals(self) -> list[Proposal]:
        """The equations to try first."""
        return starting_proposals(self.start, self.grammar, self.problem, self.settings.objective)


@dataclass(frozen=True, eq=False)
class Run:
    """A question with its answer."""

    question: Question
    best: Candidate
    front: tuple[Candidate, ...]
    indistinguishable: tuple[Candidate, ...]
    branches: tuple[tuple[float, float], ...]  # (value, slope) of the highest derivative at the start, by experiment
    history: tuple[Iteration, ...]
    evaluations: int
    seconds: float
    interrupted: bool
    versions: Plain
    journal: tuple[str, ...] = field(default=(), repr=False)
    discovery: Discovery | None = field(default=None, repr=False)  # in full; not kept in a run folder

    @cached_property
    def equation(self) -> Equation:
        """The chosen equation, with F alone on the right where there is a forcing."""
        return self.shown(self.best)

    def shown(self, candidate: Candidate) -> Equation:
        """The candidate's equation as a reader wants it, with errors."""
        fit = candidate.fit
        equation = Equation(fit.skeleton, fit.values, fit.errors, common_formula(self.question.problem))
        return in_operator_form(equation, fit.covariance)

    def trajectory(self, experiment: int = 0, t: ArrayLike | None = None) -> Trajectory:
        """The solution of the chosen equation from the state at the start of this experiment (at its times, or t)."""
        problem = self.question.problem
        if experiment not in range(len(problem.observations)):
            raise LgfError(f"experiment is {quoted(experiment)}; give one from 0 to {len(problem.observations) - 1}.")
        observation = problem.observations[experiment]
        start = observation.t[0]
        times = observation.t if t is None else np.asarray(t, float)
        wanted, places = np.unique(times, return_inverse=True)
        if len(wanted) and wanted[0] < start:
            raise LgfError(f"t begins at {wanted[0]:.6g}, before the record at {start:.6g}; use simulate for that.")
        whole = np.union1d([start], wanted)
        solved = solve(
            Equation(self.best.skeleton, self.best.fit.values), self.best.fit.initial[experiment], whole,
            problem.forcing(experiment), branch=self.branches[experiment],
        )  # fmt: skip
        rows = np.searchsorted(whole, wanted)[places]
        forcing = None if solved.forcing is None else solved.forcing[rows]
        return Trajectory(times, solved.states[rows], forcing, solved.status)

    def simulate(self, t: ArrayLike, initial: Sequence[float], forcing: ForcingLike = None) -> Trajectory:
        """The solution of the chosen equation from any initial state (u, u', ...) at t[0], under any forcing.

        Without a forcing that of the data is taken, if it was one formula.
        """
        times = np.asarray(t, float)
        drive = make_forcing(forcing, times)
        if drive is None and self.best.skeleton.forced:
            formula = common_formula(self.question.problem)
            if formula is None:
                raise LgfError("the forcing of the data was given by samples; say what drives the system now.")
            drive = Forcing.from_formula(formula)
        return solve(Equation(self.best.skeleton, self.best.fit.values), tuple(initial), times, drive)


def ask(
    question: Question,
    *,
    proposers: Mapping[str, MakeProposer] = MappingProxyType({}),
    n_jobs: int = 1,
    path: Path | None = None,
    lines: Sequence[str] = (),
    notify: Notify | None = None,
) -> Run:
    """The run that answers the question.

    proposers are the user's own by name; their shares stand in the settings. Every fit is appended to the journal at
    `path`; fits that stand in `lines` already are not made again. Ctrl-C ends the search with the best so far; a second
    one, or one before anything was fitted, raises KeyboardInterrupt.
    """
    problem, grammar = question.problem, question.grammar
    refuse(question, proposers)
    with interruptible() as interrupts:
        journal = Journal(path, lines, n_jobs, notify, stop=lambda: interrupts)
        try:
            discovery = discover(
                problem, grammar, question.settings,
                proposers={**proposers_for(grammar, question.trained), **proposers},
                seed=question.seed, warm=question.proposals, mapper=journal,
                progress=None if notify is None else lambda iteration, _: notify(iteration),
            )  # fmt: skip
        except SystemError as error:
            if not interrupts:
                raise
            raise KeyboardInterrupt from error
    judged = {c.skeleton.structure: c for c in (*discovery.indistinguishable, discovery.best)}
    assessed = {c.skeleton.structure: _assessed(c, discovery) for c in (*discovery.front, *judged.values())}
    record = discovery.target.record
    return Run(
        question=question,
        best=assessed[discovery.best.skeleton.structure],
        front=tuple(assessed[c.skeleton.structure] for c in discovery.front),
        indistinguishable=tuple(assessed[c.skeleton.structure] for c in discovery.indistinguishable),
        branches=tuple((float(v), float(s)) for v, s in zip(record.root, record.root_slope, strict=True)),
        history=discovery.history,
        evaluations=discovery.evaluations,
        seconds=discovery.seconds,
        interrupted=bool(interrupts),
        versions={"lgf": lgf.__version__, "python": platform.python_version(), "numpy": np.__version__},
        journal=tuple(journal.lines),
        discovery=discovery,
    )


def refuse(question: Question, proposers: Iterable[str] = ()) -> None:
    """Raises LgfError if the question cannot be answered: an error in the data, no input where one is needed, a share
    of a proposer that is neither of the package nor among the user's own `proposers`."""
    check_proposers(question.settings, proposers)
    for finding in question.findings:
        if finding.severity == "error":
            raise LgfError(finding.sentence)
    if question.grammar.template == "given forcing" and not question.problem.forced:
        raise LgfError(
            f"every equation of the grammar {quoted(question.grammar.name)} has a given input, but none is given; "
            "give a forcing, or take another model."
        )
    _ = question.proposals


def warn(findings: Sequence[Finding]) -> None:
    """Python warnings for the warnings of a check."""
    for finding in findings:
        if finding.severity == "warning":
            warnings.warn(finding.sentence, UserWarning, stacklevel=3)


def starting_proposals(
    texts: Sequence[str], grammar: Grammar, problem: Problem, settings: ObjectiveSettings = ObjectiveSettings()
) -> list[Proposal]:
    """The user's own equations as proposals, at a fixed price where the grammar cannot derive them.

    Numbers in them are open, for the data to say.
    """
    proposals = []
    for text in texts:
        try:
            sides = read_equation(text)
            has_open = any(node.head == "constant" for side in sides for node in side.nodes())
            skeleton = Skeleton.read(text) if has_open else Equation.read(text).skeleton
        except ReadingError as error:
            raise LgfError(f"the equation {quoted(text)} cannot be read: {error.message}.") from error
        except (TypeError, ValueError) as error:
            raise LgfError(f"the equation {quoted(text)} cannot be used: {error}.") from error
        if any(s.args[0] not in ("t", "F", "u") for s in skeleton.symbols):
            raise LgfError(
                f"the equation {quoted(text)} is about other states than u; write it in t, u, u', ... and F."
            )
        if skeleton.order not in problem.orders:
            raise LgfError(
                f"the equation {quoted(text)} is of order {skeleton.order}, but order "
                f"{' or '.join(map(str, problem.orders))} is looked for; change one of the two."
            )
        if symbol("F") in skeleton.symbols and not problem.forced:
            raise LgfError(f"the equation {quoted(text)} contains the forcing F, but none is given; give one.")
        said = encoding(grammar, skeleton, skeleton.order, bool(problem.forced))
        bits = said.bits if said.derivation is not None else settings.foreign_bits
        proposals.append(Proposal(linear_form(explicit_form(skeleton)), bits, said.derivation, "given"))
    return proposals


def common_formula(problem: Problem) -> Expression | None:
    """The formula of the forcing where all experiments have the same one, else None."""
    forcings = [problem.forcing(e) for e in range(len(problem.observations))]
    formulas = {None if f is None else f.formula for f in forcings}
    return formulas.pop() if len(formulas) == 1 else None


def _assessed(candidate: Candidate, discovery: Discovery) -> Candidate:
    if candidate.stability is not None or candidate.fit.status is not SolveStatus.OK:
        return candidate
    target = discovery.targets[candidate.skeleton.order]
    window = float(target.t.min()), float(target.t.max())
    settings = discovery.settings.stability
    return replace(
        candidate, stability=assess(candidate.fit.equation(target), float(target.scales[0]), window, settings)
    )
