"""The conditional flow of a model: one file beside the other weights, in half precision, with its description inside.

Loading rejects weights of other names, shapes or types than the description says. Nothing is unpickled.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from lgf.errors import LgfError
from lgf.files import read_bytes
from lgf.grammar import Grammar
from lgf.trained.folders import LARGEST, model_folder
from lgf.trained.rule_flow import RuleFlow, RuleFlowSettings, rule_flow_shapes

FILE = "conditional.safetensors"


def save_rule_flow(flow: RuleFlow, folder: str | Path, facts: Mapping[str, Any]) -> None:
    """Writes the flow into the folder of its model; `facts` say how it was trained and how good it is."""
    about = {"settings": asdict(flow.settings), "fingerprint": flow.grammar.fingerprint, **facts}
    weights = {name: value.astype(np.float16) for name, value in flow.weights.items()}
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    (path / FILE).write_bytes(save(weights, {"about": json.dumps(about)}))


def load_rule_flow(name_or_path: str | Path, grammar: Grammar) -> RuleFlow | None:
    """The conditional flow of the model of that name in the package, or in that folder.

    None if the model has none, or if it is one of another grammar; LgfError if it is damaged.
    """
    folder = model_folder(name_or_path)
    file = folder.joinpath(FILE)
    if not file.is_file():
        return None
    content = read_bytes(file, LARGEST, links=True)
    try:
        weights, about = load(content), rule_flow_facts(content)
        if about["fingerprint"] != grammar.fingerprint:
            return None
        settings = RuleFlowSettings(**about["settings"])
        static, missing = len(weights["mean"]), len(weights["missing_mean"])
        shapes = rule_flow_shapes(grammar, settings, static, missing)
        if {name: value.shape for name, value in weights.items()} != shapes:
            raise ValueError("its weights have other names or sizes than it says")
        if not all(np.isfinite(value).all() for value in weights.values()):
            raise ValueError("its weights are not finite")
    except (SafetensorError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise LgfError(f"the conditional flow in {str(folder)!r} is damaged: {error}; get it again.") from error
    return RuleFlow(grammar, settings, {name: value.astype(np.float32) for name, value in weights.items()})


def rule_flow_facts(content: bytes) -> dict[str, Any]:
    """The description in the bytes of the file."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["about"])
