"""Context-free grammars of equations: rules and derivations."""

from lgf.grammar.blocks import Blocks, Extent, extent, join, join_rules, split, split_rules
from lgf.grammar.derivation import Derivation, bits, decode, pad, sample, spell, unpad
from lgf.grammar.diagnostics import GrammarError
from lgf.grammar.enumeration import enumerate_derivations
from lgf.grammar.instantiation import instantiate
from lgf.grammar.loading import grammar_names, load_grammar
from lgf.grammar.restriction import mentions, restrict
from lgf.grammar.rules import TEMPLATES, Grammar, Rule
from lgf.grammar.text_format import read_grammar

__all__ = [
    "TEMPLATES",
    "Blocks",
    "Derivation",
    "Extent",
    "Grammar",
    "GrammarError",
    "Rule",
    "bits",
    "decode",
    "enumerate_derivations",
    "extent",
    "grammar_names",
    "instantiate",
    "join",
    "join_rules",
    "load_grammar",
    "mentions",
    "pad",
    "read_grammar",
    "restrict",
    "sample",
    "spell",
    "split",
    "split_rules",
    "unpad",
]
