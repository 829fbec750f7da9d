"""The report of a run: one self-contained HTML file, and the figures as image files."""

import base64
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lgf.data.condensation import condensation_sentence
from lgf.expression.print import format_number
from lgf.files import write_atomically
from lgf.report.constants import constant_rows, varying_terms, with_varying
from lgf.report.equilibria import equilibrium_rows, equilibrium_sentence, state_rows
from lgf.report.percentages import percentage
from lgf.report.sentences import prediction_front_rows, sentences
from lgf.report.templates import render
from lgf.runs.folder import front_rows
from lgf.runs.request import Run
from lgf.search.candidate import Candidate

REPORT = "report.html"


def write_report(run: Run, folder: str | Path) -> Path:
    """The path of the report, written with its figures into the folder."""
    from lgf.report.canvas import png  # imported late: a search does not wait for matplotlib
    from lgf.report.figures import figures

    images = {name: png(figure) for name, figure in figures(run).items()}
    for name, image in images.items():
        write_atomically(Path(folder) / f"{name}.png", image)
    path = Path(folder) / REPORT
    write_atomically(path, report(run, images).encode())
    return path


def report(run: Run, images: dict[str, bytes]) -> str:
    """The report as HTML with embedded images, without scripts or links."""
    best, equally_good = run.best, run.indistinguishable if len(run.indistinguishable) > 1 else ()
    front = prediction_front_rows(run)
    predictions = _predictions(front)
    return render(
        "report.html.j2",
        run=run,
        images={name: base64.b64encode(image).decode() for name, image in images.items()},
        summary=summary(run),
        constants=_constants(run),
        initial=_initial(run),
        sentences=sentences(run),
        predictions=predictions,
        predicted_best=next((p["equation"] for p, row in zip(predictions, front, strict=True) if row["chosen"]), None),
        stability=stability(run),
        equilibrium=equilibrium_sentence(run),
        equilibria=equilibrium_rows(run),
        states=state_rows(run),
        equivalents=[_equation_row(run, c) for c in run.equivalents],
        portrait=_portrait(run) if "phase" in images else "",
        alternatives=alternatives(run),
        equally_good=[_alternative(run, c) for c in equally_good],
        best=with_varying(str(run.system), varying_terms(best)),
        front=_front_table(run),
        knowledge=_knowledge(run),
        data=_data(run),
        search=_search(run),
        settings=[{"setting": name, "value": value} for name, value in _leaves(asdict(run.request.settings))],
        versions=", ".join(f"{name} {version}" for name, version in run.versions.items()),
    )


def summary(run: Run) -> str:
    """One sentence on the error of the chosen equation."""
    problem = run.request.problem
    sentence = (
        f"The equation leaves {percentage(run.best.loss**0.5)} of the measured signal unexplained "
        f"(root mean square, {problem.n_samples} samples, {_count(len(problem.observations), 'experiment')})"
    )
    return sentence + "."


def _constants(run: Run) -> list[dict[str, str]]:
    rows = []
    for entry in constant_rows(run):
        value, error = entry["value"], entry["error"]
        row = {
            "term": entry["term"],
            "value": format_number(value, error),
            "standard error": f"{error:.2g}" if math.isfinite(error) else "not determined",
            **({"unit": entry["unit"]} if "unit" in entry else {}),
        }
        if run.best.fit.sharing.varying:
            spread, experiments = entry["spread"], entry["experiments"]
            row["spread between experiments"] = "" if spread is None else format_number(spread)
            row["in each experiment"] = "" if spread is None else ", ".join(map(format_number, experiments))
        row[""] = "" if error < abs(value) else "The data do not determine this constant."
        rows.append(row)
    return rows


def _initial(run: Run) -> list[dict[str, str]]:
    rows = []
    for observation, state in zip(run.request.problem.observations, run.best.fit.initial, strict=True):
        row = {"experiment": observation.name or "the record", "t": format_number(observation.t[0])}
        for variable, value in zip(run.frame.variables, state, strict=True):
            source = "given" if variable in observation.initial else "fitted"
            row[str(variable)] = f"{format_number(float(value))} ({source})"
        rows.append(row)
    return rows


def _predictions(front: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "equation": with_varying(row["equation"], row["varying"]),
            "constants": row["constants"],
            "error in sample": percentage(row["error"]),
            "prediction error": "" if row["prediction"] is None else percentage(row["prediction"]),
        }
        for row in front
    ]


def stability(run: Run) -> str:
    """One sentence on the stability of the chosen equation."""
    assessed = run.best.stability
    if assessed is None:
        return "Stability was not assessed, because the equation could not be solved over the record."
    what = "The system without its input" if run.request.problem.inputs else "The system"
    return f"{what} is {assessed.kind.value}: {assessed.reason.rstrip('.')}."


def _portrait(run: Run) -> str:
    from lgf.report.phase_portrait import has_field

    sentences = ["Each trajectory begins at its arrowhead."]
    if not has_field(run):
        sentences.append("No vector field is drawn, because the rates depend on time or on an input too.")
    elif run.frame.dimension > 2:
        sentences.append("The arrows are the vector field in a plane, with all other variables at their mean.")
    return " ".join(sentences)


def alternatives(run: Run) -> str:
    """One sentence on the equations that the data cannot tell from the chosen one."""
    n = len(run.indistinguishable)
    if n <= 1:
        return "No other equation fits the data about as well at a similar length."
    return f"These {n} equations fit the data about equally well for their length. More data are needed to decide."


def _equation_row(run: Run, candidate: Candidate) -> dict[str, str]:
    return {"equation": str(run.display_system(candidate)), "error": percentage(candidate.loss**0.5)}


def _alternative(run: Run, candidate: Candidate) -> dict[str, Any]:
    return {
        "equation": with_varying(str(run.display_system(candidate)), varying_terms(candidate)),
        "complexity": candidate.complexity,
        "error": percentage(candidate.loss**0.5),
        "objective": f"{candidate.objective:.1f}",
    }


def _front_table(run: Run) -> list[dict[str, Any]]:
    return [
        {
            "equation": row["equation"],
            "complexity": row["complexity"],
            "error": percentage(row["loss"] ** 0.5),
            "prediction error": "" if row["prediction"] is None else percentage(row["prediction"]),
            "objective": f"{row['objective']:.1f}",
            "stable": row["stable"] or "",
        }
        for row in front_rows(run)
    ]


def _knowledge(run: Run) -> Sequence[str]:
    """The user's knowledge, with its use in the search."""
    known = run.request.problem.knowledge
    enforced = "; only such equations were proposed."
    uses = {
        "The system is driven": "; given to every equation.",
        "The system is": "; an equation that contradicts this is ranked below its equals.",
        "The coefficient of": "; kept while the constants were fitted.",
        "Every other constant": "; kept while the constants were fitted.",
        "Known right-hand side": "; given to every system.",
        "Units": "; terms that contradict them were not proposed, and the constants have units.",
        "Conserved": "; the constants were tied so that every term cancels.",
    }
    sentences = []
    for sentence in known.describe():
        use = next((use for begin, use in uses.items() if sentence.startswith(begin)), enforced)
        sentences.append(sentence.rstrip(".") + use)
    for observation in run.request.problem.observations:
        name = f"Experiment {observation.name!r}" if observation.name else "The experiment"
        for signal, forcing in observation.inputs.items():
            sentences.append(f"{name} is driven by {signal} = {forcing.describe()}; given to every equation.")
    sentences += [f"The user's own equation {text} was tried first." for text in run.request.start]
    return sentences or ["None; the search used the data only."]


def _data(run: Run) -> Sequence[str]:
    sentences = []
    for number, o in enumerate(run.request.problem.observations, start=1):
        measured = " and ".join(map(str, o.columns))
        name = o.name or f"Experiment {number}"
        sentences.append(f"{name}: {o.n_samples} samples of {measured} from t = {o.t[0]:.6g} to {o.t[-1]:.6g}.")
    if len(sentences) > 20:
        sentences = [*sentences[:20], f"{len(sentences) - 20} more experiments."]
    condensation = condensation_sentence(run.request.problem, run.request.settings.samples)
    return sentences if condensation is None else [*sentences, condensation]


def _search(run: Run) -> str:
    end = "The search was interrupted; this is the best equation so far." if run.interrupted else ""
    return (
        f"{run.evaluations} equations were fitted in {_count(len(run.history), 'iteration')} and {run.seconds:.1f} "
        f"seconds, using the grammar {run.request.grammar.name!r}. {end}"
    )


def _leaves(settings: dict[str, Any], place: str = "") -> Iterable[tuple[str, Any]]:
    """(dotted name, value) of every setting."""
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{place}{name}.")
        else:
            yield f"{place}{name}", value


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" + ("" if n == 1 else "s")
