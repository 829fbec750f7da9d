import html
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np

from lgf.data import Knowledge, Problem
from lgf.fit.sharing import Sharing, Varying
from lgf.report.canvas import png
from lgf.report.figures import figures
from lgf.report.page import report, write_report
from lgf.report.run_view import run_view
from lgf.report.sentences import knowledge, note_sentence, sentences, verdict_sentence
from lgf.search.candidate import Prediction
from lgf.search.notes import Note, NoteKind, notes_on
from lgf.search.prediction import PredictionSettings
from lgf.search.verdict import Reason, Trust, Verdict, verdict_on

IMAGES = {"trajectory": b"1", "front": b"2", "history": b"3"}


class Checker(HTMLParser):
    """Collects tags and attributes, and that every tag that is opened is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.links = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "srcset", "action")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parsed(text):
    checker = Checker()
    checker.feed(text)
    assert not checker.open
    return checker


def test_the_report_needs_nothing_from_outside(duffing, tmp_path):
    path = write_report(duffing, tmp_path)
    text = path.read_text(encoding="utf-8")
    page = parsed(text)
    assert "script" not in page.seen
    assert len(page.links) == 4
    assert all(link.startswith("data:image/png;base64,") for link in page.links)
    assert not re.search(r"https?://|@import|url\(", text)
    for name, figure in figures(duffing).items():
        assert (tmp_path / f"{name}.png").read_bytes() == png(figure)


def test_the_report_says_what_a_reader_needs(duffing):
    text = html.unescape(report(duffing, IMAGES))
    assert str(duffing.system) in text
    for title in (
        "Constants",
        "Stability and equilibria",
        "Trajectory",
        "Knowledge given by the user",
        "Data",
        "Search",
        "Settings",
    ):
        assert f"<h2>{title}</h2>" in text
    assert "The equation is of order 2; only such equations were proposed." in text
    assert "driven by F = cos(2*t); given to every equation." in text
    assert "is stable: all eigenvalues" in text
    assert "1.5 (given)" in text
    assert "tried first" in text
    assert duffing.request.findings[0].sentence in text
    assert f"{duffing.system.errors[0]:.2g}" in text
    assert "do not determine" not in text


def test_fitted_states_predictions_and_bounds_are_shown(decay):
    text = html.unescape(report(decay, IMAGES))
    assert "(fitted)" in text
    assert "prediction error" in text
    assert "lies between -9 and 0; kept while the constants were fitted." in text
    assert "4 of 40 samples of u are missing" in text


def test_a_constant_that_the_data_leave_open_is_flagged(duffing):
    covariance = np.full_like(duffing.best.fit.covariance, np.inf)
    blurred = replace(duffing, best=replace(duffing.best, fit=replace(duffing.best.fit, covariance=covariance)))
    text = report(blurred, IMAGES)
    assert text.count("The data do not determine this constant.") == len(duffing.system.values)
    assert "not determined" in text


def test_the_report_names_the_file_that_the_data_came_from(decay):
    assert "Read from" not in report(decay, IMAGES)
    assert "<p>Read from a.csv.</p>" in report(replace(decay, request=replace(decay.request, source="a.csv")), IMAGES)


def test_a_wide_prediction_is_a_weak_test_and_a_better_one_is_named(decay):
    def judged(own, other):
        candidates = [
            replace(c, prediction=Prediction(error, None, 1.0))
            for c, error in zip((decay.best, decay.prediction_front[0]), (own, other), strict=True)
        ]
        best, problem = candidates[0], decay.request.problem
        verdict = verdict_on(best, problem)
        notes = notes_on(best, candidates[1:], verdict, problem, None, PredictionSettings())
        return " ".join(sentences(replace(decay, verdict=verdict, notes=notes)))

    usual = (
        "Confirmed: it predicts later samples to within the noise and its own error bars (off by 1 % of their size)."
    )
    assert judged(0.01, 0.008) == usual
    assert "is better (off by 0.4 %); more data would decide." in judged(0.01, 0.004)
    wide = 0.7 * decay.request.problem.variation
    assert judged(wide, wide).startswith("Confirmed by a weak test: it predicts later samples to within the noise and")


def test_the_report_says_how_the_table_was_read(decay):
    assert "How the table was read" not in report(decay, IMAGES)
    text = report(replace(decay, request=replace(decay.request, notes=("Column 'Temp [K]' is called u.",))), IMAGES)
    assert "<p>How the table was read:</p><ul><li>Column &#39;Temp [K]&#39; is called u.</li></ul>" in text


def test_names_from_the_data_cannot_become_markup(decay):
    hostile = "<script>alert(1)</script>"
    observations = tuple(replace(o, name=hostile) for o in decay.request.problem.observations)
    problem = Problem(observations, decay.request.problem.knowledge)
    request = replace(decay.request, problem=problem, source=hostile)
    text = report(replace(decay, request=request), IMAGES)
    assert "script" not in parsed(text).seen
    assert f"<p>Read from {html.escape(hostile)}.</p>" in text
    assert f"<li>{html.escape(hostile)}: " in text


def test_an_interrupted_run_says_so(duffing):
    assert "interrupted" in report(replace(duffing, interrupted=True), IMAGES)
    assert "interrupted" not in report(duffing, IMAGES)


def test_an_error_of_pieces_of_the_record_is_called_so(duffing):
    assert not any("pieces" in sentence for sentence in sentences(duffing))
    in_pieces = replace(duffing.best, fit=replace(duffing.best.fit, segments=24))
    notes = notes_on(in_pieces, (), duffing.verdict, duffing.request.problem, None, PredictionSettings())
    assert "The error is that of 24 pieces of the record" in " ".join(map(note_sentence, notes))


def test_every_verdict_and_note_becomes_a_sentence():
    numbers = {"error": 0.1, "forecast": 0.1, "left_out": 0.2, "unexplained": 0.3}
    for reason in Reason:
        sentence = verdict_sentence(Verdict(Trust.INCONCLUSIVE, reason, numbers))
        assert sentence.endswith(".")
        assert "{" not in sentence
    values = {
        "share": 0.5, "time": 2.0, "error": 0.1, "pieces": 3, "mean": 1.0, "deviation": 0.2,
        "chosen_error": 0.1, "ratio": 9.0, "number": 2, "unknowns": 5,
    }  # fmt: skip
    assert all(note_sentence(Note(kind, "y", values, "x")).endswith(".") for kind in NoteKind)


def test_the_other_forms_of_a_hidden_state_are_shown(decay):
    known = replace(decay.request.problem.knowledge, hidden=("F",))
    problem = Problem(decay.request.problem.observations, known)
    run = replace(decay, request=replace(decay.request, problem=problem), equivalents=(decay.front[0],))
    text = html.unescape(report(run, IMAGES))
    assert "<h2>Other forms of the hidden state F</h2>" in text
    assert f"<td>{run.display_system(decay.front[0])}</td>" in text
    assert "Hidden: F was not measured; its equation and its path are inferred.</li>" in text


def test_the_use_of_knowledge_goes_by_its_field_and_not_by_its_words(decay):
    problem = decay.request.problem
    stated = Knowledge(
        stable=True, bounds={"u": "negative"}, required=("u",), conserved=("u",), shared=("u: u = 2*u: t",),
        vary="none",
    )  # fmt: skip
    request = replace(decay.request, problem=replace(problem, knowledge=problem.knowledge), start=())
    object.__setattr__(request.problem, "knowledge", stated)  # no system could have all of it
    lines = knowledge(replace(decay, request=request))
    assert [line.partition("; ")[2].split()[0] for line in lines] == ["an", "kept", "only", "only", "kept", "the"]
    assert lines[0] == "The system is stable; an equation that contradicts this is ranked below its equals."


def test_an_experiment_without_a_name_has_the_same_number_everywhere(decay):
    problem = decay.request.problem
    observations = tuple(replace(o, name=name) for o, name in zip(problem.observations, ("A", ""), strict=True))
    request = replace(decay.request, problem=Problem(observations, problem.knowledge))
    view = run_view(replace(decay, request=request))
    assert [experiment for experiment, *_ in view.starts] == ["A", "Experiment 2"]
    assert [line.partition(":")[0] for line in view.data] == ["A", "Experiment 2"]


def test_every_list_of_a_view_holds_equations_of_the_view(decay):
    view = run_view(decay)
    assert sum(e.chosen for e in view.equations) == 1
    assert view.chosen in view.front
    for part in (view.front, view.equal, view.prediction_front):
        assert all(any(e is other for other in view.equations) for e in part)
    losses = [e.loss for e in view.front]
    assert losses == sorted(losses, reverse=True)
    assert [row["equation"] for row in view.prediction_rows] == [e.text for e in view.prediction_front]


def test_an_equation_with_a_constant_that_varies_is_shown_as_it_was_fitted(duffing):
    # in operator form all constants are divided by that of the input, and the table named constants of another form
    fit = duffing.best.fit
    fit = replace(fit, sharing=Sharing((Varying(0, fit.values[0], 0.1),)))
    view = run_view(replace(duffing, best=replace(duffing.best, fit=fit), front=(), indistinguishable=()))
    assert view.chosen.text.startswith("u'' = ")
    assert [row["value"] for row in view.constant_rows] == list(fit.values)
    assert [row["spread"] for row in view.constant_rows] == [0.1] + [None] * (len(fit.values) - 1)
    assert view.chosen.label == f"{view.chosen.text}  ({view.chosen.constants[0].term} by experiment)"
