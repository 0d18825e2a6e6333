"""The part of a trace that lies between some of its values and others, as a graph of its own."""

from tensord import contract, dims
from tensord.derivatives.wire_sizes import sizes_in, symbols_in
from tensord.tracing.graph_builder import base_name, tensor_type

# Constants up to this size go along, since rules of derivatives may look at their numbers; larger ones stay in the
# trace, and are inputs.
_MOST_CONSTANT_BYTES = 64
# What such a constant is made larger by.
_SPREADING = ("broadcast_in_dim", "convert", "reshape")


class Region:
    """The nodes that lead from stand-ins to outputs, as the contract.Graph `graph`. Belongs to the builder's trace.

    Stand-ins are Arrays that are no values of the trace yet; the nodes that depend on them were added since the node
    `start`. The graph's inputs are the stand-ins, of the names `wrt`, and then `captured`: Arrays of the trace that do
    not depend on a stand-in, but which the nodes read. Nodes keep their names, `names`.
    """

    def __init__(self, builder, start, stand_ins, outputs):
        self._builder, self._stand_ins = builder, {one.ref for one in stand_ins}
        self.captured, self.names = [], []
        self._references = {}  # names of captured values that may not be an input's name
        self._unsaid_sizes = {}  # symbols for sizes that the trace's run decides
        self.graph = contract.Graph(name=builder.graph.name, algebra=builder.graph.algebra)
        self.wrt = [one.ref for one in stand_ins]
        dependent = self._dependent_names(start)
        for one in stand_ins:
            self.graph.inputs.add(name=one.ref, type=self._type_of(one))
        self._capture_all({one.ref: one for one in outputs}, dependent)
        self._bind_symbols()
        for place, output in enumerate(outputs):
            self.graph.outputs.add(name=f"result_{place}", value=self._references.get(output.ref, output.ref))

    def _dependent_names(self, start):
        names = set(self._stand_ins)
        for node in self._builder.graph.nodes[start:]:
            if any(base_name(reference) in names for reference in node.inputs):
                names.add(node.name)
        return names

    def _capture_all(self, outputs, dependent):
        """Adds the nodes that the outputs need, and captures what those read of the rest of the trace."""
        needed, seen, waiting = set(), set(), list(outputs)
        while waiting:
            reference = waiting.pop()
            name = base_name(reference)
            if reference in seen or name in self._stand_ins:
                continue
            seen.add(reference)
            place = self._builder.place_of(name)
            value = outputs[reference] if reference in outputs else self._builder.value_of(reference)
            # A node that a server wrote has no known type, and so goes along with what it reads.
            if place is None or value is not None and name not in dependent and not self._is_small(name):
                self._capture(value)
            else:
                needed.add(place)
                waiting += self._builder.graph.nodes[place].inputs
        for place in sorted(needed):
            node = self.graph.nodes.add()
            node.CopyFrom(self._builder.graph.nodes[place])
            for index, reference in enumerate(node.inputs):
                node.inputs[index] = self._references.get(reference, reference)
            self.names.append(node.name)

    def _is_small(self, name):
        place = self._builder.place_of(name)
        if place is None:
            return False
        node = self._builder.graph.nodes[place]
        kind = node.WhichOneof("op")
        if kind == "constant":
            return len(node.constant.value.data) <= _MOST_CONSTANT_BYTES
        return kind == "iota" or kind in _SPREADING and all(self._is_small(base_name(one)) for one in node.inputs)

    def _capture(self, value):
        name = value.ref
        if ":" in name:
            name = self._references[value.ref] = self._builder.reserve(value.ref.replace(":", "_"))
        self.captured.append(value)
        self.graph.inputs.add(name=name, type=self._type_of(value))

    def _type_of(self, value):
        return tensor_type(value.dtype, [self._said(size) for size in value.shape])

    def _said(self, size):
        """A size as an input's type may have it: one that a run decides is a symbol."""
        if not any(isinstance(leaf, dims.AxisSize) for leaf in dims.leaves_of(size)):
            return size
        if size not in self._unsaid_sizes:
            self._unsaid_sizes[size] = dims.Dim.symbol(self._builder.new_symbol("axis_size"))
        return self._unsaid_sizes[size]

    def _bind_symbols(self):
        """Captures an input of the trace for each symbol that no input of this graph binds yet."""
        sizes = [size for one in self.graph.inputs for size in one.type.shape]
        bound = {size.symbol for size in sizes if size.WhichOneof("expr") == "symbol"}
        for node in self.graph.nodes:
            sizes += sizes_in(node)
        for symbol in sorted({symbol for size in sizes for symbol in symbols_in(size)} - bound):
            value = self._builder.binding_of(symbol)
            if all(value is not one for one in self.captured):
                self._capture(value)
