"""Every sentence on a result: the verdict, the notes, and what was asked. All doors take theirs from here."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lgf.data import Problem
from lgf.data.condensation import condensation_sentence
from lgf.expression.print import format_number
from lgf.report.vector_field import has_field
from lgf.runs.percentages import percentage
from lgf.runs.request import Run
from lgf.search.notes import Note, NoteKind
from lgf.search.verdict import Reason, Trust, Verdict

Values = Mapping[str, Any]

_VERDICTS: Mapping[Reason, str] = {
    Reason.PREDICTS: "Confirmed: it predicts {tested} to within the noise and its own error bars ({off}).",
    Reason.PREDICTS_WITHIN_WIDE_ERRORS: (
        "Confirmed by a weak test: it predicts {tested} to within the noise and its own error bars, which are wide "
        "({off})."
    ),
    Reason.MISSES: (
        "Refuted: it misses {tested} by more than the noise ({off}). It is an approximation, the simplest of those "
        "tried that predict about as well as the best; do not quote it as the law behind the data."
    ),
    Reason.NOT_TESTED: "Inconclusive: the criterion that chose the equation makes no predictions.",
    Reason.UNSOLVED: "Inconclusive: no equation was found that can be solved over the whole record.",
    Reason.CHAOS: ("Inconclusive: small errors grow so fast, as in chaos, that no part of the record tells the rest."),
    Reason.FEW_SAMPLES: (
        "Inconclusive: there are too few samples to see whether the equation predicts what its fit did not see."
    ),
    Reason.NAIVE: (
        "No law found: a naive forecast, such as the last value or a line, describes the record about as well. The "
        "equation is the best of those that were tried; do not quote it as a law."
    ),
    Reason.UNEXPLAINED: (
        "Inconclusive: the equation leaves {left} of the record's variation unexplained, so predictions within such "
        "residuals confirm nothing."
    ),
    Reason.PATTERN: (
        "Inconclusive: the equation leaves {left} of the record's variation unexplained, and that is more than noise: "
        "it has a pattern. Something is missing in the equation or wrong in the data."
    ),
    Reason.UNDETERMINED: (
        "Inconclusive: fitted to a part of the data only, the constants are too uncertain to predict the rest ({off})."
    ),
}


def verdict_sentence(verdict: Verdict) -> str:
    """What predictions say about the chosen equation."""
    values = verdict.values
    tested = [
        what for name, what in (("forecast", "later samples"), ("left_out", "left-out experiments")) if name in values
    ]
    return _VERDICTS[verdict.reason].format(
        tested=" and ".join(tested),
        off=f"off by {percentage(values['error'])} of their size" if "error" in values else "",
        left=percentage(values["unexplained"]) if "unexplained" in values else "",
    )


_NOTES: Mapping[NoteKind, Callable[[str, Values], str]] = {
    NoteKind.BETTER_FORECAST: lambda equation, v: (
        f"In these predictions {equation} is better (off by {percentage(v['error'])}); more data would decide."
    ),
    NoteKind.CORRELATED_RESIDUALS: lambda _, v: (
        f"The residuals are not white noise: {percentage(v['share'])} of their variance is correlated over about "
        f"{format_number(v['time'])} units of time. The equation is an approximation at the {percentage(v['error'])} "
        "level; the error bars allow for it."
    ),
    NoteKind.PIECES: lambda _, v: (
        f"The error is that of {v['pieces']} pieces of the record, each solved from a start of its own; no solution "
        "from the first sample alone was found that follows all of it as well."
    ),
    NoteKind.TENFOLD_GROWTH: lambda _, v: (
        f"Small errors grow tenfold about every {v['time']:.2g} units of time, as in chaos: forecasts hold for a few "
        "times as long and no longer, however good the equations are."
    ),
    NoteKind.NOISE_GROWS: lambda *_: "The noise grows with the signal, so large values count less in the fit.",
    NoteKind.GIVEN: lambda equation, v: _given(equation, v),
    NoteKind.VARIES: lambda term, v: (
        f"The constant C of {term} differs between experiments: mean {format_number(v['mean'])}, standard deviation "
        f"{format_number(v['deviation'])}."
    ),
    NoteKind.HIDDEN: lambda name, v: (
        f"{name} was not measured: its path is inferred from {v['measured']} through the equations."
    ),
    NoteKind.HIDDEN_UNEXPLAINED: lambda _, v: (
        f"One hidden state does not explain the record: the best system leaves {v['ratio']:.0f} times the noise; do "
        "not use it. The system may have more states: measure another one."
    ),
    NoteKind.HIDDEN_UNEXPLAINED_EXPERIMENTS: lambda _, v: (
        f"One hidden state, with constants that are the same in all experiments, does not explain the record: the best "
        f"system leaves {v['ratio']:.0f} times the noise; do not use it. Say which constant may differ between "
        "experiments, or measure another state."
    ),
    NoteKind.FREE_SCALE: lambda name, _: (
        f"The scale of {name} is not determined: {name} may be multiplied by any number. The coefficient that sets it "
        "is a power of ten that was chosen, not fitted."
    ),
    NoteKind.LINEAR: lambda name, v: (
        f"The equations are linear, and for every number a the hidden state {name} + a {v['measured']} obeys linear "
        "equations too: the record determines the eigenvalues only, and no single coefficient. This is the form with "
        "the fewest constants."
    ),
    NoteKind.EQUIVALENTS: lambda name, v: (
        f"{_systems(v['number'], 'gives', 'give')} with another {name} exactly the same {v['measured']}, so no "
        f"measurement of {v['measured']} can tell them apart; values of {name} mean something only if you know which "
        "form holds."
    ),
    NoteKind.RIVALS: lambda name, v: (
        f"{_systems(v['number'], 'fits', 'fit')} about as well, each with a path of {name} of its own: the record does "
        f"not decide between them. Say what you know, such as populations or a conserved sum, or measure {name}."
    ),
    NoteKind.OPEN_DIRECTIONS: lambda _, v: (
        f"The record leaves {v['number']} of the {v['unknowns']} constants and initial values open: they can be "
        "changed together without any effect on what is measured."
    ),
}


def _given(equation: str, v: Values) -> str:
    if "error" not in v:
        return f"The equation given, {equation}, could not be solved over the whole record."
    if "chosen_error" not in v:
        return f"The equation chosen has the form of one that was given; its error is {percentage(v['error'])}."
    error, chosen = percentage(v["error"]), percentage(v["chosen_error"])
    return f"The equation given, fitted as {equation}, has an error of {error}; the chosen one has {chosen}."


def note_sentence(note: Note) -> str:
    """The note in words."""
    return _NOTES[note.kind](note.subject, {**note.values, "measured": note.measured})


def _systems(n: int, one: str, several: str) -> str:
    return f"One other system {one}" if n == 1 else f"{n} other systems {several}"


def sentences(run: Run) -> list[str]:
    """The verdict and all notes."""
    return [verdict_sentence(run.verdict), *map(note_sentence, run.notes)]


def tally(trusts: Sequence[str]) -> str:
    """How many of these equations are confirmed."""
    return f"{trusts.count(Trust.CONFIRMED)} of them confirmed"


def summary(run: Run) -> str:
    """One sentence on the error of the chosen equation."""
    problem = run.request.problem
    return (
        f"The equation leaves {percentage(run.best.loss**0.5)} of the measured signal unexplained "
        f"(root mean square, {problem.n_samples} samples, {_count(len(problem.observations), 'experiment')})."
    )


def stability(run: Run) -> str:
    """One sentence on the stability of the chosen equation."""
    assessed = run.best.stability
    if assessed is None:
        return "Stability was not assessed, because the equation could not be solved over the record."
    what = "The system without its input" if run.request.problem.inputs else "The system"
    return f"{what} is {assessed.kind.value}: {assessed.reason.rstrip('.')}."


def portrait(run: Run) -> str:
    """How to read the phase portrait."""
    first = "Each trajectory begins at its arrowhead."
    if not has_field(run):
        return f"{first} No vector field is drawn, because the rates depend on time or on an input too."
    if run.frame.dimension == 2:
        return first
    return f"{first} The arrows are the vector field in a plane, with all other variables at their mean."


def alternatives(run: Run) -> str:
    """One sentence on the equations that the data cannot tell from the chosen one."""
    n = len(run.indistinguishable)
    if n <= 1:
        return "No other equation fits the data about as well at a similar length."
    return f"These {n} equations fit the data about equally well for their length. More data are needed to decide."


_ENFORCED = "; only such equations were proposed."
_KEPT = "; kept while the constants were fitted."
_USES = {
    "inputs": "; given to every equation.",
    "stable": "; an equation that contradicts this is ranked below its equals.",
    "bounds": _KEPT,
    "constants": _KEPT,
    "shared": _KEPT,
    "known": "; given to every system.",
    "units": "; terms that contradict them were not proposed, and the constants have units.",
    "conserved": "; the constants were tied so that every term cancels.",
    "hidden": ".",
}
"""The use of a piece of knowledge in the search, by the field that states it; others are enforced."""


def knowledge(run: Run) -> list[str]:
    """The user's knowledge, with its use in the search."""
    problem = run.request.problem
    lines = [text.rstrip(".") + _USES.get(field, _ENFORCED) for field, text in problem.knowledge.described()]
    for name, observation in zip(problem.experiment_names, problem.observations, strict=True):
        who = (
            f"Experiment {name!r}" if observation.name else name if len(problem.observations) > 1 else "The experiment"
        )
        for signal, forcing in observation.inputs.items():
            lines.append(f"{who} is driven by {signal} = {forcing.describe()}{_USES['inputs']}")
    lines += [f"The user's own equation {text} was tried first." for text in run.request.start]
    return lines or ["None; the search used the data only."]


def data(run: Run) -> list[str]:
    """The experiments, and how a long record was condensed."""
    problem = run.request.problem
    condensation = condensation_sentence(problem, run.request.settings.samples)
    return [*experiments(problem, 20), *([] if condensation is None else [condensation])]


def experiments(problem: Problem, most: int) -> list[str]:
    """What was measured in each of the first experiments, and how many there are more."""
    lines = []
    for name, o in zip(problem.experiment_names[:most], problem.observations, strict=False):
        measured = " and ".join(filter(None, (", ".join(map(str, o.columns[:-1])), str(o.columns[-1]))))
        lines.append(f"{name}: {o.n_samples} samples of {measured} from t = {o.t[0]:.6g} to {o.t[-1]:.6g}.")
    more = len(problem.observations) - most
    return [*lines, f"{more} more experiments."] if more > 0 else lines


def search(run: Run) -> str:
    """How much was searched."""
    end = "The search was interrupted; this is the best equation so far." if run.interrupted else ""
    return (
        f"{run.evaluations} equations were fitted in {_count(len(run.history), 'iteration')} and {run.seconds:.1f} "
        f"seconds, using the grammar {run.request.grammar.name!r}. {end}"
    )


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" + ("" if n == 1 else "s")
