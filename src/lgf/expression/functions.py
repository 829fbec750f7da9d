"""The table of the functions of equations; a new function is added here."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Function(NamedTuple):
    """A function of one argument, in the forms that the package uses."""

    code: int  # its instruction in the register machine (`solver.kernels.machine` holds the compiled form)
    array: Callable  # on NumPy arrays, NaN outside its domain
    scalar: Callable[[float], float]  # of one number, ValueError outside its domain
    sympy: str  # its name in SymPy
    latex: str  # format string for the argument


FUNCTIONS: dict[str, Function] = {
    "sin": Function(6, np.sin, math.sin, "sin", r"\sin\left({}\right)"),
    "cos": Function(7, np.cos, math.cos, "cos", r"\cos\left({}\right)"),
    "exp": Function(8, np.exp, math.exp, "exp", "e^{{{}}}"),
    "log": Function(9, np.log, math.log, "log", r"\log\left({}\right)"),
    "sqrt": Function(11, np.sqrt, math.sqrt, "sqrt", r"\sqrt{{{}}}"),
    "abs": Function(12, np.abs, abs, "Abs", r"\left|{}\right|"),
    "tanh": Function(13, np.tanh, math.tanh, "tanh", r"\tanh\left({}\right)"),
}
