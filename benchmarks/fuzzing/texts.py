"""Hostile texts: equations, forcing formulas, grammars, tables and recipes, generated and mutated."""

from random import Random

from benchmarks.fuzzing.mutating import HOSTILE, mutated_bytes, mutated_text

WORDS = """u u' u'' t F F(t) C C1 x0 x1' ( ) + - * / ^ ** = , ' sin( cos( exp( log( sqrt( abs( tanh( diff(
Derivative( du/dt d2u/dt2 pi 1 2.5 1e9 1e-300 1e308 9 0 e é ∂ − · ′ __class__ lambda: [ ] { \\ ; _"""
PIECES = (*WORDS.split(), " ", "\n", "\0", '"')
OPENINGS = (
    "(", "sin(", "u^", "-", "2*(", "diff(", "((", "u+(", "exp(u*", "9^", "u(", "1/(", "Derivative(u(t), (", "exp(1+",
    "u*exp(t+", "(1+t)*(t+", "2*sqrt(t+", "log(u*", "9^(",
)  # fmt: skip
EQUATIONS = (
    "2*u'' + u'*(1 - u^2) + 5*exp(-0.5*t)*u = 2*sin(0.5*t) + F(t)/(1 + C*diff(u, t, 2))",
    "5.0 u'' + 1.0 u' + 7.0 u = F", "u' = -0.5*u + C*tanh(u/3)", "x0'*x1 = abs(t)^1.5",
)  # fmt: skip
FORMULAS = ("2*sin(0.5*t)", "cos(2*t) + 0.1*t^2", "exp(-t)*sqrt(abs(t)) - 3", "tanh(t/(1 + t^2))")


STATEMENTS = {
    "required": "x: x*y", "forbidden": "y: x^2", "known": "x' = -2*y + C*sin(x)", "shared": "x: x*y = -2.5 y: x*y",
    "conserved": "x + 2*y", "populations": "x",
}  # fmt: skip


def equation(rng: Random) -> str:
    """Any characters, plausible pieces, sentences of the language, mutated equations, deep or long ones."""
    return _formula_like(rng, rng.choice(EQUATIONS), " = ".join(_term(rng, 4) for _ in range(rng.choice((1, 2, 2, 3)))))


def forcing(rng: Random) -> str:
    """The same for formulas in t."""
    return _formula_like(rng, rng.choice(FORMULAS), _term(rng, 4, ("t", "t", "t", "2", "0.5", "pi", "u", "C")))


def knowledge(rng: Random) -> dict[str, str]:
    """One statement about single equations, as the command line passes it on."""
    field, known = rng.choice(tuple(STATEMENTS.items()))
    sentence = rng.choice(("", "x: ", "y: ", "x' = ")) + _term(rng, 3, ("x", "y", "x'", "t", "C", "2", "F", "u"))
    return {field: _formula_like(rng, known, sentence)}


def _formula_like(rng: Random, known: str, sentence: str) -> str:
    kind = rng.randrange(20)
    if kind < 3:
        return "".join(chr(rng.randrange(0x20, 0x2FFF)) for _ in range(rng.randrange(60)))
    if kind < 8:
        return "".join(rng.choices(PIECES, k=int(rng.paretovariate(0.7)) % 2000))
    if kind < 13:
        return mutated_text(rng, known, PIECES)
    if kind < 17:
        return sentence
    if kind < 18:
        return mutated_text(rng, sentence, PIECES)
    if kind == 18:
        depth = rng.choice((3, 5, 8, 10, 20, 60, 70, 300, 2_000, 10_000))
        openings = rng.choices(OPENINGS, k=rng.randint(1, 2)) * depth
        tail = rng.choice(("", "^2", "^3", "^t", "*(1+t)"))
        return (
            "".join(openings[:depth]) + "u" + "".join(")" + tail for o in openings[:depth] for _ in range(o.count("(")))
        )
    return (
        rng.choice(("u+", "u*", "1/", "2*u-", "u'^2+", "x1*", "C*u+", "sin(u)+", "t^")) * rng.randrange(1, 2_000) + "u"
    )


LEAVES = ("u", "u'", "u''", "t", "F", "C", "2", "0.5", "1e5", "x0", "pi")


def _term(rng: Random, depth: int, leaves: tuple[str, ...] = LEAVES) -> str:
    """A random expression."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(leaves)
    kind = rng.randrange(6)
    if kind < 3:
        return rng.choice("+-*/*").join(_term(rng, depth - 1, leaves) for _ in range(rng.randint(2, 3)))
    if kind == 3:
        return f"({_term(rng, depth - 1, leaves)})^{rng.choice(('2', '3', '-1', '0.5', '(t)', '1e9'))}"
    if kind == 4:
        return f"{rng.choice(('sin', 'cos', 'exp', 'log', 'sqrt', 'abs', 'tanh'))}({_term(rng, depth - 1, leaves)})"
    return f"({_term(rng, depth - 1, leaves)})"


GRAMMAR_PIECES = (
    "S", "T", "A1", "->", "|", "[0.5]", "[0]", "[1e308]", "[-1]", "[x]", "{order 2}", "{forced}", "{free}", "{", "[",
    "template:", "max_length:", "name:", "summand:",
    "S -> ", "\n", "\n| ", " + ", "*", "C", "C*u", "diff(S, t)", "# ", "explicit", "own forcing", "given forcing",
    "1000", "u''''", "sin(", ")", "F", "x99999", "\n" * 3, "template: explicit\n", "T -> T\n",
)  # fmt: skip


def grammar(rng: Random, known: tuple[str, ...]) -> str:
    """Mutated grammars of the library, small random ones, and ones that are long, cyclic or grow without end."""
    kind = rng.randrange(20)
    if kind < 3:
        return "".join(rng.choices(GRAMMAR_PIECES, k=int(rng.paretovariate(0.7)) % 300))
    if kind < 12:
        return mutated_text(rng, rng.choice(known), GRAMMAR_PIECES)
    if kind < 19:
        return mutated_text(rng, _rules(rng), GRAMMAR_PIECES) if rng.random() < 0.3 else _rules(rng)
    return _large_grammar(rng)


def _rules(rng: Random) -> str:
    """A random grammar, mostly sound."""
    names = ("S", "T", "A", "B")[: rng.randint(1, 4)]
    words = ("C", "u", "u'", "t", "F", "2", "C*u", "sin(C*t)", "exp(", ")")
    lines = [f"template: {rng.choice(('explicit', 'own forcing', 'given forcing'))}"]
    if rng.random() < 0.5:
        lines.append(f"max_length: {rng.choice((1, 3, 10, 40, 1000))}")
    if rng.random() < 0.5:
        lines.append(f"summand: {' '.join(rng.choices(names, k=rng.randint(1, 2)))}")
    for name in names:
        bodies = []
        for _ in range(rng.randint(1, 4)):
            body = rng.choice((" + ", "*", "/")).join(rng.choices((*names, *words), k=rng.randint(1, 3)))
            bodies.append(body + rng.choice(("", "", " [0.3]", " [0]", " {order 2}", " [1e308]", " {forced}")))
        lines.append(f"{name} -> {' | '.join(bodies)}")
    return "\n".join([*lines, ""])


def _large_grammar(rng: Random) -> str:
    n = rng.choice((10, 40, 300, 2_000))
    kind = rng.randrange(6)
    if kind == 0:  # a chain, the last first
        rules = [f"A{i} -> A{i + 1}" for i in range(n)] + [f"A{n} -> C"]
    elif kind == 1:  # every rule doubles the length
        rules = [f"A{i} -> A{i + 1}*A{i + 1}" for i in range(min(n, 60))] + [f"A{min(n, 60)} -> C"]
    elif kind == 2:  # doubling, then so many that 32 bits overflow
        levels = rng.choice((20, 21, 22))
        rules = ["S -> " + "*".join(["A0"] * rng.choice((512, 2_048, 4_096)))]
        rules += [f"A{i} -> A{i + 1}*A{i + 1}" for i in range(levels)] + [f"A{levels} -> C"]
    elif kind == 3:
        rules = ["S -> " + " | ".join(f"{i}*u" for i in range(n))]
    elif kind == 4:
        rules = ["S -> u" + " " * 30 * n + "x", f"name: a{' ' * 30 * n}b"]
    else:
        rules = ["S -> " + "u" * 10 * n + "x + C", "T -> " + "v" * 10 * n]
    return "\n".join([f"max_length: {rng.choice((40, 1000))}", "template: explicit", *rules, ""])


CELLS = (
    "0", "1", "2.5", "-1e3", "1,5", "", "nan", "NA", "inf", "1e999", "1e308", "-1e308", "1e150", "1e-320",
    "x", "time", "t", "u", "u'", "a", "force", "weight", "run", "2020-01-01", "2020-01-01T00:00:01",
    "2020-01-01T00:00:01Z", "now", "today", "NaT", "99999999999-01-01", "-2020-01-01", '"', '"a', "'", "1_000",
    "0x1p3", "½", "١", "=1+1", "=cmd|' /C calc'!A0", *HOSTILE,
)  # fmt: skip
TABLE = b"t,u\n" + b"".join(b"%.1f,%.3f\n" % (i / 10, 0.9**i) for i in range(30))
HEADERS = ("t,u", "t;u;u'", "time,u,f", "run,t,u", "t\tu\tweight", "a b c", "", "# t,u", "x,y", "time [s],acc [m/s^2]")


def table(rng: Random) -> bytes:
    """Bytes of a delimited file: mostly sound ones with odd cells, rows, encodings; mutated; or any bytes at all."""
    kind = rng.randrange(12)
    if kind == 0:
        return rng.randbytes(rng.randrange(400))
    header = rng.choice(HEADERS)
    delimiter = next((d for d in ("\t", ";", ",", " ") if d in header), rng.choice(",;\t |"))
    columns = header.count(delimiter) + 1 if header else rng.randint(1, 4)
    lines = [header] if header else []
    start = rng.choice((0.0, 0.0, 0.0, 0.0, 1e9, -5.0, 1e-300))
    step = rng.choice((0.1, 0.1, 0.1, 0.1, 0.1, 1.0, 1e-12, 1e300, 0.0, -0.1))
    for i in range(rng.choice((0, 1, 3, 8, 20, 20, 20, 60))):
        cells = [f"{start + i * step!r}"] + [f"{rng.gauss(0, 1):.4f}" for _ in range(columns - 1)]
        if header.startswith("run"):
            cells = [str(i // 10), repr(i % 10 * 0.1), cells[-1]]
        if rng.random() < 0.02:
            cells[rng.randrange(len(cells))] = rng.choice(CELLS)
        if rng.random() < 0.005:
            cells = cells[: rng.randrange(len(cells) + 1)] * rng.choice((1, 2, 400))
        lines.append(delimiter.join(cells))
    text = rng.choice(("\n", "\n", "\n", "\r\n", "\r")).join(lines) + "\n"
    if kind < 4:
        text = mutated_text(rng, text, CELLS)
    data = text.encode(rng.choice(("utf-8",) * 8 + ("utf-16", "latin-1", "utf-8-sig", "utf-32")), "replace")
    return mutated_bytes(rng, data) if kind < 6 else data


RECIPE_PIECES = (
    "name = ", "grammar = ", "seed = ", "[corpus]\n", "[autoencoder]\n", "[denoiser.training]\n", "[[corpus]]\n",
    "size = ",
    "width = ", "epochs = ", "true", "1979-05-27T07:32:00Z", "1e999", "nan", "-1", "0x" + "f" * 30, "'''", '"""',
    "a.b.c = 1\n",
    '"\\u0000"', '"../../x"', '"/etc/passwd"', '"standard"', "[", "{a = 1}", "= ", "\n", '"\\uD800"', "inf",
)  # fmt: skip


def recipe(rng: Random, known: tuple[str, ...]) -> bytes:
    """Bytes of a TOML file: mutated recipes, odd values at known keys, deep nesting, long dotted keys, any bytes."""
    kind = rng.randrange(20)
    text = rng.choice(known)
    if kind == 0:
        return rng.randbytes(rng.randrange(200))
    if kind == 1:
        depth = rng.choice((50, 300, 5_000))
        opening, closing = rng.choice((("[", "]"), ("{a=", "}"), ("a.", ""), ("[[", "]]")))
        return f"{text}\nx = {opening * depth}1{closing * depth}\n".encode()
    if kind == 2:
        return (
            text + rng.choice(("a." * 3_000 + "a = 1", "[" + "a." * 3_000 + "a]", f"seed2 = {'9' * 5_000}"))
        ).encode()
    if kind < 12:
        lines = text.splitlines()
        keys = [i for i, line in enumerate(lines) if "=" in line]
        for at in rng.sample(keys, rng.randint(1, min(3, len(keys)))):
            odd = rng.choice(("0", "-1", "1e999", "nan", "'x'", "[]", "{}", "true", "2147483648", "9" * 30, "9" * 5_000,
                              "'../../x'", "'/etc/passwd'", "'\\u0000'", '"\\u0000"',
                              f'"{"x" * 5_000}"', "0.5", "1", "64"))  # fmt: skip
            lines[at] = f"{lines[at].partition('=')[0]}= {odd}"
        return "\n".join(lines).encode()
    changed = mutated_text(rng, text, RECIPE_PIECES).encode("utf-8", "replace")
    return mutated_bytes(rng, changed) if kind == 19 else changed
