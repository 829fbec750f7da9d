"""The constants of the chosen equation as rows: term, value, standard error, spread between experiments."""

import math
from typing import Any

from lgf.equation.system import System
from lgf.equation.units import unit_text
from lgf.runs.request import Run


def constant_rows(run: Run) -> list[dict[str, Any]]:
    """One row for each constant of the displayed system, or of the fitted one if a constant varies by experiment.

    `spread` is the standard deviation between experiments and `experiments` the value in each; both are None for a
    common constant. With units each row has the `unit` of its constant.
    """
    fit = run.best.fit
    varying = {v.constant: v.deviation for v in fit.sharing.varying}
    units = run.request.problem.units
    system = System(fit.skeleton, fit.values, fit.errors, units=units) if varying else run.system
    errors = system.errors or (math.nan,) * len(system.values)
    return [
        {
            "term": term,
            "value": value,
            "error": error,
            **({"unit": "" if unit is None else unit_text(unit)} if units else {}),
            "spread": varying.get(i),
            "experiments": fit.by_experiment[:, i].tolist() if i in varying else None,
        }
        for i, (term, value, error, unit) in enumerate(
            zip(system.terms, system.values, errors, system.constant_units, strict=True)
        )
    ]
