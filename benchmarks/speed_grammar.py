"""Speed of the grammar layer on one core: `python benchmarks/speed_grammar.py`."""

import json
from collections.abc import Callable
from time import perf_counter, process_time

import numpy as np

from lgf.expression.frame import Frame
from lgf.grammar import (
    Extent,
    decode,
    enumerate_derivations,
    extent,
    load_grammar,
    restrict,
    sample,
    spell,
    split,
)
from lgf.language.system_language import unrestricted
from lgf.paper.derivations.block_decoding import decode_blocks
from lgf.paper.derivations.parsing import parse

GRAMMARS = ("b1", "b2", "b3", "standard")
FRAMES = {
    "two states": Frame((("x", 1), ("y", 1))),
    "two states of order 2": Frame((("x", 2), ("y", 2))),
    "four states": Frame(tuple((name, 1) for name in "wxyz")),
    "six states": Frame(tuple((name, 1) for name in "uvwxyz")),
}


def measure(grammars: tuple[str, ...] = GRAMMARS) -> dict[str, dict[str, float]]:
    """Per grammar: sentences a second for each operation, milliseconds a parse, and the listing up to 16 bits."""
    return {name: _measure(name) for name in grammars}


def _measure(name: str) -> dict[str, float]:
    grammar = load_grammar(name)
    rng = np.random.default_rng(0)
    derivations = sample(grammar, rng, 2000)
    sentences = [spell(grammar, d) for d in derivations[:200]]
    size = extent(grammar, derivations)
    size = Extent(max(size.header, 1), min(size.summands, 5), min(size.summand, 20))
    width = grammar.n_rules + 1
    logits = rng.standard_normal((10_000, grammar.max_length, width), dtype=np.float32)
    header = rng.standard_normal((10_000, size.header, width), dtype=np.float32)
    slots = rng.standard_normal((10_000, size.summands, size.summand, width), dtype=np.float32)
    allowed = restrict(grammar, order=2, forced=False)
    listed = sum(1 for _ in enumerate_derivations(grammar, 16, allowed=allowed))
    seconds = {
        "sample": _seconds(lambda: sample(grammar, rng, 20_000)) / 20_000,
        "decode": _seconds(lambda: decode(grammar, logits)) / 10_000,
        "decode_blocks": _seconds(lambda: decode_blocks(grammar, header, slots)) / 10_000,
        "split": _seconds(lambda: [split(grammar, d) for d in derivations]) / 2000,
        "spell": _seconds(lambda: [spell(grammar, d) for d in derivations]) / 2000,
        "enumerate": _seconds(lambda: list(enumerate_derivations(grammar, 16, allowed=allowed))) / listed,
    }
    figures = {f"{what}_per_second": round(1 / time) for what, time in seconds.items()}
    parsing = _seconds(lambda: [parse(grammar, s) for s in sentences]) / len(sentences)
    return figures | {
        "parse_milliseconds": round(1e3 * parsing, 2),
        "derivations_up_to_16_bits": listed,
        "seconds_up_to_16_bits": round(seconds["enumerate"] * listed, 3),
    }


def measure_systems() -> dict[str, dict[str, float]]:
    """Per frame: seconds for the terms of all rows in grammar `systems`, the first time and again, and their number."""
    grammar = load_grammar("systems")
    unrestricted(grammar, Frame((("a", 1), ("b", 1))))
    figures = {}
    for name, frame in FRAMES.items():
        begin = process_time()
        language = unrestricted(grammar, frame)
        middle = process_time()
        unrestricted(grammar, frame)
        figures[name] = {
            "first_seconds": round(middle - begin, 3),
            "again_seconds": round(process_time() - middle, 3),
            "terms_of_a_row": len(language.terms(0)),
        }
    return figures


def _seconds(work: Callable[[], object]) -> float:
    """The shortest of three runs, after one that compiles and fills the caches."""
    work()
    times = []
    for _ in range(3):
        begin = perf_counter()
        work()
        times.append(perf_counter() - begin)
    return min(times)


if __name__ == "__main__":
    print(json.dumps(measure() | {"systems": measure_systems()}, indent=2))
