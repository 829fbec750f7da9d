"""Every error that a user can cause is provoked, answered by its sentence in errors.toml, and none is missing there.

Each case runs in a folder of its own with a good table, a finished run and a trained model, which it may spoil.
"""

import json
import re
import shlex
import shutil
import tomllib
from dataclasses import replace
from importlib.resources import files
from itertools import starmap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from benchmarks.problems import problem_named
from tests.spoiling import NAN, T, U, changed

from lgf import LatentGrammarFlow, LgfError, System, fit_files
from lgf.cli import main
from lgf.cli.discovery import write_results
from lgf.data import (
    Knowledge,
    Observation,
    Problem,
    load_record,
    make_forcing,
    observations_from_arrays,
    read_observations,
    read_table,
)
from lgf.equation.skeleton import Skeleton
from lgf.expression.frame import Frame, Variable
from lgf.expression.parse import ReadingError, read_expression
from lgf.files import write_atomically
from lgf.grammar import load_grammar, mentions, read_grammar, restrict
from lgf.language.term_dictionary import term_dictionary
from lgf.paper.bundle import load_bundle, save_bundle
from lgf.paper.corpus import Corpus
from lgf.paper.derivations.parsing import parse
from lgf.paper.training.recipe import load_recipe
from lgf.paper.training.stages import train
from lgf.runs.folder import open_run, read_journal, read_request, read_run, write_run
from lgf.runs.journal import Journal
from lgf.runs.presets import model_named, settings_in
from lgf.runs.request import Request, check_request
from lgf.runs.suggestion import suggest
from lgf.search.loop import SearchSettings
from lgf.search.settings import DiscoverySettings, ProposerShare
from lgf.smoothing.complete import complete
from lgf.solver.forcing import Forcing
from lgf.solver.solve import solve
from lgf.solver.trajectory import Trajectory
from lgf.standard_error import make_console

SENTENCES = tomllib.loads(Path(__file__).with_name("errors.toml").read_text(encoding="utf-8"))


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
    Path("recipe.toml").write_text('name = "small"\ngrammar = "small.grammar"\nseed = 1\n[corpus]\nsize = 10\n')
    Path("small.grammar").write_text("template: explicit\nsummand: T\nS -> T\nT -> C*u | C*u^2 | C*u^3 | C*t | C*u*t\n")
    corpus = Corpus(
        np.zeros((1, 40), np.int16), np.ones(1, np.int8), np.zeros(1, bool),
        np.zeros((1, 256), np.float32),
        {"seed": 0, "size": 1, "fingerprint": load_grammar("small.grammar").fingerprint, "grammar": "small"},
    )  # fmt: skip
    corpus.save("model/work/corpus")
    train("recipe.toml", "model", resume=True)


def of_another_grammar(change):
    corpus = Corpus(
        np.zeros((2, 40), np.int16), np.ones(2, np.int8), np.zeros(2, bool),
        np.zeros((2, 256), np.float32), {"seed": 0, "size": 2, "fingerprint": "0", "grammar": "other"} | change,
    )  # fmt: skip
    corpus.save("corpus")
    Corpus.load("corpus", load_grammar("b1"))


def too_large_bundle():
    bundle = load_bundle("b1")
    bundle.metrics["padding"] = "x" * 100_000_000  # pyright: ignore[reportIndexIssue]
    save_bundle(bundle, "large")


def weights(change):
    """A call that loads the model after its weights were changed, with the new hash announced."""
    import hashlib

    from safetensors.numpy import load, save

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
    tensors[first] = tensors[first][:1]
    return save(tensors)


def infinite(data, load, save):
    tensors = {name: value.copy() for name, value in load(data).items()}
    tensors[sorted(tensors)[0]][0] = float("inf")
    return save(tensors)


def settings(content):
    return spoil("settings.toml", content, lambda name: settings_in(name, DiscoverySettings()))


def fitted(**parameters):
    t = np.linspace(0.0, 3.0, 40)
    return lambda: LatentGrammarFlow(**{"max_evaluations": 1, **parameters}).fit(t, np.exp(-t))


def mixed(*shares, **parameters):
    """An estimator fitted with these (name, share) of proposers."""
    return lambda: fitted(settings=DiscoverySettings(proposers=tuple(starmap(ProposerShare, shares))), **parameters)()


def known(**facts):
    """A problem of which this is known."""
    return Problem((Observation(T, U),), Knowledge(**facts))


def first_error(observation, knowledge=Knowledge()):
    """A discovery on data whose check finds an error."""
    check_request(Request(Problem((observation,), knowledge), load_grammar("standard")))


def huge(name, size):
    """The name of a file that claims this size, with a hole in place of content."""
    with Path(name).open("wb") as file:
        file.truncate(size)
    return name


def sampled_input():
    """The finished run as if its input had been given by samples."""
    request = read_request("run")
    inputs = {name: forcing.sampled(0.0, 30.0) for name, forcing in request.problem.knowledge.inputs.items()}
    known = replace(request.problem.knowledge, inputs=inputs)
    return replace(read_run("run"), request=replace(request, problem=replace(request.problem, knowledge=known)))


def with_hidden_state():
    """The finished run as if a state w had been hidden."""
    request = read_request("run")
    known = replace(request.problem.knowledge, hidden=("w",), order={"u": 2})
    return replace(read_run("run"), request=replace(request, problem=replace(request.problem, knowledge=known)))


def journal_in(path):
    """A journal that keeps a fit in a file of this name."""
    candidate = json.loads(Path("run/candidates.jsonl").read_text().splitlines()[0])
    Journal(Path(path))._append([json.dumps(candidate)])


PLANE = Frame((("x", 1), ("y", 1)))
BOTH = Observation(T, np.stack([U, U], 1), ("x", "y"))
DRIVEN = System.read("x' = y + 2*a; y' = 3*b - x", frame=PLANE.with_inputs(("a", "b")))
LONG = np.linspace(0.0, 3.0, 30)

ESTIMATOR = {
    "seed": fitted(random_state=-1),
    "preset": fitted(preset="fast"),
    "suggest with a hidden state": lambda: suggest(with_hidden_state()),
    "stable": fitted(stable="yes"),
    "functions": fitted(functions=("sinh",)),
    "predict before the record": lambda: LatentGrammarFlow.load("run").predict([-1.0, 0.0]),
    "score": lambda: LatentGrammarFlow.load("run").score([0.0, 1.0], [1.0]),
    "simulate without the input": lambda: sampled_input().simulate([0.0, 1.0], (0.0, 0.0)),
    "initial state that is not finite": lambda: LatentGrammarFlow.load("run").simulate([0.0, 1.0], (NAN, 0.0)),
    "forcing of a free system": lambda: (
        LatentGrammarFlow(order=1, max_evaluations=3)
        .fit(np.linspace(0, 4, 40), np.exp(-np.linspace(0, 4, 40)))
        .simulate([0.0, 1.0], 1.0, forcing="t")
    ),
    "simulate at no times": lambda: LatentGrammarFlow.load("run").simulate([1.0, 0.0], (0.0, 0.0)),
    "no Forcing known": lambda: Knowledge(inputs={"F": "sin(t)"}),
    "forced and unforced": lambda: Knowledge(forced=False, inputs={"F": Forcing.from_formula("t")}),
    "order": lambda: Knowledge(order=0),
    "bounds that are none": lambda: Knowledge(bounds=[1]),
    "bounds in other words": lambda: Knowledge(bounds={"u": "large"}),
    "bounds of one number": lambda: Knowledge(bounds={"u": (1,)}),
    "bounds the wrong way": lambda: Knowledge(bounds={"u": (1, 0)}),
    "a term that is none": lambda: Knowledge(required=("",)),
    "a term unreadable": lambda: known(required=("u^",)),
    "terms that are no text": lambda: Knowledge(required=(3,)),
    "variables": lambda: known(variables=("v",)),
    "settings": fitted(settings={}),
    "settings out of range": fitted(settings=DiscoverySettings(search=SearchSettings(population=0))),
    "jobs": fitted(n_jobs=0),
    "evaluations": fitted(max_evaluations="many"),
    "model": fitted(model=3),
    "initial equations": fitted(initial_equations=3),
    "initial equations that are no text": fitted(initial_equations=[3]),
    "bounds without end": lambda: Knowledge(bounds={"u": (0, 10**400)}),
    "inputs that are none": lambda: Knowledge(inputs=3),
    "a table of truths": lambda: Knowledge(stable=np.ones(2)),
    "knowledge that is none, and more": lambda: LatentGrammarFlow(3, order=1),
    "seconds without end": fitted(max_seconds=10**400),
    "folder with a null byte": lambda: LatentGrammarFlow.load("run").save("a\0b"),
    "folder that is none": lambda: LatentGrammarFlow.load("run").save(None),
    "times without end": lambda: LatentGrammarFlow.load("run").predict([10**400]),
    "samples that are none": lambda: LatentGrammarFlow.load("run").suggest(samples="a"),
    "samples without end": lambda: LatentGrammarFlow.load("run").suggest(samples=10**12),
    "forcings that are none": lambda: LatentGrammarFlow.load("run").suggest(forcings=3),
    "no files": lambda: fit_files(LatentGrammarFlow(), [], "out"),
    "files that are none": lambda: fit_files(LatentGrammarFlow(), 3, "out"),
    "folder of files that is none": lambda: fit_files(LatentGrammarFlow(), "data.csv", None),
    "seed of files": lambda: fit_files(LatentGrammarFlow(random_state="a"), "data.csv", "out"),
    "initial equations of files": lambda: fit_files(LatentGrammarFlow(initial_equations=[3]), "data.csv", "out"),
    "renamed argument": fitted(seed=3),
    "no such knowledge": fitted(ordre=2),
    "knowledge that is none": fitted(knowledge={"order": 2}),
    "times that are text": lambda: LatentGrammarFlow.load("run").predict("soon"),
    "no such experiment": lambda: LatentGrammarFlow.load("run").predict([0.0, 1.0], experiment=3),
    "proposers that are none": fitted(proposers=3),
    "proposer without a share": fitted(proposers={"mine": lambda *_: None}),
    "proposer of the package": fitted(proposers={"evolution": lambda *_: None}),
    "no such proposer": mixed(("mine", 1.0)),
    "no proposers": mixed(),
    "proposer twice": mixed(("flow", 1.0), ("flow", 2.0)),
    "no proposer that can": mixed(("mine", 1.0), proposers={"mine": lambda *_: None}),
    "no variables": lambda: Knowledge(variables=()),
}

ARRAYS = {
    "rows and columns exchanged": lambda: observations_from_arrays(T, np.stack([U, U]), states=["x", "y"]),
    "columns of different lengths": lambda: observations_from_arrays(T, {"x": U, "y": U[:9]}),
    "one number for each column": lambda: observations_from_arrays(T, {"u": 3}),
    "whole numbers without end": lambda: observations_from_arrays(T, [10**400] * 10),
    "states that are none": lambda: observations_from_arrays(T, U, states=3),
    "a derivative by name": lambda: LatentGrammarFlow().fit(T, U, derivative="a"),
    "a state named t": lambda: observations_from_arrays(T, np.stack([U, U], 1), states=["x", "t"]),
    "a derivative of another state": lambda: observations_from_arrays(T, U, derivative={"x": 1}),
    "more states than supported": lambda: Problem(observations_from_arrays(T, np.stack([U] * 7, 1))),
    "fewer values": lambda: Observation(T, U[:-1]),
    "three dimensions": lambda: Observation(T, np.zeros((10, 1, 1))),
    "times in columns": lambda: Observation(T[:, None], U),
    "text": lambda: Observation(T, ["a"] * 10),
    "complex": lambda: Observation(T, U + 1j),
    "time back": lambda: Observation(T[::-1], U),
    "time twice": lambda: Observation(changed(T, 4, T[3]), U),
    "time missing": lambda: Observation(changed(T, 3, NAN), U),
    "values missing": lambda: Observation(T, U * NAN),
    "infinite": lambda: Observation(T, changed(U, 2, np.inf)),
    "absurd": lambda: Observation(T, changed(U, 2, 1e200)),
    "values vanishing": lambda: Observation(T, 1e-300 * U),
    "times vanishing": lambda: Observation(1e-300 * T, U),
    "times absurd": lambda: Observation(1e300 * T, U),
    "times too close": lambda: Observation(changed(T, 1, 1e-300), U),
    "many samples": lambda: Problem((Observation(np.arange(200_001.0), np.ones(200_001)),)),
    "one sample": lambda: Observation(T[:1], U[:1]),
    "derivative": lambda: Observation(T, U, (Variable("u", 9),)),
    "derivatives": lambda: observations_from_arrays(T, U, derivative=(0, 1)),
    "columns": lambda: Observation(T, U, ("u", "u'")),
    "derivative twice": lambda: Observation(T, np.stack([U, U], 1), ("u'", "u'")),
    "weights negative": lambda: Observation(T, U, weights=-np.ones(10)),
    "weights of another shape": lambda: Observation(T, U, weights=np.ones(9)),
    "weights zero": lambda: Observation(T, U, weights=np.zeros(10)),
    "initial not finite": lambda: Observation(T, U, initial=(np.inf,)),
    "initial empty": lambda: Observation(T, U, initial=()),
    "no Forcing": lambda: Observation(T, U, inputs={"F": "sin(t)"}),
    "no experiment": lambda: Problem(()),
    "measured beyond the order": lambda: Problem((Observation(T, U, ("u''",)),), Knowledge(order=1)),
    "initial beyond the order": lambda: Problem((Observation(T, U, initial=(1, 2)),), Knowledge(order=1)),
    "input where there is none": lambda: Problem(
        (Observation(T, U, inputs={"F": Forcing.from_formula("t")}),), Knowledge(forced=False)
    ),
    "several times": lambda: observations_from_arrays([T, T], U),
    "two times, three records": lambda: observations_from_arrays([T, T], [U, U, U]),
    "two initial states, three records": lambda: observations_from_arrays(T, [U, U, U], initial=[(0,), (1,)]),
    "one of two": lambda: observations_from_arrays(T, [U, U[:4]]),
    "smoothing": lambda: complete(Observation(T, U), Frame((("u", 1),)), "magic"),
    "derivatives asked": lambda: complete(Observation(T, U), Frame((("u", 9),))),
    "samples for the network": lambda: complete(Observation(T[:4], U[:4]), Frame((("u", 1),)), "mlp"),
    "record": lambda: load_record("lorenz"),
    "problem": lambda: problem_named("b9/1"),
}

FORCINGS = {
    "of another length": lambda: make_forcing(np.ones(7), T),
    "unreadable": lambda: make_forcing("cos(", T),
    "in u": lambda: make_forcing("cos(u)", T),
    "with C": lambda: make_forcing("C*t", T),
    "infinite": lambda: make_forcing(changed(U, 1, np.inf), T),
    "missing": lambda: make_forcing(U * NAN, T),
    "too large": lambda: make_forcing(1e80 * U, T),
    "times": lambda: Forcing.from_samples(T[::-1], U),
    "that fails": lambda: make_forcing(lambda t: 1 / 0, T),
    "not finite": lambda: make_forcing(lambda t: NAN, T),
    "neither": lambda: Forcing(),
    "said but not given": lambda: first_error(Observation(T, U), Knowledge(forced=True)),
    "too short": lambda: first_error(Observation(T, U, inputs={"F": Forcing.from_samples(T[:5], U[:5])})),
    "not finite somewhere": lambda: first_error(Observation(T, U, inputs={"F": Forcing.from_formula("1/t")})),
    "too few samples": lambda: first_error(Observation(T[:4], U[:4])),
    "nothing moves": lambda: first_error(Observation(T, U * 0 + 3)),
}

SOLVING = {
    "initial": lambda: solve(System.read("u'' = -u"), (1,), T),
    "no input": lambda: solve(System.read("u' = F"), (1,), T),
    "times": lambda: solve(System.read("u' = -u"), (1,), T[::-1]),
    "system": lambda: solve(System.read("x' = y; y' = -x"), (1,), T),
    "initial by name": lambda: solve(System.read("x' = y; y' = -x"), {"x": 1}, T),
    "initial of another name": lambda: solve(System.read("x' = y; y' = -x"), {"x": 1, "z": 1}, T),
    "one of two inputs": lambda: solve(DRIVEN, {"x": 1, "y": 1}, T, {"a": Forcing.from_formula("t")}),
    "an input without a name": lambda: solve(DRIVEN, {"x": 1, "y": 1}, T, "t"),
    "derivative": lambda: Trajectory(T, np.ones((10, 2)), Frame((("u", 1),)).columns).d2u,
    "states": lambda: Trajectory(T, np.ones((9, 2)), Frame((("u", 1),)).columns),
    "inputs": lambda: Trajectory(T, np.ones((10, 2)), Frame((("u", 1),)).columns, {"F": np.ones(9)}),
}

SYSTEMS = {
    "many states": lambda: Frame(tuple((f"x{k}", 1) for k in range(7))),
    "no state": lambda: Frame(()),
    "one name twice": lambda: Frame((("x", 1),), ("x",)),
    "reserved": lambda: Frame((("sin", 1),)),
    "constant": lambda: Frame((("C3", 1),)),
    "a name with a blank": lambda: Frame((("x y", 1),)),
    "order": lambda: Frame((("x", 5),)),
    "no variable": lambda: Variable.read("2x'"),
    "another variable": lambda: PLANE.variable("x''"),
    "one equation for two states": lambda: Skeleton.read("x' = y", PLANE),
    "other left sides": lambda: Skeleton.read("x' = y; x' = x", PLANE),
    "two states in one equation": lambda: Skeleton.read("x0' + x1' = 0"),
    "another order": lambda: Skeleton.read("u' = u", Frame((("u", 2),))),
    "names of states": lambda: observations_from_arrays(T, np.stack([U, U], 1), states=["a"]),
    "initial of another state": lambda: Problem((replace(BOTH, initial={"z": 1.0}),)),
    "order of another state": lambda: Problem((BOTH,), Knowledge(order={"z": 1})),
    "operator form": lambda: DRIVEN.operator_form(),
}

TABLES = {
    "empty": table("\n"),
    "header only": table("t,u\n"),
    "one column": table("u\n1\n2\n3\n"),
    "ragged": table("t,u\n0,1\n1\n2,3\n"),
    "no time": table("a,b\n1,2\n1,1\n1,4\n"),
    "no values": table("t\tu\n0\t\n1\t\n"),
    "text": table("t,u\n0,1\n1,two\n2,3\n3,4\n4,5\n"),
    "no such column": table("t,u\n0,1\n1,2\n", value="x"),
    "two of a name": table("t,u,u\n0,1,1\n1,2,2\n", value="u"),
    "two roles": table("t,u\n0,1\n1,2\n", value="t", time="t"),
    "transposed": table("t,0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8\nu,1,2,3,4,5,6,7,8,9\n"),
    "decimal commas": table("t,u\n0,0,1,5\n0,1,2,5\n0,2,3,5\n"),
    "short clock": table("t,u\n8:00,1\n8:01,2\n"),
    "bad clock": table("t,u\n8:00:00,1\nnoon,2\n"),
    "day or month": table("t,u\n3/5/2026,1\n4/5/2026,2\n5/6/2026,3\n"),
    "no date": table("t,u\n3.5.2026,1\n4.5.26,2\n"),
    "not of the calendar": table("t,u\n30.1.2026,1\n31.2.2026,2\n"),
    "delimiter": table("t,u\n0,1\n", delimiter=",,"),
    "quotation marks": table('t,u\n0,"1"2\n1,2\n', delimiter=","),
    "quoted lines": table('t,u\n0,"1\n2"\n1,2\n', delimiter=","),
    "binary": table(b"t,u\n\0\0\0"),
    "not UTF-8": table(b"t,u\n0,\x81\n"),
    "long line": table("t,u\n" + "1" * 200_000 + ",2\n"),
    "many columns": table(",".join(["0"] * 1001) + "\n" + ",".join(["1"] * 1001) + "\n"),
    "many cells": table("t,u,v,w,x\n" + "0,1,2,3,4\n" * 1_000_000),
    "many experiments": table("t,u,run\n" + "".join(f"0,1,{k}\n" for k in range(1001)), experiment="run"),
    "a bad experiment": table("t,u,run\n0,1,a\n1,2,a\n0,1,b\n", experiment="run"),
    "a directory": lambda: read_observations("run"),
    "a device": lambda: read_observations("/dev/null"),
    "a bad name": lambda: read_observations("a\0b"),
    "too large": lambda: read_observations(huge("huge.csv", 300_000_000)),
    "DataFrame": lambda: read_table(pd.DataFrame([[1, 2]], columns=["u", "u"])),
    "array": lambda: read_table(np.zeros(3)),
    "empty mapping": lambda: read_table({}),
    "lengths": lambda: read_table({"t": [1, 2], "u": [1]}),
}


GRAMMARS = {
    "nothing": grammar(""),
    "continuation first": grammar("| C*u"),
    "too long": grammar(" " * 1_000_000, "template: explicit"),
    "too many words": grammar("S -> u" + " + u" * 3_000),
    "unfinished": grammar("S -> C*u |"),
    "unfinished before a rule": grammar("S -> C*u |\nT -> u"),
    "empty in between": grammar("S -> C*u || C"),
    "weight alone": grammar("S -> [0.5]"),
    "setting": grammar("S -> C*u", "templat: explicit"),
    "setting twice": grammar("S -> C*u", "template: explicit\ntemplate: explicit"),
    "no template": grammar("S -> C*u", ""),
    "template": grammar("S -> C*u", "template: implicit"),
    "max_length": grammar("S -> C*u", "template: explicit\nmax_length: long"),
    "max_length too small": grammar("S -> T\nT -> u", "template: explicit\nmax_length: 1"),
    "name": grammar("S -> C*u", "template: explicit\nname:"),
    "summand": grammar("S -> C*u", "template: explicit\nsummand: T"),
    "no arrow": grammar("S = C*u"),
    "left-hand side": grammar("2S -> C*u"),
    "left-hand side is a word": grammar("u -> C*u"),
    "two arrows": grammar("S -> T -> u"),
    "open bracket": grammar("S -> C*u [0.5"),
    "two weights": grammar("S -> C*u [0.5] [0.5]"),
    "weight in front": grammar("S -> [0.5] C*u"),
    "weight": grammar("S -> C*u [much]"),
    "weights": grammar("S -> C*u [0]"),
    "condition": grammar("S -> C*u {second}"),
    "free with F": grammar("S -> C*F {free}"),
    "no sign": grammar("S -> C u"),
    "character": grammar("S -> C*u!"),
    "function": grammar("S -> C*sinh(u)"),
    "variable": grammar("S -> C*w'"),
    "nonterminal": grammar("S -> C*u + T"),
    "duplicate": grammar("S -> C*u | C*u"),
    "endless": grammar("S -> C*u | C*u + T\nT -> T + u"),
    "unreachable": grammar("S -> C*u\nT -> u"),
    "no such file": lambda: load_grammar("nothing.grammar"),
    "no summand": lambda: term_dictionary(read_grammar("template: explicit\nS -> C*u")),
    "nothing remains": lambda: restrict(load_grammar("b1"), forbid=mentions("u", "C")),
    "no word": lambda: mentions("foo"),
    "mask": lambda: term_dictionary(load_grammar("b1"), [True]),
    "sentence with another word": lambda: parse(load_grammar("b1"), "C*w"),
    "sentence with another sign": lambda: parse(load_grammar("b1"), "C!u"),
    "sentence out of order": lambda: parse(load_grammar("b1"), "C*)"),
    "sentence cut off": lambda: parse(load_grammar("b1"), "C*"),
}

RECIPES = {
    "no TOML": recipe("name ="),
    "key": recipe('name = "a"\ngrammar = "b1"\n[corpus]\nsise = 3'),
    "missing": recipe('name = "a"'),
    "value": recipe('name = "a"\ngrammar = "b1"\n[corpus]\nsize = 3'),
    "too long": recipe(" " * 10_001),
    "grammar of a long name": recipe(f'name = "a"\ngrammar = "{"x" * 300}"'),
    "another corpus": resumed_corpus,
    "corpus of another grammar": lambda: of_another_grammar({}),
    "corpus of another size": lambda: of_another_grammar({"size": 3}),
    "no corpus": lambda: Corpus.load("nowhere"),
}

BUNDLES = {
    "none": lambda: load_bundle("nowhere"),
    "too large": lambda: (huge("model/weights.safetensors", 200_000_000), load_bundle("model")),
    "too large to save": too_large_bundle,
    "no JSON": spoil("model/model.json", "{", lambda _: load_bundle("model")),
    "key missing": edited("model/model.json", lambda f: f.pop("extent"), lambda: load_bundle("model")),
    "format": edited("model/model.json", lambda f: f.update(format=9), lambda: load_bundle("model")),
    "bytes": edited("model/model.json", lambda f: f["weights"].update(bytes=1), lambda: load_bundle("model")),
    "hash": edited("model/model.json", lambda f: f["weights"].update(sha256=""), lambda: load_bundle("model")),
    "fingerprint": edited("model/model.json", lambda f: f.update(fingerprint=""), lambda: load_bundle("model")),
    "no safetensors": weights(lambda data, load, save: b"nothing"),
    "another name": weights(renamed),
    "another shape": weights(reshaped),
    "not finite": weights(infinite),
    "extent": edited("model/model.json", lambda f: f["extent"].update(summands=10**6), lambda: load_bundle("model")),
    "too deep": edited("model/model.json", lambda f: f["denoiser"].update(depth=1000), lambda: load_bundle("model")),
    "as a model": lambda: model_named("run"),
}

SETTINGS = {
    "no TOML": settings("search ="),
    "too long": settings(" " * 10_001),
    "key": settings("enumerated = 2"),
    "key in a table": settings("[flow]\nstep = 3"),
    "key in a list": settings('[[proposers]]\nname = "flow"\nshares = 1'),
    "key missing": settings('[[proposers]]\nname = "flow"'),
    "type": settings('[search]\npopulation = "many"'),
    "yes for a number": settings("[search]\npopulation = true"),
    "a date": settings("[search]\npopulation = 2026-01-01"),
    "no table": settings("search = 3"),
    "another word": settings('[fit]\nmethod = "simplex"'),
    "range": settings("[flow]\neta = -1"),
    "not finite": settings("[fit]\nrtol = inf"),
    "too many digits": settings(f"[search]\npopulation = 0x{'f' * 9000}"),
    "proposers": settings("proposers = []"),
}

RUNS = {
    "holds one": lambda: open_run("run", read_request("run")),
    "no folder": lambda: open_run("data.csv/run", read_request("run")),
    "none": lambda: read_run("nowhere"),
    "not finished": lambda: (Path("run/equation.json").unlink(), read_run("run")),
    "damaged": edited("run/run.json", lambda f: f["request"].pop("problem"), lambda: read_run("run")),
    "damaged settings": edited(
        "run/run.json", lambda f: f["request"]["settings"].update(magic=1), lambda: read_run("run")
    ),
    "another format": edited("run/run.json", lambda f: f.update(format=9), lambda: read_run("run")),
    "another version": edited(
        "run/run.json", lambda f: f["versions"].update(lgf="99.0"), lambda: read_request("run", resume=True)
    ),
    "not text": spoil("run/run.json", b"\xff", lambda _: read_run("run")),
    "no JSON": spoil("run/run.json", "{", lambda _: read_run("run")),
    "too large": lambda: (huge("run/run.json", 600_000_000), read_run("run")),
    "journal is a folder": lambda: (
        Path("run/candidates.jsonl").unlink(),
        Path("run/candidates.jsonl").mkdir(),
        read_journal("run"),
    ),
    "journal is not text": spoil("run/candidates.jsonl", b"\xff\n", lambda _: read_journal("run")),
    "journal is damaged": spoil("run/candidates.jsonl", "{}\n", lambda _: Journal(lines=read_journal("run"))),
    "journal cannot be written": lambda: journal_in("nowhere/candidates.jsonl"),
    "answer cannot be written": lambda: (
        Path("run/front.csv").unlink(),
        Path("run/front.csv").mkdir(),
        write_results(read_run("run"), Path("run"), False, make_console()),
    ),
    "no room": lambda: write_atomically(Path("nowhere/run.json"), b""),
    "another number of experiments": edited(
        "run/equation.json", lambda f: f["best"]["fit"]["initial"].append([0, 0]), lambda: read_run("run")
    ),
}

READING = {
    "deep": lambda: read_expression("(" * 300 + "u" + ")" * 300),
    "powers": lambda: read_expression("u" + "^u" * 300),
    "long": lambda: read_expression("u" * 200_000),
    "primes": lambda: read_expression("u" + "'" * 99),
}

CALLS = {
    "reading": READING,
    "estimator": ESTIMATOR,
    "arrays": ARRAYS,
    "forcings": FORCINGS,
    "solving": SOLVING,
    "systems": SYSTEMS,
    "tables": TABLES,
    "grammars": GRAMMARS,
    "recipes": RECIPES,
    "settings": SETTINGS,
    "bundles": BUNDLES,
    "runs": RUNS,
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory, duffing):
    """A folder with a good table, a run, a model, and a few bad files for the command line."""
    folder = tmp_path_factory.mktemp("prepared") / "folder"
    write_run(duffing, folder / "run")
    shutil.copytree(str(files("lgf").joinpath("models", "b1")), folder / "model")
    rows = "".join(f"{t},{u}\n" for t, u in zip(np.linspace(0, 3, 30), np.exp(-np.linspace(0, 3, 30)), strict=True))
    folder.joinpath("data.csv").write_text("t,u\n" + rows)
    t = np.linspace(0, 5, 40)
    two = {"t": t, "x": np.exp(-t), "y": 1 - 0.3 * np.exp(-t)}
    pd.DataFrame(two).to_csv(folder / "two.csv", index=False)
    pd.DataFrame(two | {"c": 3.0}).to_csv(folder / "constant.csv", index=False)
    pd.DataFrame({"t": t} | {f"x{k}": np.sin(t + k) for k in range(7)}).to_csv(folder / "seven.csv", index=False)
    folder.joinpath("flat.csv").write_text("t,u\n" + "".join(f"{k},1\n" for k in range(30)))
    folder.joinpath("binary.grammar").write_bytes(b"\xff")
    folder.joinpath("trivial.grammar").write_text("template: given forcing\nS -> C*u\n")
    folder.joinpath("one.grammar").write_text("template: explicit\nS -> C*u\n")
    folder.joinpath("one.toml").write_text('name = "a"\ngrammar = "one.grammar"\n')
    folder.joinpath("heads.toml").write_text('name = "a"\ngrammar = "b1"\n[denoiser]\nheads = 3\n')
    folder.joinpath("broken.toml").write_text("name =")
    folder.joinpath("unknown.toml").write_text('name = "a"\ngrammar = "nothing"\n')
    return folder


@pytest.fixture
def ready(prepared, tmp_path, monkeypatch):
    """A copy of that folder, to be in and to spoil."""
    shutil.copytree(prepared, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")


def says(said, sentence):
    """Whether it is that sentence, an ellipsis in it standing for anything."""
    return re.fullmatch(".*".join(map(re.escape, sentence.split("…"))), said) is not None


@pytest.mark.parametrize(("door", "line"), [("lines", line) for line in SENTENCES["lines"]])
def test_a_command_line_is_answered_by_its_sentence(door, line, ready, capsys):
    before = sorted(Path().rglob("*"))
    assert main(shlex.split(line)) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert says(said, f"lgf: {SENTENCES[door][line]}"), said
    assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize(("door", "case"), [(door, case) for door, cases in CALLS.items() for case in cases])
def test_a_call_is_answered_by_its_sentence(door, case, ready):
    with pytest.raises(LgfError) as caught:
        CALLS[door][case]()
    said = str(caught.value).splitlines()[0]
    assert says(said, SENTENCES[door][case]), said


@pytest.mark.parametrize("text", SENTENCES["expressions"])
def test_a_text_is_answered_by_its_sentence(text):
    with pytest.raises(ReadingError) as caught:
        read_expression(text)
    assert says(caught.value.message, SENTENCES["expressions"][text]), caught.value.message


X = "x" * 200
LONG_LINES = (
    f"discover data.csv --start {X}",
    f"discover data.csv --forcing {X}",
    f"discover data.csv --initial {X}",
    f"discover data.csv --preset {X}",
    f"discover data.csv --model {X}",
    f"discover data.csv --value {X}",
    f"discover data.csv --functions {X}",
    f"discover data.csv --require {X}",
    f"discover data.csv --bounds {X}",
    f"discover data.csv --bounds u={X}",
    f"simulate run --initial {X}",
    f"models show standard {X}",
)
LONG_CALLS = {
    "cell": table(f"t,u\n0,1\n1,{X}\n2,3\n3,4\n4,5\n"),
    "column": table(f"t,{X}\n0,1\n1,2\n", value="y"),
    "experiment": table(f"t,u,run\n0,1,{X}\n", experiment="run"),
    "nonterminal": grammar(f"S -> C*u + {X}"),
    "setting": grammar("S -> C*u", f"template: {X}"),
    "sentence": lambda: parse(load_grammar("b1"), f"C*{X}"),
    "key": recipe(f'name = "a"\ngrammar = "b1"\n{X} = 3'),
    "record": lambda: load_record(X),
}


@pytest.mark.parametrize("line", LONG_LINES)
def test_a_command_line_that_is_long_is_not_repeated_in_full(line, ready, capsys):
    assert main(shlex.split(line)) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert "x...x" in said
    assert len(said) < 300


@pytest.mark.parametrize("case", LONG_CALLS)
def test_a_text_that_is_long_is_not_repeated_in_full(case, ready):
    with pytest.raises(ValueError, match=r"x\.\.\.x") as caught:
        LONG_CALLS[case]()
    assert len(str(caught.value).splitlines()[0]) < 300


def test_every_sentence_has_its_case():
    doors = {door: set(cases) for door, cases in SENTENCES.items() if door not in ("lines", "expressions")}
    assert doors == {door: set(cases) for door, cases in CALLS.items()}
