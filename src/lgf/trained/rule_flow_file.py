"""The conditional flow of a model: one file beside the other weights, in half precision, with its description inside.

Loading runs the network once, which rejects weights that are missing or do not fit. Nothing is unpickled.
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
from lgf.trained.rule_flow import RuleFlow, RuleFlowSettings

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
        weights = {name: value.astype(np.float32) for name, value in weights.items()}
        flow = RuleFlow(grammar, RuleFlowSettings(**about["settings"]), weights)
        if not all(np.isfinite(value).all() for value in weights.values()):
            raise ValueError("its weights are not finite")
        _run_once(flow)
    except (SafetensorError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise LgfError(f"the conditional flow in {str(folder)!r} is damaged: {error}; get it again.") from error
    return flow


def _run_once(flow: RuleFlow) -> None:
    """Fails unless the weights fit each other and the grammar."""
    features, missing = np.zeros(len(flow.weights["mean"])), np.zeros(len(flow.weights["missing_mean"]))
    rules, sides = flow.grammar.n_rules, np.arange(len(flow.grammar.nonterminals))
    state = flow.read(features) + flow.missing(missing) + flow.said[rules - 1] + flow.said_in_summand[rules - 1]
    if len(flow.odds(features, missing, state)) != len(missing) - 2:
        raise ValueError("it has other terms than it reads features of")
    flow.log_probabilities(state, sides, np.zeros((len(sides), rules)), np.ones(rules, bool))


def rule_flow_facts(content: bytes) -> dict[str, Any]:
    """The description in the bytes of the file."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["about"])
