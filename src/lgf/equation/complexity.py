"""Complexity: the number of operations, variables and constants of an equation.

The paper counts the nodes of SymPy's simplified equation, all of it on one side, with u(t) applied: 23.2 on average
over the true equations of its Benchmark 1, 18.1 over Benchmark 2. `complexity` gives that number, slowly; `node_count`
counts the same nodes of an expression as it stands, fast, for use within a search.
"""

from functools import lru_cache

from lgf.expression.tree import Expression


def node_count(expression: Expression) -> int:
    """The number of SymPy nodes of the expression; equal to SymPy's own count if it is canonical and without open C's.

    Rare exceptions: a function whose argument has as many positive as negative terms (SymPy then chooses the sign by
    its order of terms), and abs of a product or power.
    """
    count = 0
    for node in expression.nodes():
        if node.head == "symbol":
            name, derivative = node.args
            # u(t) has a node for its argument; Derivative(u(t), (t, n)) has a tuple of t and n too
            count += 1 if name == "t" else 6 if derivative > 0 else 2
        elif node.head == "sqrt":
            count += 2  # Pow(x, 1/2)
        else:
            count += 1
            if node.head == "^" and node.args[0].head == "sqrt" and node.args[1].head == "number":
                count -= 2  # Pow(x, -1/2)
    return count


@lru_cache(maxsize=4096)
def complexity(left: Expression, right: Expression) -> int:
    """The paper's count for left = right: nodes of the simplified residual, right - left if left is a derivative."""
    import sympy

    from lgf.expression.sympy_conversion import to_sympy

    explicit = left.head == "symbol" and left.args[1] > 0
    residual = to_sympy(right - left if explicit else left - right)
    return sum(1 for _ in sympy.preorder_traversal(sympy.simplify(residual)))
