"""What the server answers of a region's derivative, and how it becomes nodes of the trace."""

from tensord import contract, dims
from tensord.array import Array
from tensord.client import default_client
from tensord.derivatives.wire_sizes import replace_symbols, sizes_in, symbols_in
from tensord.tracing.graph_builder import base_name


class Derivative:
    """The derivative of a Region by one mode: "jvp", "vjp" or "grad". Belongs to the region's trace.

    values: the Arrays of the trace that the region's stand-ins stand for; wrt: names of stand-ins; outputs: places of the
    region's outputs, None for all. What does not depend on tangents or cotangents
    is added to the trace once; the region's own nodes are in it already. Raises td.Unimplemented where an op has no rule,
    with the node and the op.
    """

    def __init__(self, builder, region, mode, values, wrt, outputs=None):
        self._builder = builder
        graph = region.graph if outputs is None else _with_outputs(region.graph, outputs)
        kept = _kept(region, builder.computed_again) if mode != "jvp" else ()
        self._graph = (builder.client or default_client()).differentiate(graph, mode, wrt, checkpoints=kept)
        arrays = list(values) + region.captured
        given, self._added = self._graph.inputs[: len(arrays)], self._graph.inputs[len(arrays) :]
        self._known = {name: name for name in region.names}
        self._known.update((one.name, array.ref) for one, array in zip(given, arrays))
        self._sizes = _sizes_of(given, arrays)
        self._shared, self._own = self._split(self._needed_nodes())

    def apply(self, arrays, types):
        """Arrays of the derivative's outputs, which have these (dtype, shape), given tangents or cotangents."""
        for node in self._shared:
            self._known[node.name] = self._add(node, self._known, self._sizes)
        self._shared = []
        known = {**self._known, **{one.name: array.ref for one, array in zip(self._added, arrays)}}
        sizes = {**self._sizes, **_sizes_of(self._added, arrays)}
        for node in self._own:
            known[node.name] = self._add(node, known, sizes)
        return [
            Array(self._builder, _renamed(output.value, known), dtype, shape)
            for output, (dtype, shape) in zip(self._graph.outputs, types)
        ]

    def _needed_nodes(self):
        """The nodes that are to be added, in order: the server repeats the region's, which are there already."""
        nodes = {node.name: node for node in self._graph.nodes}
        needed, waiting = set(), [output.value for output in self._graph.outputs]
        while waiting:
            name = base_name(waiting.pop())
            if name in nodes and name not in needed and name not in self._known:
                needed.add(name)
                waiting += nodes[name].inputs
        return [node for node in self._graph.nodes if node.name in needed]

    def _split(self, nodes):
        """(the nodes that depend on nothing that a call gives, the others)."""
        own = {one.name for one in self._added}
        symbols = {symbol for one in self._added for size in one.type.shape for symbol in symbols_in(size)}
        symbols -= {symbol for one in self._graph.inputs if one.name not in own
                    for size in one.type.shape for symbol in symbols_in(size)}  # fmt: skip
        for node in nodes:
            reads = any(base_name(reference) in own for reference in node.inputs)
            if reads or any(symbol in symbols for size in sizes_in(node) for symbol in symbols_in(size)):
                own.add(node.name)
        return [node for node in nodes if node.name not in own], [node for node in nodes if node.name in own]

    def _add(self, node, known, sizes):
        """Adds a copy of a node, and returns its name."""
        copy = self._builder.copy_node(node, [_renamed(reference, known) for reference in node.inputs])
        takes_operands = copy.WhichOneof("op") != "iota"

        def operand_of(array):
            copy.inputs.append(array.ref)
            return len(copy.inputs) - 1

        for size in sizes_in(copy):
            replace_symbols(size, sizes, operand_of if takes_operands else None)
        return copy.name


def _kept(region, computed_again):
    """The nodes that a backward pass finds in memory; none names all of them."""
    if computed_again.isdisjoint(region.names):
        return ()
    return [region.graph.inputs[0].name] + [name for name in region.names if name not in computed_again]


def _with_outputs(graph, places):
    copy = contract.Graph(name=graph.name, inputs=graph.inputs, nodes=graph.nodes, algebra=graph.algebra)
    copy.outputs.extend(graph.outputs[place] for place in places)
    return copy


def _renamed(reference, known):
    name, colon, index = reference.partition(":")
    place = known[name]
    return place if not colon or index == "0" else f"{place}:{index}"


def _sizes_of(inputs, arrays):
    """The sizes of symbols that have another name, or none, in the trace."""
    return {
        size.symbol: actual
        for one, array in zip(inputs, arrays)
        for size, actual in zip(one.type.shape, array.shape)
        if size.WhichOneof("expr") == "symbol" and actual != dims.Dim.symbol(size.symbol)
    }
