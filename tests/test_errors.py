"""Every error that a user can cause, with its sentence: each is provoked for real, and no place that raises is left out.

A case is (what the user does, the sentence that comes back). Everything happens in an empty folder into which `ready`
puts a good table, a finished run and a trained model, and `spoil` whatever a case needs.
"""

import ast
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lgf import Equation, LatentGrammarFlow
from lgf.asking import Question, model_named, refuse
from lgf.cli import main
from lgf.data import (
    Knowledge,
    Observation,
    Problem,
    check,
    complete,
    load_record,
    make_forcing,
    observations_from_arrays,
    problem_named,
    read_observations,
    read_table,
)
from lgf.data.corpus import Corpus
from lgf.discovery.terms import term_dictionary
from lgf.grammar import load_grammar, mentions, parse, read_grammar, restrict
from lgf.journal import Journal
from lgf.latent.bundle import load_bundle, save_bundle
from lgf.ode.expression import symbol
from lgf.ode.reading import ReadingError, read_expression
from lgf.ode.solving import solve, solve_system
from lgf.ode.trajectory import Forcing, Trajectory
from lgf.runs import open_run, read_journal, read_question, read_run, write_atomically, write_run
from lgf.training.recipe import load_recipe
from lgf.training.stages import train

SOURCE = Path(__file__).parents[1] / "src" / "lgf"
T = np.linspace(0.0, 1.0, 10)
U = np.exp(-T)
NAN = float("nan")


def changed(array, at, value):
    copy = np.array(array, dtype=float)
    copy[at] = value
    return copy


def spoil(name, content, call):
    """A call on a file of this content."""

    def provoke():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return call(name)

    return provoke


def table(content, **columns):
    return spoil("table.csv", content, lambda name: read_observations(name, **columns))


def edited(name, change, call):
    """A call after `change` was made to the facts in a JSON file."""

    def provoke():
        facts = json.loads(Path(name).read_text())
        change(facts)
        Path(name).write_text(json.dumps(facts))
        return call()

    return provoke


def recipe(content):
    return spoil("recipe.toml", content, load_recipe)


def grammar(rules, settings="template: explicit"):
    return lambda: read_grammar(f"{settings}\n{rules}")


def resumed_corpus():
    """Training resumed beside a corpus that another recipe made."""
    Path("recipe.toml").write_text('name = "small"\ngrammar = "small.grammar"\n[corpus]\nsize = 10\nseed = 1\n')
    Path("small.grammar").write_text("template: explicit\nsummand: T\nS -> T\nT -> C*u | C*u^2 | C*u^3 | C*t | C*u*t\n")
    corpus = Corpus(
        np.zeros((1, 40), np.int16), np.ones(1, np.int8), np.ones(1, bool), np.zeros(1, bool),
        np.zeros((1, 256), np.float32),
        {"seed": 0, "size": 1, "fingerprint": load_grammar("small.grammar").fingerprint, "grammar": "small"},
    )  # fmt: skip
    corpus.save("model/work/corpus")
    train("recipe.toml", "model", resume=True)


def of_another_grammar(change):
    corpus = Corpus(
        np.zeros((2, 40), np.int16), np.ones(2, np.int8), np.ones(2, bool), np.zeros(2, bool),
        np.zeros((2, 256), np.float32), {"seed": 0, "size": 2, "fingerprint": "0", "grammar": "other"} | change,
    )  # fmt: skip
    corpus.save("corpus")
    Corpus.load("corpus", load_grammar("b1"))


def too_large_bundle():
    bundle = load_bundle("b1")
    bundle.metrics["padding"] = "x" * 10_000_000  # pyright: ignore[reportIndexIssue]
    save_bundle(bundle, "large")


def weights(change):
    """A call that loads the model after its weights were changed, with the new hash announced."""
    import hashlib

    from safetensors.torch import load, save

    def provoke():
        path = Path("model/weights.safetensors")
        data = change(path.read_bytes(), load, save)
        path.write_bytes(data)
        facts = json.loads(Path("model/model.json").read_text())
        facts["weights"] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        Path("model/model.json").write_text(json.dumps(facts))
        load_bundle("model")

    return provoke


def renamed(data, load, save):
    tensors = load(data)
    tensors["another"] = tensors.pop(sorted(tensors)[0])
    return save(tensors)


def reshaped(data, load, save):
    tensors = load(data)
    first = sorted(tensors)[0]
    tensors[first] = tensors[first][:1].contiguous()
    return save(tensors)


def fitted(**knowledge):
    return lambda: LatentGrammarFlow(max_evaluations=1, **knowledge).fit(T, U)


def first_error(observation, knowledge=Knowledge()):  # noqa: B008 (frozen)
    """A discovery on data whose check finds an error."""
    refuse(Question(Problem((observation,), knowledge), load_grammar("standard")))


def huge(name, size):
    """The name of a file that claims this size, with a hole in place of content."""
    with Path(name).open("wb") as file:
        file.truncate(size)
    return name


def sampled_input():
    """The finished run as if its input had been given by samples."""
    question = read_question("run")
    forcing = question.problem.knowledge.forcing.sampled(0.0, 30.0)
    known = replace(question.problem.knowledge, forcing=forcing)
    return replace(read_run("run"), question=replace(question, problem=replace(question.problem, knowledge=known)))


def journal_in(path):
    """A journal that keeps a fit in a file of this name."""
    candidate = json.loads(Path("run/candidates.jsonl").read_text().splitlines()[0])
    Journal(Path(path))._keep([json.dumps(candidate)])


# command lines, as they are typed; the sentence stands behind "lgf: " on standard error
LINES = {
    "discover": "there is nothing to discover from; name a CSV file or a record (see `lgf records`).",
    "discover nowhere.csv": "there is no file nowhere.csv; check the name and the folder.",
    "discover data.csv --jobs 0": "--jobs is 0; give a number of processors, or -1 for all.",
    "discover data.csv --seed -1": "--seed is -1; give a whole number that is not negative.",
    "discover data.csv --order two": "Invalid value for '--order': ….",
    "discover data.csv --order 9": "order is 9; give a whole number from 1 to 4, or None for unknown.",
    "discover data.csv --ordre 2": "No such option: --ordre….",
    "discover data.csv --resume run": "a run that is resumed has its own data and folder; drop DATA and --out.",
    "discover data.csv --forcing t --forcing-column u": "--forcing and --forcing-column are both given; the input is a formula or a column, not both.",
    "discover data.csv --forcing 'cos(2*t'": "the forcing 'cos(2*t' cannot be read: ')' was expected to close cos(, got 'the end'.",
    "discover data.csv --initial zero": "the initial state is 'zero'; give numbers separated by commas, such as 0,1.5.",
    "discover data.csv --bounds u^3": "the bound 'u^3' has no '='; write it like u^3=negative or u=-10:0.",
    "discover data.csv --preset fast": "no preset is called 'fast'; choose from default, paper.",
    "discover data.csv --evaluations 0": "the budget is 0 evaluations; give at least 1.",
    "discover data.csv --seconds 0": "the budget is 0.0 seconds; give a positive number.",
    "discover data.csv --model nothing": "no grammar or file is called 'nothing'; give the path of a file or one of b1, b1_corpus, b2, b2_corpus, b3, b3_corpus, standard.",
    "discover data.csv --model binary.grammar": "the grammar 'binary.grammar' cannot be read (UnicodeDecodeError).",
    "discover data.csv --model .": "no model is called '.'; give a folder with model.json and weights.safetensors, or one of …",
    "discover data.csv --model b3": "every equation of the grammar 'b3' has a given input, but none is given; give a forcing, or take another model.",
    'discover data.csv --start "u\' = "': "the equation \"u' = \" cannot be read: nothing here; an expression such as 2*u' + u was expected.",
    'discover data.csv --start "u\' = C0*u + C0"': 'the equation "u\' = C0*u + C0" cannot be used: an open constant occurs twice; give every place a constant of its own.',
    'discover data.csv --start "x0\' = x1"': "the equation \"x0' = x1\" is about other states than u; write it in t, u, u', ... and F.",
    "discover data.csv --start \"u''' = u\"": "the equation \"u''' = u\" is of order 3, but order 1 or 2 is looked for; change one of the two.",
    'discover data.csv --start "u\' = F"': 'the equation "u\' = F" contains the forcing F, but none is given; give one.',
    "discover data.csv --out run": "run holds a run already; resume it with --resume run, or name another folder.",
    "discover data.csv --out data.csv/run": "the folder data.csv/run cannot be made (Not a directory); name another one.",
    "discover --resume nowhere": "nowhere holds no run: there is no file run.json in it; name the folder of a run.",
    "discover flat.csv": "The measured u is constant (1); start away from rest, or excite the system.",
    "check flat.csv": "The measured u is constant (1); start away from rest, or excite the system.",
    "simulate nowhere": "nowhere holds no run: there is no file run.json in it; name the folder of a run.",
    "simulate run --n 1": "--n is 1; give a number of times from 2 to 10000000.",
    "simulate run --t0 5 --t1 1": "the times go from 5 to 1; the last one must be later than the first.",
    "simulate run --initial 1,0;2,0": "the initial state is '1,0;2,0'; give a single one.",
    "simulate run --initial 1": "the initial state has 1 values but the equation is of order 2; give u, u' at the first time.",
    "simulate run --forcing 0": "a new forcing needs an initial state; give it by --initial.",
    "simulate run --initial 1,0 --forcing u": "a forcing formula depends on t only, but u stands in it.",
    "models show nothing": "no grammar or file is called 'nothing'; give the path of a file or one of b1, b1_corpus, b2, b2_corpus, b3, b3_corpus, standard.",
    "models show standard 'u = 1'": "'u = 1' is no differential equation; write one in u, u', ...",
    "models show standard 'u = = 1'": "the equation 'u = = 1' cannot be read: a second '='; an equation has one.",
    "sample standard -n 0": "-n is 0; give a number from 1 to 1000000.",
    "sample standard --seed -1": "--seed is -1; give a whole number that is not negative.",
    "sample standard --order 9": "--order is 9; give a whole number from 1 to 4.",
    "sample trivial.grammar": "trivial hardly says any equation of order 2; ask for another order.",
    "train nowhere.toml": "nowhere.toml cannot be used: No such file or directory.",
    "train broken.toml": "broken.toml is not TOML: ….",
    "train unknown.toml": "a file cannot be used: no grammar or file is called 'nothing'; give the path of a file or one of b1, b1_corpus, b2, b2_corpus, b3, b3_corpus, standard.",
    "nonsense": "No such command 'nonsense'.",
}

# (call, sentence)
ESTIMATOR = {
    "seed": (fitted(seed=-1), "the seed is -1; give a whole number that is not negative."),
    "preset": (fitted(preset="fast"), "no preset is called 'fast'; choose from default, paper."),
    "stable": (fitted(stable="yes"), "stable is 'yes'; say True, False, or None for unknown."),
    "functions": (
        fitted(functions=("sinh",)),
        "the function 'sinh' is not known; choose from sin, cos, exp, log, sqrt, abs, tanh.",
    ),
    "predict before the record": (
        lambda: LatentGrammarFlow.load("run").predict([-1.0, 0.0]),
        "t begins at -1, before the record at 0; use simulate for that.",
    ),
    "score": (
        lambda: LatentGrammarFlow.load("run").score([0.0, 1.0], [1.0]),
        "u has 1 values but t has 2; give one value per time.",
    ),
    "simulate without the input": (
        lambda: sampled_input().simulate([0.0, 1.0], (0.0, 0.0)),
        "the forcing of the data was given by samples; say what drives the system now.",
    ),
    "simulate at no times": (
        lambda: LatentGrammarFlow.load("run").simulate([1.0, 0.0], (0.0, 0.0)),
        "t must be a list of finite, strictly increasing times.",
    ),
    "no Forcing known": (lambda: Knowledge(forcing="sin(t)"), "forcing is a str; make it a Forcing first."),
    "forced and unforced": (
        lambda: Knowledge(forced=False, forcing=Forcing.from_formula("t")),
        "a forcing is given but the system is said to be unforced; drop one of the two.",
    ),
    "order": (lambda: Knowledge(order=0), "order is 0; give a whole number from 1 to 4, or None for unknown."),
    "bounds that are none": (
        lambda: Knowledge(bounds=[1]),
        'bounds map a term to (low, high) or to a sign: {"u^3": "positive"}.',
    ),
    "bounds in other words": (
        lambda: Knowledge(bounds={"u": "large"}),
        "the bounds of u are 'large'; say positive, negative, or give (low, high).",
    ),
    "bounds of one number": (
        lambda: Knowledge(bounds={"u": (1,)}),
        "the bounds of u are (1,); give (low, high) or a sign in words.",
    ),
    "bounds the wrong way": (
        lambda: Knowledge(bounds={"u": (1, 0)}),
        "the bounds of u are (1, 0); the low one must not exceed the high one.",
    ),
    "a term that is none": (lambda: Knowledge(required=("",)), "a term is given as text such as \"u^3\", but got ''."),
    "a term unreadable": (
        lambda: Knowledge(required=("u^",)),
        "the term 'u^' cannot be read: a number, a name or '(' was expected, got 'the end'.",
    ),
    "terms that are no text": (lambda: Knowledge(required=(3,)), "required terms are given as text, but got (3,)."),
    "variables": (lambda: Knowledge(variables=("v",)), "the variable 'v' is not known; choose from t, u, u', u''."),
    "no variables": (lambda: Knowledge(variables=()), "no variable is allowed; name at least one of t, u, u', u''."),
}

ARRAYS = {
    "fewer values": (lambda: Observation(T, U[:-1]), "there are 9 values but 10 times; give one value per time, NaN where missing."),
    "three dimensions": (lambda: Observation(T, np.zeros((10, 1, 1))), "the measured values have shape (10, 1, 1); give one value per time, or one column per measured derivative."),
    "times in columns": (lambda: Observation(T[:, None], U), "t has shape (10, 1); give one time per sample."),
    "text": (lambda: Observation(T, ["a"] * 10), "the measured values cannot be read as an array of numbers (…)."),
    "complex": (lambda: Observation(T, U + 1j), "the measured values hold complex numbers; give real ones."),
    "time back": (lambda: Observation(T[::-1], U), "time goes back from 1 to 0.888889 at sample 2; sort the rows by time, or name the column that tells experiments apart."),
    "time twice": (lambda: Observation(changed(T, 4, T[3]), U), "time 0.333333 stands twice (samples 4 and 5); average the two, remove one, or name the column that tells experiments apart."),
    "time missing": (lambda: Observation(changed(T, 3, NAN), U), "the time of sample 4 is nan; every sample needs a finite time."),
    "values missing": (lambda: Observation(T, U * NAN), "measured column 1 has 0 values that are not missing; at least 3 are needed."),
    "infinite": (lambda: Observation(T, changed(U, 2, np.inf)), "sample 3 is infinite; remove it or write NaN for a missing value."),
    "absurd": (lambda: Observation(T, changed(U, 2, 1e200)), "the measured values exceed 1e150; give them in another unit."),
    "one sample": (lambda: Observation(T[:1], U[:1]), "there are 1 samples; at least 3 are needed."),
    "derivative": (lambda: Observation(T, U, (9,)), "the measured derivative is 9; give 0 for u, 1 for u', 2 for u'' (at most 4)."),
    "derivatives": (lambda: Observation(T, U, (0, 1)), "there are 1 measured columns but 2 derivatives are named; name one for each column."),
    "derivative twice": (lambda: Observation(T, np.stack([U, U], 1), (1, 1)), "the measured derivatives (1, 1) repeat; give repeated measurements as experiments."),
    "weights negative": (lambda: Observation(T, U, weights=-np.ones(10)), "the weights must be finite and not negative; give 0 to leave a sample out."),
    "weights of another shape": (lambda: Observation(T, U, weights=np.ones(9)), "the weights have shape (9, 1) but the measured values (10, 1); give one for each."),
    "weights zero": (lambda: Observation(T, U, weights=np.zeros(10)), "all weights are zero; give at least some samples a positive weight."),
    "initial not finite": (lambda: Observation(T, U, initial=(np.inf,)), "the initial state is not finite; give numbers, or leave it out to have it estimated."),
    "initial empty": (lambda: Observation(T, U, initial=()), "the initial state has shape (0,); give u(t0), or u(t0) and u'(t0), as numbers."),
    "no Forcing": (lambda: Observation(T, U, forcing="sin(t)"), "forcing is a str; make it a Forcing first."),
    "no experiment": (lambda: Problem(()), "there is no experiment in the data; give at least one."),
    "measured beyond the order": (lambda: Problem((Observation(T, U, (2,)),), Knowledge(order=1)), "the data: derivative 2 of u was measured but order 1 is said to be known; leave the order open or set it to at least 2."),
    "initial beyond the order": (lambda: Problem((Observation(T, U, initial=(1, 2)),), Knowledge(order=1)), "the data: the initial state has 2 values but an equation of order 1 takes 1; give u(t0) and its derivatives below the order."),
    "input where there is none": (
        lambda: Problem((Observation(T, U, forcing=Forcing.from_formula("t")),), Knowledge(forced=False)), "the data has a forcing but the system is said to be unforced; drop one of the two."),
    "several times": (lambda: observations_from_arrays([T, T], U), "times are given for several experiments but values for one; give one array for each."),
    "two times, three records": (lambda: observations_from_arrays([T, T], [U, U, U]), "there are 2 times but 3 experiments; give one for each, or one for all."),
    "two initial states, three records": (lambda: observations_from_arrays(T, [U, U, U], initial=[(0,), (1,)]), "there are 2 initial states but 3 experiments; give one for each, or one for all."),
    "one of two": (lambda: observations_from_arrays(T, [U, U[:4]]), "experiment 2: there are 4 values but 10 times; give one value per time, NaN where missing."),
    "smoothing": (lambda: complete(Observation(T, U), 1, "magic"), "the smoothing method is 'magic'; choose from auto, gp, whittaker, spline, mlp."),
    "derivatives asked": (lambda: complete(Observation(T, U), 9), "derivatives up to 9 were asked for; give a whole number from 0 to 4."),
    "samples for the network": (lambda: complete(Observation(T[:4], U[:4]), 1, "mlp"), "mlp takes 5 to 5000 samples but there are 4; use auto or whittaker."),
    "record": (lambda: load_record("lorenz"), "there is no record named 'lorenz'; the records are duffing, impact, growth."),
    "problem": (lambda: problem_named("b9/1"), "there is no problem named 'b9/1'; did you mean b1/01, b1/02, b1/03?"),
}  # fmt: skip

FORCINGS = {
    "of another length": (
        lambda: make_forcing(np.ones(7), T),
        "forcing has 7 samples but t has 10; give a function, a formula, or one value per time.",
    ),
    "unreadable": (
        lambda: make_forcing("cos(", T),
        "the forcing 'cos(' cannot be read: a number, a name or '(' was expected, got 'the end'.",
    ),
    "in u": (lambda: make_forcing("cos(u)", T), "a forcing formula depends on t only, but u stands in it."),
    "with C": (lambda: make_forcing("C*t", T), "a forcing formula has no open constants; write numbers in place of C."),
    "infinite": (
        lambda: make_forcing(changed(U, 1, np.inf), T),
        "forcing samples contain infinite values or times; remove those rows.",
    ),
    "missing": (lambda: make_forcing(U * NAN, T), "forcing has 0 usable samples; at least 2 are needed."),
    "times": (
        lambda: Forcing.from_samples(T[::-1], U),
        "the times of the forcing samples do not increase; sort them and remove duplicates.",
    ),
    "that fails": (
        lambda: make_forcing(lambda t: 1 / 0, T),
        "the forcing function failed (ZeroDivisionError: division by zero); call it on t first.",
    ),
    "not finite": (
        lambda: make_forcing(lambda t: NAN, T),
        "the forcing function is not finite at t = 0; it must be finite on the window.",
    ),
    "neither": (lambda: Forcing(), "a forcing is either a formula or samples; give exactly one of the two."),
    "without a table": (
        lambda: Forcing.from_formula("t").table(),
        "a formula has no table; call sampled(start, stop) first.",
    ),
    "said but not given": (
        lambda: first_error(Observation(T, U), Knowledge(forced=True)),
        "The system is said to be forced but no forcing is given; give one.",
    ),
    "too short": (
        lambda: first_error(Observation(T, U, forcing=Forcing.from_samples(T[:5], U[:5]))),
        "The forcing (5 samples from t = 0 to 0.444444) does not cover the record from t = 0 to 1; extend it or cut the record.",
    ),
    "not finite somewhere": (
        lambda: first_error(Observation(T, U, forcing=Forcing.from_formula("1/t"))),
        "The forcing is not finite at t = 0; correct it there.",
    ),
    "too few samples": (
        lambda: first_error(Observation(T[:6], U[:6])),
        "There are 6 samples in all, too few for any equation; measure at least 25.",
    ),
    "nothing moves": (
        lambda: first_error(Observation(T, U * 0 + 3)),
        "The measured u is constant (3); start away from rest, or excite the system.",
    ),
}

SOLVING = {
    "initial": (
        lambda: solve(Equation.read("u'' = -u"), (1,), T),
        "the initial state has 1 values but the equation is of order 2; give u, u' at the first time.",
    ),
    "no input": (
        lambda: solve(Equation.read("u' = F"), (1,), T),
        "the equation contains the forcing F but none was given; give a formula, samples or a Forcing.",
    ),
    "times": (
        lambda: solve(Equation.read("u' = -u"), (1,), T[::-1]),
        "t must be a list of finite, strictly increasing times.",
    ),
    "system": (
        lambda: solve_system([symbol("x0")], (1, 2), T),
        "the initial state has 2 values but there are 1 equations.",
    ),
    "derivative": (
        lambda: Trajectory(T, np.ones((10, 2))).d2u,
        "derivative 2 was asked of a trajectory that holds derivatives up to 1.",
    ),
    "states": (
        lambda: Trajectory(T, np.ones((9, 2))),
        "t has shape (10,) and states (9, 2); a trajectory needs (N,) and (N, K).",
    ),
    "forcing": (
        lambda: Trajectory(T, np.ones((10, 2)), np.ones(9)),
        "forcing has shape (9,); a trajectory of 10 times needs (10,).",
    ),
}

TABLES = {
    "empty": (table("\n"), "table.csv is empty; give a table with a column of times and a column of values."),
    "header only": (table("t,u\n"), "table.csv has a header but no rows of numbers; add the samples below it."),
    "one column": (table("u\n1\n2\n3\n"), "table.csv has one column; give a column of times and a column of values."),
    "ragged": (
        table("t,u\n0,1\n1\n2,3\n"),
        "line 3 of table.csv has 1 cells but the table has 2 columns; leave a missing cell empty, but keep its delimiter.",
    ),
    "no time": (
        table("a,b\n1,2\n1,1\n1,4\n"),
        "no column of table.csv looks like time; name it, the columns are 'a', 'b'.",
    ),
    "no values": (
        table("t\tu\n0\t\n1\t\n"),
        "table.csv has no column of numbers beside time; give one with the measured values.",
    ),
    "text": (
        table("t,u\n0,1\n1,two\n2,3\n3,4\n4,5\n"),
        "column 'u' of table.csv holds 'two' (line 3), which is not a number; correct it, or leave the cell empty if the value is missing.",
    ),
    "no such column": (
        table("t,u\n0,1\n1,2\n", value="x"),
        "table.csv has no value column 'x'; its columns are 't', 'u'.",
    ),
    "two of a name": (
        table("t,u,u\n0,1,1\n1,2,2\n", value="u"),
        "table.csv has 2 columns named 'u'; give a position instead.",
    ),
    "two roles": (
        table("t,u\n0,1\n1,2\n", value="t", time="t"),
        "column 't' was given two roles; each column has one.",
    ),
    "delimiter": (table("t,u\n0,1\n", delimiter=",,"), "the delimiter is ',,'; give one character."),
    "quotation marks": (
        table('t,u\n0,"1"2\n1,2\n', delimiter=","),
        "the table cannot be split into cells (',' expected after '\"'); check its quotation marks.",
    ),
    "quoted lines": (
        table('t,u\n0,"1\n2"\n1,2\n', delimiter=","),
        "a quoted cell runs over several lines; close every quotation mark on its own line.",
    ),
    "binary": (table(b"t,u\n\0\0\0"), "table.csv is a binary file, not text; export it as CSV."),
    "not UTF-8": (table(b"t,u\n0,\xff\n"), "table.csv is not utf-8 text (byte 7); save it as UTF-8."),
    "long line": (
        table("t,u\n" + "1" * 200_000 + ",2\n"),
        "table.csv has a line of 200,002 characters; this does not look like a table of samples in rows.",
    ),
    "many columns": (
        table(",".join(["0"] * 1001) + "\n" + ",".join(["1"] * 1001) + "\n"),
        "table.csv has 1,001 columns; at most 1,000 are read: put samples in rows, not columns.",
    ),
    "many experiments": (
        table("t,u,run\n" + "".join(f"0,1,{k}\n" for k in range(1001)), experiment="run"),
        "column 'run' names 1,001 experiments; at most 1,000 are read.",
    ),
    "a bad experiment": (
        table("t,u,run\n0,1,a\n1,2,a\n2,3,a\n3,4,a\n0,1,b\n", experiment="run"),
        "experiment 'b': there are 1 samples; at least 3 are needed.",
    ),
    "a directory": (
        lambda: read_observations("run"),
        "run cannot be read (run is a directory; give the file in it that holds the table.); check the name and its permissions.",
    ),
    "a device": (
        lambda: read_observations("/dev/null"),
        "/dev/null cannot be read (/dev/null is not a regular file; give a text file.); check the name and its permissions.",
    ),
    "a bad name": (
        lambda: read_observations("a\0b"),
        "a\u0000b cannot be read (…); check the name and its permissions.",
    ),
    "too large": (
        lambda: read_observations(huge("huge.csv", 300_000_000)),
        "huge.csv cannot be read (huge.csv has 0.3 GB but at most 0.2 GB are read; keep every tenth row or fewer columns.); check the name and its permissions.",
    ),
    "DataFrame": (
        lambda: read_table(pd.DataFrame([[1, 2]], columns=["u", "u"])),
        "the DataFrame has two columns of the same name; rename one.",
    ),
    "array": (
        lambda: read_table(np.zeros(3)),
        "a table has rows and columns but got shape (3,); give times and values as columns.",
    ),
    "empty mapping": (lambda: read_table({}), "the table is empty; give a column of times and a column of values."),
    "lengths": (
        lambda: read_table({"t": [1, 2], "u": [1]}),
        "the columns have different lengths [1, 2]; give one cell per row in each.",
    ),
}

EXPRESSIONS = {
    "": "nothing here; an expression such as 2*u' + u was expected",
    "u = 1": "an expression has no '='; for an equation use read_equation",
    "u)": "a ')' without its '('; remove it",
    "2 u u": "'u' cannot follow here; write * between factors, + or - between terms",
    "1e308*10": "the numbers are too large to compute with; rescale them",
    "1e999": "the number is too large",
    "u & t": "the character '&' is not known here; known are t, F, u, x0, x1, ..., C, pi and the functions sin, cos, exp, log, sqrt, abs, tanh",
    "(u": "')' was expected to close the '(' of character 1, got 'the end'",
    "u^": "a number, a name or '(' was expected, got 'the end'",
    "sin u": "'(' was expected after sin, got 'u'",
    "sin(u": "')' was expected to close sin(, got 'the end'",
    "v": "the name 'v' is not known; known are t, F, u, x0, x1, ..., C, pi and the functions sin, cos, exp, log, sqrt, abs, tanh",
    "u" + "'" * 99: "a derivative of order 99; at most 20 is read",
    "diff(t, t)": "diff takes a state or a derivative of one, such as diff(u, t)",
    "diff(u)": "',' was expected and then t, as in diff(u, t), got ')'",
    "diff(u, u)": "derivatives are with respect to t",
    "diff(u, t, 1.5)": "the order of a derivative is a whole number, got 1.5",
    "du": "'du' must be followed by /dt; or write u'",
    "du/dt^2": "write (du/dt)^n or u'^n, so that it is clear what the power is of",
    "C + C0": "bare C and numbered constants are mixed; number all of them or none",
    "(" * 300 + "u" + ")" * 300: "nested deeper than 64; write it flatter",
    "u" + "^u" * 300: "more than 64 powers on top of each other",
    "u" * 200_000: "the text has 200000 characters; at most 3000 are read",
}

GRAMMARS = {
    "nothing": (
        grammar(""),
        "grammar 'grammar', line 1, column 1: there is no rule: write at least one line 'name -> ...'",
    ),
    "continuation first": (
        grammar("| C*u"),
        "grammar 'grammar', line 2, column 1: this continues a rule, but no rule stands before it: begin with 'name -> ...'",
    ),
    "unfinished": (
        grammar("S -> C*u |"),
        "grammar 'grammar', line 2, column 10: empty alternative: write what stands here, or take the '|' away",
    ),
    "unfinished before a rule": (
        grammar("S -> C*u |\nT -> u"),
        "grammar 'grammar', line 2, column 10: empty alternative: write what stands here, or take the '|' away",
    ),
    "empty in between": (
        grammar("S -> C*u || C"),
        "grammar 'grammar', line 2, column 11: empty alternative: write what stands here, or take the '|' away",
    ),
    "weight alone": (
        grammar("S -> [0.5]"),
        "grammar 'grammar', line 2, column 5: empty alternative: a weight or condition needs a body before it",
    ),
    "setting": (
        grammar("S -> C*u", "templat: explicit"),
        "grammar 'grammar', line 1, column 1: unknown setting 'templat': the settings are name, template, max_length, summand (did you mean 'template'?)",
    ),
    "setting twice": (
        grammar("S -> C*u", "template: explicit\ntemplate: explicit"),
        "grammar 'grammar', line 2, column 1: 'template' is set a second time: keep one of the two lines",
    ),
    "no template": (
        grammar("S -> C*u", ""),
        "grammar 'grammar', line 2, column 1: missing template: write a line 'template: ' with one of explicit, own forcing, given forcing",
    ),
    "template": (
        grammar("S -> C*u", "template: implicit"),
        "grammar 'grammar', line 1, column 11: unknown template 'implicit': it is one of explicit, own forcing, given forcing (did you mean 'explicit'?)",
    ),
    "max_length": (
        grammar("S -> C*u", "template: explicit\nmax_length: long"),
        "grammar 'grammar', line 2, column 13: bad max_length 'long': give a whole number from 1 to 1000",
    ),
    "max_length too small": (
        grammar("S -> T\nT -> u", "template: explicit\nmax_length: 1"),
        "grammar 'grammar', line 2, column 13: max_length is 1 but the shortest sentence takes 2 rules",
    ),
    "name": (
        grammar("S -> C*u", "template: explicit\nname:"),
        "grammar 'grammar', line 2, column 6: the name is empty: write one or take the line away",
    ),
    "summand": (
        grammar("S -> C*u", "template: explicit\nsummand: T"),
        "grammar 'grammar', line 2, column 10: undefined nonterminal 'T' in summand",
    ),
    "no arrow": (
        grammar("S = C*u"),
        "grammar 'grammar', line 2, column 1: missing arrow: a rule reads 'name -> alternative | alternative', a setting 'key: value'",
    ),
    "left-hand side": (
        grammar("2S -> C*u"),
        "grammar 'grammar', line 2, column 1: '2S' cannot be a nonterminal: a name of letters, digits and _ stands before '->'",
    ),
    "left-hand side is a word": (
        grammar("u -> C*u"),
        "grammar 'grammar', line 2, column 1: 'u' is a word of the vocabulary and cannot be a nonterminal: choose another name",
    ),
    "two arrows": (
        grammar("S -> T -> u"),
        "grammar 'grammar', line 2, column 8: a second arrow: begin a new line for each left-hand side",
    ),
    "open bracket": (
        grammar("S -> C*u [0.5"),
        "grammar 'grammar', line 2, column 10: this '[' is never closed: write ']' behind it",
    ),
    "two weights": (
        grammar("S -> C*u [0.5] [0.5]"),
        "grammar 'grammar', line 2, column 16: a second weight for one alternative: keep one",
    ),
    "weight in front": (
        grammar("S -> [0.5] C*u"),
        "grammar 'grammar', line 2, column 12: weights and conditions stand behind the body: move this before them, or write '|'",
    ),
    "weight": (
        grammar("S -> C*u [much]"),
        "grammar 'grammar', line 2, column 10: bad weight 'much': give a finite number that is not negative",
    ),
    "weights": (
        grammar("S -> C*u [0]"),
        "grammar 'grammar', line 2, column 1: bad weights: those of 'S' add up to 0.0; give one that is positive and finite",
    ),
    "condition": (
        grammar("S -> C*u {second}"),
        "grammar 'grammar', line 2, column 10: bad condition 'second': the conditions are 'order 1', 'order 2', ..., 'forced' and 'free', at most one of each kind",
    ),
    "free with F": (
        grammar("S -> C*F {free}"),
        "grammar 'grammar', line 2, column 10: the body uses the forcing F but the condition says 'free': write 'forced'",
    ),
    "no sign": (
        grammar("S -> C u"),
        "grammar 'grammar', line 2, column 8: no sign stands between 'C' and 'u': write '*'",
    ),
    "character": (
        grammar("S -> C*u!"),
        "grammar 'grammar', line 2, column 9: '!' is not a character of equations: write words of the vocabulary, nonterminals and the signs + - * / ^ ( ) ,",
    ),
    "function": (
        grammar("S -> C*sinh(u)"),
        "grammar 'grammar', line 2, column 8: unknown function 'sinh': the functions are sin, cos, exp, log, sqrt, abs, tanh and diff",
    ),
    "variable": (
        grammar("S -> C*w'"),
        "grammar 'grammar', line 2, column 8: unknown variable \"w'\": the states are u, x0, x1, ... with primes, time is t",
    ),
    "nonterminal": (
        grammar("S -> C*u + T"),
        "grammar 'grammar', line 2, column 12: undefined nonterminal or unknown variable 'T': write a rule 'T -> ...', or use a variable (t, u, u', x0, x1, ..., F) or the open constant C",
    ),
    "duplicate": (
        grammar("S -> C*u | C*u"),
        "grammar 'grammar', line 2, column 12: duplicate rule: 'S' has this alternative already; keep one and add the weights",
    ),
    "endless": (
        grammar("S -> C*u | C*u + T\nT -> T + u"),
        "grammar 'grammar', line 2, column 12: this rule can never terminate: give 'T' an alternative that ends",
    ),
    "unreachable": (
        grammar("S -> C*u\nT -> u"),
        "grammar 'grammar', line 3, column 6: unreachable rule: 'S' never leads to 'T'; use it or take it away",
    ),
    "no such file": (
        lambda: load_grammar("nothing.grammar"),
        "no grammar or file is called 'nothing.grammar'; give the path of a file or one of b1, b1_corpus, b2, b2_corpus, b3, b3_corpus, standard.",
    ),
    "no summand": (
        lambda: term_dictionary(read_grammar("template: explicit\nS -> C*u")),
        "grammar 'grammar' names no summand; add a line 'summand: ...' to it.",
    ),
    "nothing remains": (
        lambda: restrict(load_grammar("b1"), forbid=mentions("u", "C")),
        "nothing of grammar 'b1' remains: every sentence needs a rule that order None, forced None or the forbidden rules take away; forbid less or take another grammar.",
    ),
    "no word": (
        lambda: mentions("foo"),
        "'foo' is not a word of equations; name variables, functions, numbers or signs.",
    ),
    "mask": (
        lambda: term_dictionary(load_grammar("b1"), [True]),
        "allowed has shape (1,) but grammar 'b1' has 27 rules; give one truth value per rule, as restrict does.",
    ),
    "sentence with another word": (
        lambda: parse(load_grammar("b1"), "C*w"),
        "'C*w' is not a sentence of grammar 'b1': 'w' at column 3 is not a word of the grammar; spell it as the grammar does.",
    ),
    "sentence with another sign": (
        lambda: parse(load_grammar("b1"), "C!u"),
        "'C!u' is not a sentence of grammar 'b1': '!' is not a character of equations (column 2); spell it as the grammar does.",
    ),
    "sentence out of order": (
        lambda: parse(load_grammar("b1"), "C*)"),
        "'C*)' is not a sentence of grammar 'b1': ')' at column 3 cannot stand there; spell it as the grammar does.",
    ),
    "sentence cut off": (
        lambda: parse(load_grammar("b1"), "C*"),
        "'C*' is not a sentence of grammar 'b1': it ends too early; spell it as the grammar does.",
    ),
}

RECIPES = {
    "no TOML": (recipe("name ="), "recipe.toml is not TOML: …."),
    "key": (
        recipe('name = "a"\ngrammar = "b1"\n[corpus]\nsise = 3'),
        "recipe.toml has a key 'corpus.sise' that no recipe has; the keys there are size, seed, held_out.",
    ),
    "missing": (recipe('name = "a"'), "recipe.toml lacks the key 'grammar'; write it."),
    "value": (recipe('name = "a"\ngrammar = "b1"\n[corpus]\nsize = 3'), "recipe.toml says corpus.size = 3: …."),
    "another corpus": (
        resumed_corpus,
        "'model/work/corpus' holds another corpus than the recipe asks for; train without resuming.",
    ),
    "corpus of another grammar": (
        lambda: of_another_grammar({}),
        "the corpus in 'corpus' belongs to grammar 'other' 0, not to 'b1' …; make it again.",
    ),
    "corpus of another size": (
        lambda: of_another_grammar({"size": 3}),
        "the corpus in 'corpus' has {'derivations': 2, 'order': 2, 'autonomous': 2, 'forced': 2, 'behaviour': 2} rows, not 3; make it again.",
    ),
    "no corpus": (
        lambda: Corpus.load("nowhere"),
        "'nowhere' holds no complete corpus (corpus.json is missing); make it again.",
    ),
}

BUNDLES = {
    "none": (lambda: load_bundle("nowhere"), "no model is called 'nowhere'; give a folder with model.json and weights.safetensors, or one of …"),
    "too large": (lambda: (huge("model/weights.safetensors", 20_000_000), load_bundle("model")), "the model in 'model' is larger than 10000000 bytes; it is not one of ours."),
    "too large to save": (too_large_bundle, "the model takes … bytes, at most 10000000 are allowed; make it smaller."),
    "no JSON": (spoil("model/model.json", "{", lambda _: load_bundle("model")), "model.json in 'model' does not describe a model: JSONDecodeError(…); get it again."),
    "key missing": (edited("model/model.json", lambda f: f.pop("extent"), lambda: load_bundle("model")), "model.json in 'model' does not describe a model: KeyError('extent'); get it again."),
    "format": (edited("model/model.json", lambda f: f.update(format=9), lambda: load_bundle("model")), "the model in 'model' has format 9, this version reads 1; get it again."),
    "bytes": (edited("model/model.json", lambda f: f["weights"].update(bytes=1), lambda: load_bundle("model")), "the model in 'model' has … bytes of weights, 1 are announced; get it again."),
    "hash": (edited("model/model.json", lambda f: f["weights"].update(sha256=""), lambda: load_bundle("model")), "the model in 'model' has weights whose hash is not the announced one; get it again."),
    "fingerprint": (
        edited("model/model.json", lambda f: f.update(fingerprint=""), lambda: load_bundle("model")), "the model in 'model' has a grammar whose fingerprint is not the announced one; get it again."),
    "no safetensors": (weights(lambda data, load, save: b"nothing"), "the model in 'model' has weights that are not safetensors (…); get it again."),
    "another name": (weights(renamed), "the model in 'model' has other weights than its description says, 'another' among them; get it again."),
    "another shape": (weights(reshaped), "the model in 'model' has 'autoencoder.…' of (1,…) torch.float16, expected (…) torch.float16; get it again."),
    "as a model": (lambda: model_named("run"), "no model is called 'run'; give a folder with model.json and weights.safetensors, or one of …"),
}  # fmt: skip

RUNS = {
    "holds one": (lambda: open_run("run", read_question("run")), "run holds a run already; resume it with --resume run, or name another folder."),
    "no folder": (lambda: open_run("data.csv/run", read_question("run")), "the folder data.csv/run cannot be made (Not a directory); name another one."),
    "none": (lambda: read_run("nowhere"), "nowhere holds no run: there is no file run.json in it; name the folder of a run."),
    "not finished": (lambda: (Path("run/equation.json").unlink(), read_run("run")), "the run in run is not finished; resume it with --resume run."),
    "damaged": (edited("run/run.json", lambda f: f.pop("problem"), lambda: read_run("run")), "run.json in run is damaged ('problem'); start the run anew."),
    "damaged settings": (edited("run/run.json", lambda f: f["settings"].pop("fit"), lambda: read_run("run")), "run.json in run is damaged (the settings are those of another version); start the run anew."),
    "another format": (edited("run/run.json", lambda f: f.update(format=9), lambda: read_run("run")), "run/run.json does not describe a run that this version can read; start the run anew."),
    "another version": (
        edited("run/run.json", lambda f: f["versions"].update(lgf="99.0"), lambda: read_question("run", resume=True)),
        "the run in run was made by lgf 99.0 and this is lgf …, which may search otherwise; start it anew.",
    ),
    "not text": (spoil("run/run.json", b"\xff", lambda _: read_run("run")), "run/run.json cannot be read (it is not text); name the folder of a run."),
    "no JSON": (spoil("run/run.json", "{", lambda _: read_run("run")), "run.json in run is damaged (…); start the run anew."),
    "too large": (lambda: (huge("run/run.json", 600_000_000), read_run("run")), "run/run.json is larger than 500,000,000 bytes, so it is not of this program's making."),
    "journal is a folder": (
        lambda: (Path("run/candidates.jsonl").unlink(), Path("run/candidates.jsonl").mkdir(), read_journal("run")),
        "run/candidates.jsonl is not a journal of a run; start the run anew in another folder.",
    ),
    "journal is not text": (spoil("run/candidates.jsonl", b"\xff\n", lambda _: read_journal("run")), "run/candidates.jsonl is not text; start the run anew in another folder."),
    "journal is damaged": (spoil("run/candidates.jsonl", "{}\n", lambda _: Journal(lines=read_journal("run"))), "line 1 of the journal is no candidate (KeyError); remove the line, then resume."),
    "journal cannot be written": (lambda: journal_in("nowhere/candidates.jsonl"), "nowhere/candidates.jsonl cannot be written (No such file or directory); make room for it, then resume the run: what was fitted before is kept."),
    "no room": (lambda: write_atomically(Path("nowhere/run.json"), b""), "nowhere/run.json cannot be written (No such file or directory); make room or name another folder, then resume the run."),
    "another number of experiments": (
        edited("run/equation.json", lambda f: f["best"]["initial"].append([0, 0]), lambda: read_run("run")), "equation.json in run is damaged (initial states for 2 experiments, not 1); start the run anew."),
}  # fmt: skip

CALLS = {
    "estimator": ESTIMATOR,
    "arrays": ARRAYS,
    "forcings": FORCINGS,
    "solving": SOLVING,
    "tables": TABLES,
    "grammars": GRAMMARS,
    "recipes": RECIPES,
    "bundles": BUNDLES,
    "runs": RUNS,
}


@pytest.fixture
def ready(tmp_path, monkeypatch, duffing):
    """An empty folder with a good table, a run, a model, and a few bad files for the command line."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{t},{u}\n" for t, u in zip(np.linspace(0, 3, 30), np.exp(-np.linspace(0, 3, 30)), strict=True))
    Path("data.csv").write_text("t,u\n" + rows)
    Path("flat.csv").write_text("t,u\n" + "".join(f"{k},1\n" for k in range(30)))
    Path("binary.grammar").write_bytes(b"\xff")
    Path("trivial.grammar").write_text("template: given forcing\nS -> C*u\n")
    Path("broken.toml").write_text("name =")
    Path("unknown.toml").write_text('name = "a"\ngrammar = "nothing"\n')
    write_run(duffing, "run")
    shutil.copytree(str(files("lgf").joinpath("models", "b1")), "model")


@pytest.mark.parametrize("line", LINES)
def test_a_command_line_is_answered_by_its_sentence(line, ready, capsys):
    before = sorted(Path().rglob("*"))
    assert main(shlex.split(line)) == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"lgf: {LINES[line]}"
    assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize(("door", "case"), [(door, case) for door, cases in CALLS.items() for case in cases])
def test_a_call_is_answered_by_its_sentence(door, case, ready):
    call, sentence = CALLS[door][case]
    with pytest.raises((ValueError, FileNotFoundError)) as caught:
        call()
    assert str(caught.value).splitlines()[0] == sentence


@pytest.mark.parametrize("text", EXPRESSIONS, ids=lambda text: text[:20])
def test_a_text_is_answered_by_its_sentence(text):
    with pytest.raises(ReadingError) as caught:
        read_expression(text)
    assert caught.value.message == EXPRESSIONS[text]
