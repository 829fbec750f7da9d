"""The language of a search for systems."""

from lgf.data.problem import Problem
from lgf.expression.frame import Frame
from lgf.fit.target import Target
from lgf.grammar import Grammar, load_grammar
from lgf.language.system_language import SystemLanguage, make_system_language

GRAMMAR = "systems"  # the grammar of the package for several states


def system_language(grammar: Grammar, problem: Problem, frame: Frame, target: Target) -> SystemLanguage:
    """The language of systems of this frame; a grammar of one state is replaced by the package's own for systems."""
    chosen = grammar if grammar.template == "system" else load_grammar(GRAMMAR)
    return make_system_language(chosen, problem, frame, target.ranges)
