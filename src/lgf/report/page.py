"""The report of a run: one self-contained HTML file, and the figures as image files."""

import base64
import html
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
from lgf.runs.folder import front_rows
from lgf.runs.request import Run

REPORT = "report.html"
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
h1 { font-size: 1.3rem } h2 { font-size: 1.1rem; margin-top: 2rem; border-bottom: 1px solid #ddd }
.equation { font: 1.4rem/1.6 ui-monospace, monospace; background: #f5f6f7; padding: .7rem 1rem; overflow-x: auto;
  white-space: pre-line }
table { border-collapse: collapse; font-size: .9rem } td, th { padding: .2rem .8rem .2rem 0; text-align: left }
th { border-bottom: 1px solid #999 } tr.chosen { background: #fbe9e6 } code { overflow-wrap: anywhere }
img { max-width: 100% } .warning, .error { color: #a33 } footer { color: #777; font-size: .85rem; margin-top: 2rem }
"""


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
    parts = [
        f'<p class="equation">{_text(run.system)}</p>',
        _paragraph(summary(run)),
        _section("Constants", _constants(run), _initial(run)),
        _section("Predictions", _predictions(run)),
        _section(
            "Stability and equilibria",
            _paragraph(stability(run)),
            _paragraph(equilibrium_sentence(run)),
            _table(equilibrium_rows(run)) if equilibrium_rows(run) else "",
        ),
        _section(
            "Trajectory",
            _image(images["trajectory"], "Measured samples and the solution of the equation."),
            _paragraph(
                "Nine of ten new measurements are expected within the shaded band. It holds the noise, the uncertainty "
                "of constants and initial state, and the choice among equally good equations."
            ),
            _table(state_rows(run)),
        ),
        _hidden(run),
        _portrait(run, images.get("phase")),
        _section(
            "Equally good equations",
            _paragraph(alternatives(run)),
            _table(_alternative_rows(run), chosen=with_varying(str(run.system), varying_terms(run.best)))
            if len(run.indistinguishable) > 1
            else "",
        ),
        _section(
            "Accuracy against complexity",
            _image(images["front"], "Error against complexity of the equations on the Pareto front."),
            _table(_front_table(run), chosen=str(run.system)),
        ),
        _section("Knowledge given by the user", _list(_knowledge(run))),
        _section("Data", _source(run), _reading(run), _list(_data(run)), _findings(run)),
        _section(
            "Search",
            _paragraph(_search(run)),
            _image(images["history"], "Objective against the number of evaluations."),
        ),
        _section(
            "LaTeX and Python code", f"<pre>{_text(run.system.latex())}</pre><pre>{_text(run.system.python())}</pre>"
        ),
        _section("Settings", _settings(run)),
    ]
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    body = "\n".join(parts)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{_text(run.system)}</title>'
        f"<style>{STYLE}</style></head><body>\n<h1>Latent Grammar Flow: discovered equation</h1>\n{body}\n"
        f"<footer>Seed {run.request.seed}; {_text(versions)}.</footer>\n</body></html>\n"
    )


def summary(run: Run) -> str:
    """One sentence on the error of the chosen equation."""
    problem = run.request.problem
    sentence = (
        f"The equation leaves {percentage(run.best.loss**0.5)} of the measured signal unexplained "
        f"(root mean square, {problem.n_samples} samples, {_count(len(problem.observations), 'experiment')})"
    )
    return sentence + "."


def _constants(run: Run) -> str:
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
    return _table(rows) if rows else _paragraph("The equation has no constants.")


def _initial(run: Run) -> str:
    rows = []
    for observation, state in zip(run.request.problem.observations, run.best.fit.initial, strict=True):
        row: dict[str, Any] = {"experiment": observation.name or "the record", "t": format_number(observation.t[0])}
        for variable, value in zip(run.frame.variables, state, strict=True):
            source = "given" if variable in observation.initial else "fitted"
            row[str(variable)] = f"{format_number(float(value))} ({source})"
        rows.append(row)
    return _paragraph("Initial state (given by the user, or fitted):") + _table(rows)


def _predictions(run: Run) -> str:
    steps = prediction_front_rows(run)
    rows = [
        {
            "equation": with_varying(row["equation"], row["varying"]),
            "constants": row["constants"],
            "error in sample": percentage(row["error"]),
            "prediction error": "" if row["prediction"] is None else percentage(row["prediction"]),
        }
        for row in steps
    ]
    front = ""
    if len(rows) > 1:
        front = _paragraph("The simplest equation at each level of prediction error, the chosen one marked:")
        chosen = next((row["equation"] for row, step in zip(rows, steps, strict=True) if step["chosen"]), None)
        front += _table(rows, chosen)
    return "".join(map(_paragraph, sentences(run))) + front


def stability(run: Run) -> str:
    """One sentence on the stability of the chosen equation."""
    assessed = run.best.stability
    if assessed is None:
        return "Stability was not assessed, because the equation could not be solved over the record."
    what = "The system without its input" if run.request.problem.inputs else "The system"
    return f"{what} is {assessed.kind.value}: {assessed.reason.rstrip('.')}."


def _hidden(run: Run) -> str:
    """The systems that are exactly equivalent but for the state that was not measured."""
    rows = [{"equation": str(run.display_system(c)), "error": percentage(c.loss**0.5)} for c in run.equivalents]
    return _section(f"Other forms of the hidden state {run.request.problem.hidden[0]}", _table(rows)) if rows else ""


def _portrait(run: Run, image: bytes | None) -> str:
    if image is None:
        return ""
    from lgf.report.phase_portrait import has_field

    sentences = ["Each trajectory begins at its arrowhead."]
    if not has_field(run):
        sentences.append("No vector field is drawn, because the rates depend on time or on an input too.")
    elif run.frame.dimension > 2:
        sentences.append("The arrows are the vector field in a plane, with all other variables at their mean.")
    picture = _image(image, "Trajectories, vector field and equilibria in planes of two variables.")
    return _section("Phase portrait", picture, _paragraph(" ".join(sentences)))


def alternatives(run: Run) -> str:
    """One sentence on the equations that the data cannot tell from the chosen one."""
    n = len(run.indistinguishable)
    if n <= 1:
        return "No other equation fits the data about as well at a similar length."
    return f"These {n} equations fit the data about equally well for their length. More data are needed to decide."


def _alternative_rows(run: Run) -> list[dict[str, Any]]:
    return [
        {
            "equation": with_varying(str(run.display_system(c)), varying_terms(c)),
            "complexity": c.complexity,
            "error": percentage(c.loss**0.5),
            "objective": f"{c.objective:.1f}",
        }
        for c in run.indistinguishable
    ]


def _front_table(run: Run) -> list[dict[str, Any]]:
    rows = []
    for row in front_rows(run):
        predicted = row["prediction"]
        rows.append(
            {
                "equation": row["equation"],
                "complexity": row["complexity"],
                "error": percentage(row["loss"] ** 0.5),
                "prediction error": "" if predicted is None else percentage(predicted),
                "objective": f"{row['objective']:.1f}",
                "stable": row["stable"] or "",
            }
        )
    return rows


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


def _source(run: Run) -> str:
    return _paragraph(f"Read from {run.request.source}.") if run.request.source else ""


def _reading(run: Run) -> str:
    return "<p>How the table was read:</p>" + _list(run.request.notes) if run.request.notes else ""


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


def _findings(run: Run) -> str:
    lines = [f'<li class="{f.severity}">{_text(f.sentence)}</li>' for f in run.request.findings]
    return "<p>Findings of the data check:</p><ul>" + "".join(lines) + "</ul>" if lines else ""


def _search(run: Run) -> str:
    end = "The search was interrupted; this is the best equation so far." if run.interrupted else ""
    return (
        f"{run.evaluations} equations were fitted in {_count(len(run.history), 'iteration')} and {run.seconds:.1f} "
        f"seconds, using the grammar {run.request.grammar.name!r}. {end}"
    )


def _settings(run: Run) -> str:
    rows = [{"setting": name, "value": value} for name, value in _leaves(asdict(run.request.settings))]
    return f"<details><summary>All settings</summary>{_table(rows)}</details>"


def _leaves(settings: dict[str, Any], place: str = "") -> Iterable[tuple[str, Any]]:
    """(dotted name, value) of every setting."""
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{place}{name}.")
        else:
            yield f"{place}{name}", value


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" + ("" if n == 1 else "s")


def _text(value: object) -> str:
    return html.escape(str(value))


def _paragraph(text: str) -> str:
    return f"<p>{_text(text)}</p>"


def _section(title: str, *parts: str) -> str:
    return f"<h2>{_text(title)}</h2>\n" + "\n".join(part for part in parts if part)


def _list(sentences: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{_text(s)}</li>" for s in sentences) + "</ul>"


def _table(rows: Sequence[dict[str, Any]], chosen: str | None = None) -> str:
    head = "".join(f"<th>{_text(name)}</th>" for name in rows[0])
    lines = []
    for row in rows:
        mark = ' class="chosen"' if chosen is not None and row.get("equation") == chosen else ""
        lines.append(f"<tr{mark}>" + "".join(f"<td>{_text(cell)}</td>" for cell in row.values()) + "</tr>")
    return f"<table><tr>{head}</tr>{''.join(lines)}</table>"


def _image(content: bytes, description: str) -> str:
    return f'<img alt="{_text(description)}" src="data:image/png;base64,{base64.b64encode(content).decode()}">'
