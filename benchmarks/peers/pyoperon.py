"""pyoperon: Operon's genetic programming with local search of the constants; the model by description length."""

from pyoperon.sklearn import SymbolicRegressor

from benchmarks.peers.exchange import Task, answer, criterion


def solve(task: Task) -> tuple[str, float]:
    """The model of shortest description on the Pareto front, and its criterion."""
    model = SymbolicRegressor(
        allowed_symbols="add,sub,mul,div,sin,cos,exp,log,sqrt,square,constant,variable",
        offspring_generator="basic",
        optimizer_iterations=10,
        max_length=30,
        max_depth=8,
        population_size=1000,
        generations=200,
        max_evaluations=task.evaluations,
        objectives=["mse", "length"],
        epsilon=1e-5,
        model_selection_criterion="minimum_description_length",
        uncertainty=[task.noise],
        n_threads=task.cores,
        random_state=task.seed,
    ).fit(task.X, task.y)
    tree = model.model_
    names = [f"x{i}" for i in range(task.X.shape[1])]
    parameters = sum(1 for node in tree.Nodes if node.IsConstant or node.IsVariable)
    return model.get_model_string(tree, 12, names), criterion(task.y, model.predict(task.X), parameters)


if __name__ == "__main__":
    answer(solve)
