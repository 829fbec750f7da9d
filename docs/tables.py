"""`python docs/tables.py` writes the tables of models.md and training.md, from the files of the models and results."""

import json
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
MODELS = DOCS.parent / "src" / "lgf" / "models"
PAGES = DOCS / "models.md", DOCS / "training.md"
FLOW = DOCS.parent / "benchmarks" / "results" / "flow.json"
PAPER = DOCS.parent / "benchmarks" / "results" / "paper_autoencoder.json"
CONDITIONAL = DOCS.parent / "benchmarks" / "results" / "conditional.json"

# what the paper's predecessor reaches with its variational autoencoder
PREDECESSOR = {"b1": 0.68, "b2": 0.77, "b3": 0.91}
# what the row says: the metric in model.json
SHARES = {
    "unseen sentences that come back exactly": "exact_reconstruction",
    "random codes that decode to a complete sentence": "random_codes_complete",
    "random codes with a structure of their own": "random_codes_unique_structures",
    "free samples that are an equation": "free_samples_valid",
    "... of an order above 2": "free_samples_beyond_order_2",
    "free samples with a structure of their own": "free_samples_unique_structures",
    "one token changed: the sentence changes": "edit_changes_sentence",
    "... to the next level": "edit_to_next_level_changes_sentence",
    "... of the changes, exactly one summand": "edit_changes_one_summand",
    "guided to order 1: samples of order 1": "guided_to_order_1",
    "guided to order 2: samples of order 2": "guided_to_order_2",
}
# what the row says: the metric of free samples, that of the corpus, how they are written
BESIDE = {
    "rules in a sentence: free samples / corpus": ("free_samples_length", "corpus_length", "{:.1f}"),
    "summands": ("free_samples_summands", "corpus_summands", "{:.2f}"),
    "of order 2": ("free_samples_second_order", "corpus_second_order", "{:.1%}"),
}
# what the row says: what flow.json calls it
MEASURED = {
    "1,000 guided samples down to skeletons, s": "s for 1000 guided samples decoded to skeletons, Taylor",
    "training of a predictor on 10,000 equations, s": "s to train a predictor on 10000 points",
    "correlation of Taylor's log-ratios with the exact ones: length": (
        "correlation of Taylor's log-ratios with the exact ones, length"
    ),
    "... order": "correlation of Taylor's log-ratios with the exact ones, order",
}
NUMBERS = {
    "rank correlation of latent and behavioural distance": "behavioural_correlation",
    "the same, trained without behavioural loss": "behavioural_correlation_without_loss",
}


def table(folder: Path = MODELS) -> str:
    """The table, one column for each model."""
    facts = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*/model.json"))]
    rows = [["", *(f"`{f['name']}`" for f in facts)], ["---"] * (len(facts) + 1)]
    rows.append(["sentences of the corpus", *(f"{f['recipe']['corpus']['size']:,}" for f in facts)])
    rows.append(["tokens", *(str(_tokens(f)) for f in facts)])
    rows.append(["weights", *(f"{f['weights']['bytes'] / 1e6:.1f} MB" for f in facts)])
    for said, metric in SHARES.items():
        rows.append([said, *(_said(f["metrics"].get(metric), "{:.1%}") for f in facts)])
    for said, (ours, theirs, pattern) in BESIDE.items():
        rows.append([said, *(" / ".join(_said(f["metrics"].get(m), pattern) for m in (ours, theirs)) for f in facts)])
    for said, metric in NUMBERS.items():
        rows.append([said, *(_said(f["metrics"].get(metric), "{:.2f}") for f in facts)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def flow_table(file: Path = FLOW) -> str:
    """What sampling takes and how good the approximation is, one column for each model."""
    facts = json.loads(file.read_text(encoding="utf-8"))
    names = sorted(file.parent.name for file in MODELS.glob("*/model.json"))
    rows = [["", *(f"`{name}`" for name in names)], ["---"] * (len(names) + 1)]
    rows += [[said, *(_said(facts[n].get(what), "{:.2f}") for n in names)] for said, what in MEASURED.items()]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def paper_table(file: Path = PAPER) -> str:
    """The paper's autoencoder, one column for each grammar, beside its predecessor."""
    facts = json.loads(file.read_text(encoding="utf-8"))
    names = sorted(facts)
    each = [facts[name] for name in names]
    rows = [
        ["", *(f"`{name}`" for name in names)],
        ["---"] * (len(names) + 1),
        ["sentences of the corpus", *(f"{f['sentences']:,}" for f in each)],
        ["tokens", *(str(4 * f["recipe"]["positions"]) for f in each)],
        ["epochs / of the recipe",
         *(f"{f['curve'][-1]['epoch']} / {f['recipe']['training']['epochs']}" for f in each)],
        ["unseen sentences that come back exactly", *(f"{f['exact_reconstruction']:.1%}" for f in each)],
        ["... if the encoder checks the likeliest sentences",
         *(_said(f.get("exact_reconstruction_checked"), "{:.1%}") for f in each)],
        ["... of the first 2,000 of the training, which are shorter",
         *(f"{f['exact_reconstruction_seen']:.1%}" for f in each)],
        ["published for the paper's predecessor", *(f"{PREDECESSOR[name]:.0%}" for name in names)],
        ["processor seconds", *(f"{f['seconds']['autoencoder']['processor']:,.0f}" for f in each)],
        ["exact after epochs " + ", ".join(map(str, _EPOCHS)),
         *(" / ".join(_at(f["curve"], epoch) for epoch in _EPOCHS) for f in each)],
    ]  # fmt: skip
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


_EPOCHS = 2, 5, 10, 15, 20, 25, 45


def _at(curve: list[dict[str, Any]], epoch: int) -> str:
    return next((f"{line['exact']:.0%}" for line in curve if line["epoch"] == epoch), "-")


def conditional_table(file: Path = CONDITIONAL) -> str:
    """The conditional flow: its training, and the ranks and bits of the true equations."""
    content = (MODELS / "standard" / "conditional.safetensors").read_bytes()
    trained = _about(content)["metrics"]
    found = json.loads(file.read_text(encoding="utf-8"))["summary"]
    bits = trained["grammar_bits"], trained["bits"], trained["grammar_bits"] - trained["bits"]

    def within(pattern: str, share: bool) -> str:
        values = [found[pattern.format(n)] for n in ((10, 30, 100) if share else (1, 3, 10))]
        return " / ".join(f"{v:.0%}" if share else str(v) for v in values)

    rows = [
        ["", "`standard`"],
        ["---"] * 2,
        ["simulated pairs", f"{trained['pairs']:,}"],
        ["weights", f"{len(content) / 1e6:.1f} MB"],
        ["bits of unseen pairs: grammar / flow / saved", " / ".join(f"{b:.2f}" for b in bits)],
        ["named problems: truth among the first 10 / 30 / 100", within("within {}", True)],
        [f"... of the {found['paid for']} whose draw pays for the truth", within("within {}, truth paid for", True)],
        ["... of all, ranked by description length after 400 fits", within("within {}, by 400 fits", True)],
        ["... of all, among the first that the default search tries", within("within {}, by the search", True)],
        ["bits of the truth: grammar / without the record / flow",
         " / ".join(f"{found[key]:.2f}" for key in ("grammar_bits", "free_bits", "bits"))],
        [f"the last of the true terms is missing ({found['missing terms']} problems): 1st / in 3 / in 10 by the flow",
         within("missing term within {} by flow", False)],
        ["... by linear responses", within("missing term within {} by responses", False)],
        ["processor seconds of the first eight", f"{found['seconds']:.3f}"],
    ]  # fmt: skip
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def rows_table() -> str:
    """The ranking of right-hand sides: where the true ones come, without and with it."""
    trained = _about((MODELS / "systems" / "rows.safetensors").read_bytes())["metrics"]
    plain, ranked = trained["without a model"], trained["ranked"]
    rows = [
        ["", "without", "ranked"],
        ["---"] * 3,
        ["simulated systems", "", f"{trained['systems']:,}"],
        ["their rows / those whose list has the true right-hand side / held out", "",
         f"{trained['rows']:,} / {trained['with the true right-hand side']:,} / {trained['held out']:,}"],
        ["rank of the true right-hand side, geometric mean",
         *(f"{m['geometric mean rank']:.2f}" for m in (plain, ranked))],
        ["among the first 1 / 5 / 20",
         *(" / ".join(f"{m[f'in the first {n}']:.0%}" for n in (1, 5, 20)) for m in (plain, ranked))],
    ]  # fmt: skip
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def times_table() -> str:
    """The processor seconds of the stages of each training, one column for each model that has them."""
    times = {file.parent.name: json.loads(file.read_text(encoding="utf-8")) for file in MODELS.glob("*/times.json")}
    names = sorted(times)
    stages = dict.fromkeys(stage for name in names for stage in times[name])
    rows = [["processor seconds", *(f"`{name}`" for name in names)], ["---"] * (len(names) + 1)]
    for stage in stages:
        seconds = [times[name].get(stage, {}).get("processor") for name in names]
        rows.append([stage, *(_said(s, "{:,.0f}") for s in seconds)])
    rows.append(["all of these", *(f"{sum(s['processor'] for s in times[name].values()):,.0f}" for name in names)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _about(content: bytes) -> dict[str, Any]:
    """The description in the bytes of a file of weights."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["about"])


def written(page: str, folder: Path = MODELS) -> str:
    """The page with the tables as they are now."""
    tables = {
        "models": table(folder), "flow": flow_table(), "conditional": conditional_table(), "rows": rows_table(),
        "times": times_table(), "paper": paper_table(),
    }  # fmt: skip
    for name, text in tables.items():
        place = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)", re.DOTALL)
        page = place.sub(lambda _, text=text: f"\n{text}\n", page)
    return page


def _tokens(facts: dict[str, Any]) -> int:
    settings, extent = facts["autoencoder"], facts["extent"]
    if settings["architecture"] == "sequence":
        return 4 * settings["positions"]
    return (settings["header_tokens"] if extent["header"] else 0) + extent["summands"] * settings["summand_tokens"]


def _said(value: float | None, pattern: str) -> str:
    return "-" if value is None else pattern.format(value)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")
