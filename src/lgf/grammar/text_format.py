"""Reading of grammars from text; errors show the line and the column.

    # what the grammar is for
    template: explicit            # or: own forcing, given forcing, system
    max_length: 40                # longest derivation
    summand: T                    # what makes one exchangeable summand
    S -> T [0.7] | T + S [0.3]
    T -> C*u | C*u' {order 2} | C*sin(C*t)

A name on a left-hand side is a nonterminal; every other word belongs to the vocabulary. Weights stand in brackets
(1 if missing), conditions in braces: `order 2` (order 2 or more), `order 1` (first order only), `forced`, `free`.
A line that begins with `|` continues the one before.

In a grammar for systems (`template: system`) u is the state of the row, v and w are two other states, and F is each
input in turn; see `instantiation`.
"""

import math
import re

from lgf.errors import quoted
from lgf.grammar.diagnostics import Place, like
from lgf.grammar.rules import TEMPLATES, Grammar, Rule
from lgf.grammar.vocabulary import INPUT_WORD, SIGNS, UnknownCharacter, is_terminal, words
from lgf.grammar.wellformedness import check_structure, check_symbols

DEFAULT_MAX_LENGTH = 40
LONGEST_MAX_LENGTH = 1000
LONGEST_TEXT = 1_000_000  # characters
MOST_NONTERMINALS = 100  # the checks take time proportional to nonterminals times words
MOST_WORDS = 3_000

_EMPTY = "empty alternative: write what stands here, or take the '|' away"
_SETTING = re.compile(r"\s*([A-Za-z_]+)\s*:\s*(.*)$")
_SYSTEM = re.compile(r"\s*template\s*:\s*system\s*(?:#|$)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_WEIGHT = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_ANNOTATION = re.compile(r"\[(?P<weight>[^\]]*)\]|\{(?P<conditions>[^}]*)\}|[\[{]")


def read_grammar(text: str, name: str = "grammar", where: str | None = None) -> Grammar:
    """The grammar that the text describes; `name` is used unless the text has one, `where` in errors."""
    where = where or f"grammar {quoted(name)}"
    lines = text.splitlines() or [""]
    settings: dict[str, tuple[str, Place]] = {}
    rules: list[tuple[Rule, Place]] = []
    places: dict[str, Place] = {}
    unfinished: Place | None = None
    lhs, size = "", 0
    system = any(_SYSTEM.match(line) for line in lines)
    if len(text) > LONGEST_TEXT:
        raise Place(where, 1, lines[0], 0).error(f"a text of {len(text)} characters: at most {LONGEST_TEXT} are read")
    for number, line in enumerate(lines, 1):
        content = line.partition("#")[0].rstrip()
        if not content.strip():
            continue
        place = Place(where, number, line, len(content) - len(content.lstrip()))
        setting = None if "->" in content else _SETTING.match(content)
        if unfinished and (setting or "->" in content):
            raise unfinished.error(_EMPTY)
        if setting:
            _check_setting(setting.group(1), settings, place)
            settings[setting.group(1)] = (setting.group(2), place.at(setting.start(2)))
            continue
        continues = unfinished or content.lstrip().startswith("|")
        if continues and not lhs:
            raise place.error("this continues a rule, but no rule stands before it: begin with 'name -> ...'")
        begin = place.column
        if not continues:
            lhs, begin = _left_hand_side(content, place, system)
            places.setdefault(lhs, place)
        elif not unfinished:
            begin += 1
        unfinished = place.at(len(content) - 1) if content.endswith(("|", "->")) else None
        before = len(rules)
        rules.extend(_alternatives(lhs, content, begin, place, unfinished is not None, system))
        size += sum(1 + len(rule.body) for rule, _ in rules[before:])
        if len(places) > MOST_NONTERMINALS or size > MOST_WORDS:
            raise place.error(
                f"more than {MOST_NONTERMINALS} nonterminals or {MOST_WORDS} words in rules: write a smaller grammar"
            )
    if unfinished:
        raise unfinished.error(_EMPTY)
    if not rules:
        raise Place(where, len(lines), lines[-1], 0).error("there is no rule: write at least one line 'name -> ...'")
    return _assemble(_documentation(lines), name, settings, rules, places)


def _check_setting(key: str, settings: dict[str, tuple[str, Place]], place: Place) -> None:
    known = ("name", "template", "max_length", "summand")
    if key not in known:
        raise place.error(f"unknown setting {quoted(key)}: the settings are {', '.join(known)}{like(key, known)}")
    if key in settings:
        raise place.error(f"{quoted(key)} is set a second time: keep one of the two lines")


def _left_hand_side(content: str, place: Place, system: bool) -> tuple[str, int]:
    arrow = content.find("->")
    if arrow < 0:
        raise place.error("missing arrow: a rule reads 'name -> alternative | alternative', a setting 'key: value'")
    lhs = content[:arrow].strip()
    if not _NAME.fullmatch(lhs):
        raise place.error(f"{quoted(lhs)} cannot be a nonterminal: a name of letters, digits and _ stands before '->'")
    if is_terminal(lhs, system):
        raise place.error(f"{quoted(lhs)} is a word of the vocabulary and cannot be a nonterminal: choose another name")
    return lhs, arrow + 2


def _alternatives(
    lhs: str, content: str, begin: int, place: Place, open_end: bool, system: bool
) -> list[tuple[Rule, Place]]:
    if "->" in content[begin:]:
        raise place.at(content.index("->", begin)).error("a second arrow: begin a new line for each left-hand side")
    rules = []
    pieces = content[begin:].split("|")
    for i, piece in enumerate(pieces):
        if piece.strip():
            spot = place.at(begin + len(piece) - len(piece.lstrip()))
            rules.append((_alternative(lhs, piece, begin, place, system), spot))
        elif not (open_end and i == len(pieces) - 1):
            column = min(begin, len(content) - 1)
            raise place.at(column).error(_EMPTY)
        begin += len(piece) + 1
    return rules


def _alternative(lhs: str, piece: str, begin: int, place: Place, system: bool) -> Rule:
    weight, conditions = 1.0, ""
    condition_place = place
    seen: set[str] = set()
    body_text = piece
    for annotation in _ANNOTATION.finditer(piece):
        spot = place.at(begin + annotation.start())
        kind = annotation.lastgroup
        if kind is None:
            closing = "]" if annotation.group() == "[" else "}"
            raise spot.error(f"this {annotation.group()!r} is never closed: write {closing!r} behind it")
        if kind in seen:
            raise spot.error(f"a second {kind} for one alternative: keep one")
        seen.add(kind)
        if kind == "weight":
            weight = _weight(annotation.group(kind), spot)
        else:
            conditions, condition_place = annotation.group(kind), spot
        if body_text is piece:
            body_text = piece[: annotation.start()]
    trailing = _ANNOTATION.sub(lambda annotation: " " * len(annotation.group()), piece)[len(body_text) :]
    if trailing.strip():
        column = begin + len(body_text) + len(trailing) - len(trailing.lstrip())
        raise place.at(column).error(
            "weights and conditions stand behind the body: move this before them, or write '|'"
        )
    order, forced = _conditions(conditions, condition_place)
    body = _body(body_text, begin, place, system)
    if forced is False and INPUT_WORD in body:
        raise condition_place.error("the body uses the forcing F but the condition says 'free': write 'forced'")
    return Rule(lhs, body, weight, order, forced)


def _weight(text: str, place: Place) -> float:
    text = text.strip()  # of more characters than float() strips
    weight = float(text) if _WEIGHT.fullmatch(text) else math.nan
    if not (math.isfinite(weight) and weight >= 0):
        raise place.error(f"bad weight {quoted(text)}: give a finite number that is not negative")
    return weight


def _conditions(text: str, place: Place) -> tuple[int | None, bool | None]:
    order: int | None = None
    forced: bool | None = None
    for condition in filter(None, (part.strip() for part in text.split(","))):
        order_condition = re.fullmatch(r"order\s+([1-9])", condition)
        if order_condition and order is None:
            order = int(order_condition.group(1))
        elif condition in ("forced", "free") and forced is None:
            forced = condition == "forced"
        else:
            raise place.error(
                f"bad condition {quoted(condition)}: the conditions are 'order 1', 'order 2', ..., 'forced' and "
                "'free', at most one of each kind"
            )
    return order, forced


def _body(text: str, begin: int, place: Place, system: bool) -> tuple[str, ...]:
    body: list[str] = []
    try:
        for word, column in words(text):
            adjacent = body and body[-1] not in SIGNS and word not in SIGNS
            if adjacent and is_terminal(body[-1], system) and is_terminal(word, system):
                raise place.at(begin + column).error(
                    f"no sign stands between {quoted(body[-1])} and {quoted(word)}: write '*'"
                )
            body.append(word)
    except UnknownCharacter as unknown:
        raise place.at(begin + unknown.column).error(
            f"{unknown}: write words of the vocabulary, nonterminals and the signs {' '.join('+-*/^(),')}"
        ) from None
    if not body:
        raise place.at(begin).error("empty alternative: a weight or condition needs a body before it")
    return tuple(body)


def _assemble(
    documentation: str,
    name: str,
    settings: dict[str, tuple[str, Place]],
    placed: list[tuple[Rule, Place]],
    places: dict[str, Place],
) -> Grammar:
    first = placed[0][1].at(0)
    if "template" not in settings:
        raise first.error(f"missing template: write a line 'template: ' with one of {', '.join(TEMPLATES)}")
    template, place = settings["template"]
    if template not in TEMPLATES:
        raise place.error(
            f"unknown template {quoted(template)}: it is one of {', '.join(TEMPLATES)}{like(template, TEMPLATES)}"
        )
    length, place = settings.get("max_length", (str(DEFAULT_MAX_LENGTH), first))
    if not (re.fullmatch(r"[0-9]{1,6}", length) and 0 < int(length) <= LONGEST_MAX_LENGTH):
        raise place.error(f"bad max_length {quoted(length)}: give a whole number from 1 to {LONGEST_MAX_LENGTH}")
    title, title_place = settings.get("name", (name, first))
    if not title:
        raise title_place.error("the name is empty: write one or take the line away")
    check_symbols(placed, places, template == "system")
    summand, summand_place = settings.get("summand", ("", first))
    for symbol in summand.split():
        if symbol not in places:
            raise summand_place.error(f"undefined nonterminal {quoted(symbol)} in summand{like(symbol, tuple(places))}")
    rules = tuple(rule for rule, _ in placed)
    grammar = Grammar(title, template, rules, int(length), tuple(summand.split()), documentation)
    check_structure(grammar, placed, places, place)
    return grammar


def _documentation(lines: list[str]) -> str:
    comment: list[str] = []
    for line in lines:
        if line.strip() and not line.lstrip().startswith("#"):
            break
        if line.strip():
            comment.append(line.strip().removeprefix("#").removeprefix(" ").rstrip())
    return "\n".join(comment).strip()
