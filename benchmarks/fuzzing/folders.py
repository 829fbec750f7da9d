"""Hostile folders, file by file: runs and model bundles of which some files were changed."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from random import Random

import numpy as np

from benchmarks.fuzzing.mutating import mutated_bytes, mutated_json
from lgf.data import Knowledge, Problem, observations_from_arrays
from lgf.grammar import GrammarError, load_grammar, read_grammar
from lgf.runs.folder import JOURNAL, write_run
from lgf.runs.request import Request, execute
from lgf.search.loop import SearchSettings
from lgf.search.select import SelectionSettings
from lgf.search.settings import DiscoverySettings

Folder = Mapping[str, bytes]


def write_small_run(folder: Path) -> None:
    """Makes a run of two experiments and few evaluations in the folder."""
    t = np.linspace(0.0, 4.0, 20)
    rng = np.random.default_rng(1)
    records = [a * np.exp(-0.5 * t) + 0.01 * rng.normal(size=20) for a in (2.0, 3.0)]
    known = Knowledge(order=1, autonomous=True, bounds={"u": (-9, 0)})
    settings = DiscoverySettings(
        search=SearchSettings(first=10, max_evaluations=12), selection=SelectionSettings(n_finalists=2)
    )
    problem = Problem(observations_from_arrays(t, records, forcing="sin(t)"), known)
    write_run(execute(Request(problem, load_grammar("standard"), settings, start=("u' = C*u + F",))), folder)


def contents(folder: Path, names: tuple[str, ...]) -> Folder:
    """The bytes of these files by name."""
    return {name: folder.joinpath(name).read_bytes() for name in names}


def write(files: Folder, folder: Path) -> None:
    """Writes the files into the folder, which has no others."""
    folder.mkdir(exist_ok=True)
    for name, data in files.items():
        folder.joinpath(name).write_bytes(data)


def run_folder(rng: Random, sound: Folder) -> Folder:
    """The run with its request, its journal or its answer changed."""
    name = rng.choice(("run.json", "run.json", "equation.json", "equation.json", JOURNAL))
    chance = rng.random()
    if chance < 0.15:
        return {**sound, name: mutated_bytes(rng, sound[name])}
    if name != JOURNAL:
        return {**sound, name: mutated_json(rng, json.loads(sound[name]))}
    lines = sound[name].splitlines()
    at = rng.randrange(len(lines))
    lines[at] = mutated_json(rng, json.loads(lines[at]))
    return {**sound, name: b"\n".join(lines) + b"\n"}


def bundle_folder(rng: Random, sound: Folder) -> Folder:
    """The bundle with its description or its weights changed; half of them with hashes that fit again."""
    facts, weights = sound["model.json"], sound["weights.safetensors"]
    kind = rng.randrange(10)
    if kind < 6:
        facts = mutated_json(rng, json.loads(facts))
    elif kind == 6:
        facts = mutated_bytes(rng, facts)
    elif kind == 7:
        weights = mutated_bytes(rng, weights)
    else:  # the header of safetensors: eight bytes of its length, then JSON
        size = 8 + int.from_bytes(weights[:8], "little")
        header = weights[8:size]
        header = mutated_json(rng, json.loads(header)) if kind == 8 else mutated_bytes(rng, header)
        weights = len(header).to_bytes(8, "little") + header + weights[size:]
    return {"model.json": _fitting(facts, weights) if rng.random() < 0.5 else facts, "weights.safetensors": weights}


def _fitting(description: bytes, weights: bytes) -> bytes:
    """The description with the hashes that these weights and its grammar have, where it can still be read."""
    try:
        facts = json.loads(description)
        facts["weights"] = {"bytes": len(weights), "sha256": hashlib.sha256(weights).hexdigest()}
        facts["fingerprint"] = read_grammar(facts["grammar"]).fingerprint
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, GrammarError):
        return description
    return json.dumps(facts).encode()
