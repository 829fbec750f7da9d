"""`lgf warm`: compiles everything ahead, for images of containers and nodes of a cluster."""


def warm() -> None:
    """Compile all numerical kernels now, so that no later run waits for it."""
    from dataclasses import replace

    import numpy as np

    from lgf.cli.terminal import compile_kernels
    from lgf.compilation import CACHED
    from lgf.data.knowledge import Knowledge
    from lgf.data.observation import Observation
    from lgf.data.problem import Problem
    from lgf.errors import LgfError
    from lgf.expression.frame import Variable
    from lgf.runs.presets import model_named, preset_named, with_budget
    from lgf.runs.request import Request, execute
    from lgf.standard_error import make_console

    if not CACHED:
        raise LgfError(
            "no folder can be written to keep compiled code in; name one by the environment variable NUMBA_CACHE_DIR."
        )
    console = make_console()
    compile_kernels(console)
    # Kernels that only some searches need are compiled by small searches: one equation, and a system.
    t = np.linspace(0.0, 6.0, 40)
    oscillation = np.column_stack([np.cos(t), -np.sin(t)])
    records = {
        "one equation": Observation(t, oscillation[:, 0], initial={Variable("u"): 1.0, Variable("u", 1): 0.0}),
        "a system": Observation(t, oscillation, (Variable("x"), Variable("y"))),
    }
    for name, record in records.items():
        console.print(f"trying {name} ...", style="dim")
        grammar, trained = model_named("standard")
        settings = with_budget(preset_named("default"), 120, None)
        settings = replace(settings, search=replace(settings.search, population=30))
        execute(Request(Problem((record,), Knowledge()), grammar, settings, 0, (), trained, name))
    console.print("all kernels are compiled.")
