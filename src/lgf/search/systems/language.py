"""The language of a search for systems."""

from lgf.data.problem import Problem
from lgf.expression.frame import Frame
from lgf.fit.target import Target
from lgf.grammar import Grammar, load_grammar
from lgf.language.system_language import SystemLanguage, make_system_language

GRAMMAR = "systems"  # the grammar of the package for several states


def grammar_of_systems(grammar: Grammar) -> Grammar:
    """The grammar, if it says systems, else the package's own for systems."""
    return grammar if grammar.template == "system" else load_grammar(GRAMMAR)


def system_language(grammar: Grammar, problem: Problem, frame: Frame, target: Target) -> SystemLanguage:
    """The language of systems of this frame; a grammar of one state is replaced by the package's own for systems."""
    return make_system_language(grammar_of_systems(grammar), problem, frame, target.ranges)
