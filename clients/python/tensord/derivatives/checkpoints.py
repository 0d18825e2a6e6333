"""Functions of which a backward pass computes the inside again, instead of finding it in memory."""

from tensord.arguments import tree
from tensord.array import Array
from tensord.derivatives.gradients import named
from tensord.tracing.graph_builder import active_builder, base_name


def checkpoint(function):
    """A function like `function`, whose derivatives take less memory and more time.

    td.grad, td.vjp and their like keep the arguments and results of its calls for the backward pass, but nothing of what
    is between: that is computed again, shortly before it is needed. Of a chain of n layers, wrap groups of about sqrt(n).
    It computes what `function` does, and is the same where nothing is differentiated. Calls may be nested: the outermost
    one counts.
    """

    def checkpointed(*args, **keywords):
        builder = active_builder()
        if builder is None:
            return function(*args, **keywords)
        start = len(builder.graph.nodes)
        result = function(*args, **keywords)
        leaves, _ = tree.flatten(result)
        kept = {base_name(leaf.ref) for leaf in leaves if isinstance(leaf, Array)}
        builder.computed_again.update(node.name for node in builder.graph.nodes[start:] if node.name not in kept)
        return result

    return named("checkpoint", function, checkpointed)
