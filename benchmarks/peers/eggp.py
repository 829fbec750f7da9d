"""eggp: genetic programming over e-graphs; of its Pareto front the expression of shortest description."""

from eggp import EGGP

from benchmarks.peers.exchange import Task, answer

_POWERS = {"Recip": -1, "Square": 2, "Cube": 3}


def solve(task: Task) -> tuple[str, float]:
    """The expression of shortest description, and that length; eggp has no seed, so runs differ."""
    model = EGGP(gen=100, nPop=100, maxSize=25, nonterminals="add,sub,mul,div,sin,cos,exp,log")
    model.fit(task.X, task.y / task.noise)  # its description length takes the error to be 1
    best = model.results.loc[model.results["dl_train"].idxmin()]
    return f"{task.noise!r}*({_readable(best['Expression'])})", float(best["dl_train"])


def _readable(text: str) -> str:
    """The expression with eggp's own functions written as powers."""
    for name, exponent in _POWERS.items():
        while (start := text.find(name + "(")) >= 0:
            first = start + len(name)
            last = _closing(text, first)
            text = f"{text[:start]}({text[first : last + 1]}^({exponent})){text[last + 1 :]}"
    return text.replace("Sin", "sin").replace("Cos", "cos").replace("Exp", "exp").replace("Log", "log")


def _closing(text: str, opening: int) -> int:
    """The position of the bracket that closes the one at `opening`."""
    depth = 0
    for position in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            return position
    raise ValueError(f"the brackets of {text!r} do not match")


if __name__ == "__main__":
    answer(solve)
