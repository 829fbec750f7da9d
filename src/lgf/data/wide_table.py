"""Tables in which every measured column is an experiment of the same quantity, as plate readers write them."""

from dataclasses import replace

import numpy as np

from lgf.data.column_roles import Roles
from lgf.data.column_units import header_unit
from lgf.data.table import Table


def long_form(table: Table, roles: Roles) -> tuple[Table, Roles]:
    """The same measurements below each other, with one measured column and one that names the experiments."""
    n, wells = len(table), len(roles.values)
    shared = [roles.time, *(k for _, k in roles.inputs), *(k for k in (roles.clock, roles.weight) if k is not None)]
    stacked = np.concatenate([table.numbers(k) for k in roles.values])
    labels = np.repeat(np.array([table.names[k] for k in roles.values], dtype=object), n)
    units = {header_unit(table.names[k]) for k in roles.values}
    unit = units.pop() if len(units) == 1 else None
    measured = str(roles.variables[0]) + ("" if unit is None else f" [{unit}]")
    names = (*(table.names[k] for k in shared), measured, "experiment")
    long = Table(
        names,
        (*(np.tile(table.columns[k], wells) for k in shared), stacked, labels),
        table.source,
        None if table.lines is None else np.tile(table.lines, wells),
        table.notes,
    )
    moved = replace(
        roles,
        time=0,
        values=(len(shared),),
        inputs=tuple((name, 1 + i) for i, (name, _) in enumerate(roles.inputs)),
        experiment=(len(shared) + 1,),
        clock=None if roles.clock is None else shared.index(roles.clock),
        weight=None if roles.weight is None else shared.index(roles.weight),
        wide=False,
    )
    return long, moved
