"""A trained model in one folder: weights as safetensors in half precision, everything else as JSON.

`model.json` describes the networks. Loading rejects weights of other names, shapes, types or hashes than it says.
Nothing is unpickled.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from lgf.errors import LgfError
from lgf.files import read_bytes
from lgf.grammar import Extent, Grammar
from lgf.paper.autoencoder.autoencoder import Autoencoder, AutoencoderSettings, Design, decode
from lgf.paper.autoencoder.block_autoencoder import BlockAutoencoder
from lgf.paper.flow.denoiser import Denoiser, DenoiserSettings, denoiser_shapes
from lgf.paper.flow.predictor import Predictor, predictor_shapes
from lgf.trained.folders import (
    DAMAGED,
    FACTS,
    LARGEST,
    damaged_model,
    grammar_of,
    is_shipped,
    model_folder,
    no_model,
    undescribed_model,
)
from lgf.trained.layers import Array, Shapes, below, named

FORMAT = 1
_WEIGHTS = "weights.safetensors"
DEEPEST = 64  # most layers of a network
HALF = np.dtype(np.float16)


@dataclass(frozen=True)
class ModelBundle:
    """A grammar and the networks trained on it.

    predictors  static predictors by name: order (class 0 is no equation of order 1 or 2), forced (1 is yes)
    recipe      how it was trained
    metrics     measured quality
    versions    of the package, torch, numpy, python
    """

    name: str
    grammar: Grammar
    settings: AutoencoderSettings
    autoencoder: Autoencoder
    denoiser: Denoiser
    predictors: Mapping[str, Predictor]
    recipe: Mapping[str, Any]
    metrics: Mapping[str, Any]
    seed: int
    versions: Mapping[str, str]


def save_bundle(bundle: ModelBundle, folder: str | Path) -> None:
    """Writes the bundle into the folder; LgfError if it is too large."""
    weights = save({name: value.astype(HALF) for name, value in _weights(bundle).items()})
    extent = bundle.autoencoder.extent if isinstance(bundle.autoencoder, BlockAutoencoder) else None
    facts = {
        "format": FORMAT,
        "name": bundle.name,
        "grammar": bundle.grammar.text,
        "fingerprint": bundle.grammar.fingerprint,
        "autoencoder": _facts(bundle.settings, AutoencoderSettings),
        "extent": extent and asdict(extent),
        "denoiser": _facts(bundle.denoiser.settings, DenoiserSettings),
        "predictors": {name: {"classes": p.classes, "width": p.width} for name, p in bundle.predictors.items()},
        "recipe": bundle.recipe,
        "metrics": bundle.metrics,
        "seed": bundle.seed,
        "versions": bundle.versions,
        "weights": {"bytes": len(weights), "sha256": hashlib.sha256(weights).hexdigest()},
    }
    text = json.dumps(facts, indent=2, ensure_ascii=False) + "\n"
    size = len(weights) + len(text.encode())
    if size > LARGEST:
        raise LgfError(f"the model takes {size} bytes, at most {LARGEST} are allowed; make it smaller.")
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    (path / _WEIGHTS).write_bytes(weights)
    (path / FACTS).write_text(text, encoding="utf-8")


def _facts(settings: Any, kind: type) -> dict[str, Any]:
    """The fields of `kind` in the settings; a recipe has further fields."""
    return {field.name: getattr(settings, field.name) for field in fields(kind)}


def load_bundle(name_or_path: str | Path) -> ModelBundle:
    """The model of that name in the package, or in that folder; LgfError if it is damaged."""
    folder = model_folder(name_or_path)
    if not folder.joinpath(FACTS).is_file() or not folder.joinpath(_WEIGHTS).is_file():
        raise no_model(name_or_path, f"{FACTS} and {_WEIGHTS}")
    facts, weights = (read_bytes(folder.joinpath(name), LARGEST, links=True) for name in (FACTS, _WEIGHTS))
    try:
        bundle = _build(json.loads(facts), weights)
        if not is_shipped(name_or_path):  # for a model of the package this would only make a search start later
            _check_sizes(bundle)
        return bundle
    except LgfError as error:
        raise damaged_model(folder, error) from error
    except DAMAGED as error:
        raise undescribed_model(folder, error) from error


def _build(facts: dict[str, Any], weights: bytes) -> ModelBundle:
    if facts["format"] != FORMAT:
        raise LgfError(f"has format {facts['format']!r}, this version reads {FORMAT}")
    if facts["weights"]["bytes"] != len(weights):
        raise LgfError(f"has {len(weights)} bytes of weights, {facts['weights']['bytes']!r} are announced")
    if facts["weights"]["sha256"] != hashlib.sha256(weights).hexdigest():
        raise LgfError("has weights whose hash is not the announced one")
    grammar = grammar_of(facts)
    deepest = max(facts["autoencoder"]["depth"], facts["denoiser"]["depth"], len(facts["predictors"]))
    if deepest > DEEPEST:
        raise LgfError(f"has {deepest} layers or predictors, at most {DEEPEST} are built")
    extent = facts["extent"] and Extent(**facts["extent"])
    if extent and not all(type(n) is int and 0 <= n <= grammar.max_length for n in asdict(extent).values()):
        raise LgfError("has an extent that no sentence of its grammar has")
    design = Design(grammar, AutoencoderSettings(**facts["autoencoder"]), extent)
    denoiser, layout = DenoiserSettings(**facts["denoiser"]), design.layout
    sizes = {str(name): (p["classes"], p["width"]) for name, p in facts["predictors"].items()}
    shapes = named("autoencoder", design.shapes()) | named("denoiser", denoiser_shapes(layout, denoiser))
    for name, size in sizes.items():
        shapes |= named(f"predictors.{name}", predictor_shapes(layout, *size))
    arrays = _arrays(weights)
    _check(shapes, arrays)
    values = {name: value.astype(np.float32) for name, value in arrays.items()}
    predictors = {name: Predictor(layout, *size, below(values, f"predictors.{name}")) for name, size in sizes.items()}
    return ModelBundle(
        facts["name"], grammar, design.settings, design.with_weights(below(values, "autoencoder")),
        Denoiser(layout, denoiser, below(values, "denoiser")), predictors,
        facts["recipe"], facts["metrics"], facts["seed"], facts["versions"],
    )  # fmt: skip


def _weights(bundle: ModelBundle) -> dict[str, Array]:
    networks = {f"predictors.{name}": predictor for name, predictor in bundle.predictors.items()}
    networks |= {"autoencoder": bundle.autoencoder, "denoiser": bundle.denoiser}
    return {f"{part}.{name}": value for part, network in networks.items() for name, value in network.weights.items()}


def _arrays(weights: bytes) -> dict[str, np.ndarray]:
    try:
        return load(weights)
    except (SafetensorError, KeyError) as error:  # a KeyError for types that NumPy lacks
        raise LgfError(f"has weights that are not safetensors ({str(error)!r})") from error


def _check(expected: Shapes, arrays: dict[str, np.ndarray]) -> None:
    """Raises LgfError unless the arrays are finite and match the networks by name, shape and type."""
    if arrays.keys() != expected.keys():
        odd = sorted(arrays.keys() ^ expected.keys())[0]
        raise LgfError(f"has other weights than its description says, {odd!r} among them")
    for name, shape in expected.items():
        value = arrays[name]
        if value.shape != shape or value.dtype != HALF:
            raise LgfError(f"has {name!r} of {value.shape} {value.dtype}, expected {shape} {HALF}")
        if not np.isfinite(value).all():
            raise LgfError(f"has weights that are not finite, {name!r} among them")


def _check_sizes(bundle: ModelBundle) -> None:
    """Runs the networks on one row of tokens, so that inconsistent sizes fail at loading."""
    tokens, time = np.zeros((1, bundle.autoencoder.layout.tokens), dtype=np.int64), np.zeros(1, dtype=np.float32)
    bundle.denoiser(tokens, time)
    for predictor in bundle.predictors.values():
        predictor(tokens, time)
    decode(bundle.autoencoder, tokens)
