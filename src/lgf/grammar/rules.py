"""Weighted context-free grammars of equations: Rule and Grammar.

A sentence is a part of an equation, and the grammar's template says which part:

    explicit        the right-hand side S of u^(n) = S
    own forcing     the whole residual: S = 0, operator and forcing together
    given forcing   the operator S of S = F, where the forcing F is given
    system          the right-hand side of one row of a system; `instantiate` makes the rules of a row
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property

TEMPLATES = ("explicit", "own forcing", "given forcing", "system")


@dataclass(frozen=True)
class Rule:
    """One alternative `lhs -> body [weight] {conditions}`.

    A symbol of the body is a nonterminal if some rule has it as its left-hand side, else a terminal. Weights stay
    as written; only their ratios within one left-hand side count.

    order   None, or the order of the equation that the rule needs: 1 is exactly first order, n >= 2 order n or more
    forced  None, or whether the rule needs a given forcing (True) or its absence (False)
    """

    lhs: str
    body: tuple[str, ...]
    weight: float = 1.0
    order: int | None = None
    forced: bool | None = None

    @property
    def differentiates(self) -> bool:
        """Whether the rule is `X -> diff(X, t)`, which raises the order of a derivative by one."""
        return self.body == ("diff", "(", self.lhs, ",", "t", ")")

    def __str__(self) -> str:
        """The rule in the file format, without its left-hand side."""
        words = [" ".join(self.body)]
        if self.weight != 1:
            words.append(f"[{self.weight!r}]")
        conditions = [] if self.order is None else [f"order {self.order}"]
        if self.forced is not None:
            conditions.append("forced" if self.forced else "free")
        if conditions:
            words.append(f"{{{', '.join(conditions)}}}")
        return " ".join(words)


@dataclass(frozen=True)
class Grammar:
    """A grammar as read from a file; `read_grammar` makes one and checks it.

    Rules are numbered in file order; the left-hand side of the first is the start. The number after the last rule is
    the padding rule, which fills derivations up to `max_length`.
    """

    name: str
    template: str
    rules: tuple[Rule, ...]
    max_length: int
    summand: tuple[str, ...] = ()
    documentation: str = ""

    def __hash__(self) -> int:
        """The hash of the fingerprint; hashing every rule would dominate look-ups in caches by grammar."""
        return hash(self.fingerprint)

    def __eq__(self, other: object) -> bool:
        """Whether name, documentation and content are equal; comparing every rule would dominate look-ups too."""
        if self is other:
            return True
        if not isinstance(other, Grammar):
            return NotImplemented
        content = self.fingerprint == other.fingerprint
        return content and (self.name, self.documentation) == (other.name, other.documentation)

    @property
    def start(self) -> str:
        """The nonterminal that every derivation begins with."""
        return self.rules[0].lhs

    @property
    def n_rules(self) -> int:
        """The number of rules, which is also the number of the padding rule."""
        return len(self.rules)

    @cached_property
    def nonterminals(self) -> tuple[str, ...]:
        """The left-hand sides, in order of their first rule."""
        return tuple(dict.fromkeys(rule.lhs for rule in self.rules))

    @cached_property
    def terminals(self) -> tuple[str, ...]:
        """The words of the sentences, in order of first use."""
        known = set(self.nonterminals)
        return tuple(dict.fromkeys(s for rule in self.rules for s in rule.body if s not in known))

    @cached_property
    def text(self) -> str:
        """The grammar in the file format; reading it gives an equal grammar."""
        comment = [f"# {line}".rstrip() for line in self.documentation.splitlines()]
        return "\n".join([*comment, f"name: {self.name}", *self._content, ""])

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that identify the content (not the name or documentation)."""
        return hashlib.sha256("\n".join(self._content).encode()).hexdigest()[:16]

    @property
    def _content(self) -> list[str]:
        lines = [f"template: {self.template}", f"max_length: {self.max_length}"]
        if self.summand:
            lines.append(f"summand: {' '.join(self.summand)}")
        previous = None
        for rule in self.rules:
            if rule.lhs == previous:
                lines[-1] += f" | {rule}"
            else:
                lines.append(f"{rule.lhs} -> {rule}")
            previous = rule.lhs
        return lines
