"""Parsing of sentences to derivations by lark's Earley parser.

These grammars are left recursive or ambiguous, so LALR would reject valid sentences. Of several derivations of a
sentence every process returns the same one: lark's sets are ordered, and earlier rules come first.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedEOF, UnexpectedToken
from lark.lexer import Lexer

from lgf.errors import LgfError, quoted
from lgf.grammar.derivation import Derivation
from lgf.grammar.rules import Grammar
from lgf.grammar.vocabulary import UnknownCharacter, words


class ParseError(LgfError):
    """A text that is not a sentence of a grammar; the message says why."""


def parse(grammar: Grammar, sentence: str) -> Derivation:
    """The derivation of the sentence (blanks do not matter); it may be longer than `max_length`."""
    parser, terminals = _parser(grammar)
    tokens: list[Token] = []
    try:
        for word, column in words(sentence):
            if word not in terminals:
                raise _error(grammar, sentence, f"{quoted(word)} at column {column + 1} is not a word of the grammar")
            tokens.append(Token(terminals[word], word, column=column + 1))
        tree: Any = parser.parse(tokens)  # pyright: ignore[reportArgumentType]
    except UnknownCharacter as unknown:
        raise _error(grammar, sentence, f"{unknown} (column {unknown.column + 1})") from None
    except UnexpectedToken as unexpected:
        where = f"{quoted(str(unexpected.token))} at column {unexpected.token.column}"
        raise _error(grammar, sentence, f"{where} cannot stand there") from None
    except UnexpectedEOF:
        raise _error(grammar, sentence, "it ends too early") from None
    return tuple(_rules(tree))


class _Tokens(Lexer):
    """A lexer that passes prepared tokens on to lark."""

    def __init__(self, lexer_conf: object):
        pass

    def lex(self, data: list[Token]) -> Iterator[Token]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The tokens, unchanged."""
        return iter(data)


@lru_cache(maxsize=64)
def _parser(grammar: Grammar) -> tuple[Lark, dict[str, str]]:
    # A leading underscore makes lark leave the token out of the tree, which needs only the rules.
    terminals = {word: f"_T{i}" for i, word in enumerate(grammar.terminals)}
    names = terminals | {name: f"n{i}" for i, name in enumerate(grammar.nonterminals)}
    alternatives: dict[str, list[str]] = {name: [] for name in grammar.nonterminals}
    for number, rule in enumerate(grammar.rules):
        alternatives[rule.lhs].append(f"{' '.join(names[symbol] for symbol in rule.body)} -> r{number}")
    lines = [f"{names[lhs]}: {' | '.join(rules)}" for lhs, rules in alternatives.items()]
    lines.append(f"%declare {' '.join(terminals.values())}")
    parser = Lark("\n".join(lines), start=names[grammar.start], parser="earley", lexer=_Tokens, ordered_sets=True)
    return parser, terminals


def _rules(tree: Tree[Token]) -> Iterator[int]:
    stack = [tree]
    while stack:
        node = stack.pop()
        yield int(node.data[1:])
        stack.extend(child for child in reversed(node.children) if isinstance(child, Tree))


def _error(grammar: Grammar, sentence: str, reason: str) -> ParseError:
    return ParseError(
        f"{quoted(sentence)} is not a sentence of grammar {quoted(grammar.name)}: {reason}; "
        "spell it as the grammar does."
    )
