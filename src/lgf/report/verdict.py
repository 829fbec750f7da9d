"""What predictions say about the chosen equation, in a sentence for people."""

from lgf.runs.request import Run
from lgf.search.decision import Trust

_SENTENCES = {
    Trust.CONFIRMED: "Confirmed: it predicts what its fit did not see to within the noise.",
    Trust.REFUTED: (
        "Refuted: no equation tried explains these data; the best misses what its fit did not see by more than the "
        "noise. It is an approximation; do not quote it as the law behind the data."
    ),
    Trust.UNTESTED: "Untested: there are too few data to see whether it predicts what its fit did not see.",
}


def verdict(run: Run) -> str:
    """One sentence on whether the equation predicts what it has not seen."""
    return _SENTENCES[run.trust]
