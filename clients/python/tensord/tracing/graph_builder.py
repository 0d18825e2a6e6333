"""Builds a wire graph node by node, and knows the dtype and shape of every value."""

import threading

import numpy as np

from tensord import contract, dims, dtypes
from tensord.arguments.algebras import algebra_number
from tensord.array import Array

_active = threading.local()


class GraphBuilder:
    """Owns the contract.Graph of one trace. Confined to the thread that traces.

    Its methods are the operations of the wire, one node each: no broadcasting, no promotion. Operands must already
    agree; what the callers in this package pass does. Inside `with builder:` functions that take no Array, such as
    td.zeros, add to this graph. client: the Client whose server is asked for derivatives, None for the default one.
    computed_again: names of nodes that backward passes do not find in memory (td.checkpoint).
    """

    def __init__(self, name="", algebra=None, client=None):
        self.graph = contract.Graph(name=name, algebra=algebra_number(algebra))
        self.client = client
        self.computed_again = set()
        self._names = set()
        self._places = {}  # of nodes, by name
        self._values = {}  # by reference: the inputs and operands
        self._replaced = set()  # names of stand-ins
        self._node_count = 0
        self._constants = {}
        self._symbols = {}  # where an input's type binds a symbol: (input, axis)
        self._made = {}

    def __enter__(self):
        stack = _active.__dict__.setdefault("stack", [])
        stack.append(self)
        return self

    def __exit__(self, *_):
        _active.stack.pop()

    # ---- Inputs, outputs, nodes ----

    def input(self, name, dtype, shape):
        name = self._unique(name)
        self.graph.inputs.add(name=name, type=tensor_type(dtype, shape))
        value = self._values[name] = Array(self, name, dtype, shape)
        for axis, size in enumerate(shape):
            for leaf in dims.leaves_of(size):
                if size == dims.Dim.symbol(leaf):
                    self._symbols.setdefault(leaf, (value, axis))
        return value

    def once(self, key, make):
        """The result of `make`, made at the first call with this key."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def size_value(self, leaf):
        """An int64 of rank 0: the size that a symbol, or an axis of a value, has at run time."""
        place = (leaf.array, leaf.axis) if isinstance(leaf, dims.AxisSize) else self._binding_of(leaf)
        return self.once(("size", leaf), lambda: self.shape_of(*place))

    def binding_of(self, symbol):
        """An input of which an axis has the symbol as its size."""
        return self._binding_of(symbol)[0]

    def _binding_of(self, symbol):
        if symbol not in self._symbols:
            raise ValueError(f"the size {symbol} is unknown: no argument has it as a size of its own")
        return self._symbols[symbol]

    def new_symbol(self, name):
        """A symbol that no input has, named like `name`."""
        number = 1
        while f"{name}_{number}" in self._symbols:
            number += 1
        self._symbols[f"{name}_{number}"] = None
        return f"{name}_{number}"

    def output(self, name, value):
        self.graph.outputs.add(name=name, value=value.ref)

    def _unique(self, name):
        candidate, number = name, 2
        while candidate in self._names:
            candidate, number = f"{name}_{number}", number + 1
        self._names.add(candidate)
        return candidate

    def check_owns(self, value):
        """Raises ValueError for an Array of another trace."""
        if value.builder is not self:
            raise ValueError(f"{value!r} belongs to another trace: it cannot outlive the function that made it")
        if value.ref in self._replaced:
            raise ValueError(f"{value!r} stood for an argument of a function that is differentiated, and that has returned")

    def _node(self, name, operands):
        for operand in operands:
            self.check_owns(operand)
            self._values[operand.ref] = operand
        node = self._add_node(f"{name}_{self._node_count}", [operand.ref for operand in operands])
        self._node_count += 1
        return node

    def _add_node(self, name, references):
        node = self.graph.nodes.add(name=self._unique(name), inputs=references)
        self._places[node.name] = len(self.graph.nodes) - 1
        return node

    def _add_sizes(self, node, field, sizes):
        """Writes sizes into a field of a node's attributes. What they need beyond its operands becomes a shape
        source."""

        def operand_of(array):
            if array.builder is not self:
                raise ValueError(f"a size of {array!r} belongs to another trace")
            self._values[array.ref] = array
            if array.ref not in node.inputs:
                node.inputs.append(array.ref)
            return list(node.inputs).index(array.ref)

        field.extend(dims.to_wire(size, operand_of) for size in sizes)

    # ---- Nodes of other graphs, and of functions that are differentiated ----

    def reserve(self, name):
        """A name like `name` that nothing else has or will have."""
        return self._unique(name)

    def place_of(self, name):
        """The place of a node among the graph's nodes; None for an input."""
        return self._places.get(name)

    def value_of(self, reference):
        """The Array of a reference that an operation had as an operand; None for one that only copies of nodes have."""
        return self._values.get(reference)

    def copy_node(self, node, references):
        """Adds a copy of a node, with these operands and a name like its own."""
        copy = self._add_node(node.name, ())
        name = copy.name
        copy.CopyFrom(node)
        copy.name = name
        copy.inputs[:] = references
        return copy

    def stand_in(self, name, value):
        """An Array of the value's type, under a name like `name`, which is no value of the graph until
        replace_stand_ins."""
        made = Array(self, self._unique(name), value.dtype, value.shape)
        self._values[made.ref] = made
        return made

    def replace_stand_ins(self, start, values):
        """Puts Arrays, by the stand-ins' names, in the place of those in the nodes since the node `start`."""
        for node in self.graph.nodes[start:]:
            for place, reference in enumerate(node.inputs):
                if reference in values:
                    node.inputs[place] = values[reference].ref
        for name, value in values.items():
            del self._values[name]
            self._replaced.add(name)
            self._values[value.ref] = value

    # ---- Leaves ----

    def constant(self, values, dtype):
        """A constant of a NumPy array or of Python numbers. Equal small constants share a node."""
        array = np.asarray(dtypes.to_numpy(values, dtype), order="C")
        data = array.tobytes()
        key = (dtype, array.shape, data) if len(data) <= 64 else None
        if key in self._constants:
            return self._constants[key]
        node = self._node("constant", ())
        node.constant.value.dtype = dtype.wire
        node.constant.value.shape.extend(array.shape)
        node.constant.value.order = contract.ROW_MAJOR
        node.constant.value.data = data
        result = Array(self, node.name, dtype, array.shape)
        if key is not None:
            self._constants[key] = result
        return result

    def iota(self, dtype, shape, dimension):
        node = self._node("iota", ())
        node.iota.type.CopyFrom(tensor_type(dtype, shape))
        node.iota.dimension = dimension
        return Array(self, node.name, dtype, shape)

    # ---- Elementwise ----

    def unary(self, kind, x):
        node = self._node(kind.lower(), (x,))
        node.unary = contract.UNARY_OPS["UNARY_OP_" + kind]
        dtype = x.dtype
        if kind == "IS_FINITE":
            dtype = dtypes.bool_
        elif kind in ("ABS", "REAL", "IMAG"):
            dtype = dtypes.real_of(dtype)
        return Array(self, node.name, dtype, x.shape)

    def binary(self, kind, x, y):
        node = self._node(kind.lower(), (x, y))
        node.binary = contract.BINARY_OPS["BINARY_OP_" + kind]
        return Array(self, node.name, dtypes.complex_of(x.dtype) if kind == "COMPLEX" else x.dtype, x.shape)

    def compare(self, direction, x, y):
        node = self._node("compare_" + direction.lower(), (x, y))
        node.compare.direction = contract.COMPARE_DIRECTIONS["DIRECTION_" + direction]
        return Array(self, node.name, dtypes.bool_, x.shape)

    def select(self, predicate, on_true, on_false):
        node = self._node("select", (predicate, on_true, on_false))
        node.select.SetInParent()
        return Array(self, node.name, on_true.dtype, on_true.shape)

    def clamp(self, low, x, high):
        node = self._node("clamp", (low, x, high))
        node.clamp.SetInParent()
        return Array(self, node.name, x.dtype, x.shape)

    def convert(self, x, dtype):
        if x.dtype is dtype:
            return x
        node = self._node("convert", (x,))
        node.convert.dtype = dtype.wire
        return Array(self, node.name, dtype, x.shape)

    # ---- Structural ----

    def transpose(self, x, permutation):
        if list(permutation) == list(range(x.ndim)):
            return x
        node = self._node("transpose", (x,))
        node.transpose.permutation.extend(permutation)
        return Array(self, node.name, x.dtype, tuple(x.shape[axis] for axis in permutation))

    def reshape(self, x, shape):
        if shape == x.shape:
            return x
        node = self._node("reshape", (x,))
        self._add_sizes(node, node.reshape.shape, shape)
        node.reshape.order = contract.ROW_MAJOR
        return Array(self, node.name, x.dtype, shape)

    def broadcast_in_dim(self, x, shape, broadcast_dimensions):
        if shape == x.shape:
            return x
        node = self._node("broadcast_in_dim", (x,))
        self._add_sizes(node, node.broadcast_in_dim.shape, shape)
        node.broadcast_in_dim.broadcast_dimensions.extend(broadcast_dimensions)
        return Array(self, node.name, x.dtype, shape)

    def extract_diag(self, x, axis_a, axis_b):
        node = self._node("extract_diag", (x,))
        node.extract_diag.SetInParent()
        node.extract_diag.axis_a, node.extract_diag.axis_b = axis_a, axis_b
        return Array(self, node.name, x.dtype, x.shape[:axis_b] + x.shape[axis_b + 1 :])

    def embed_diag(self, x, axis_a, axis_b):
        node = self._node("embed_diag", (x,))
        node.embed_diag.SetInParent()
        node.embed_diag.axis_a, node.embed_diag.axis_b = axis_a, axis_b
        return Array(self, node.name, x.dtype, x.shape[:axis_b] + (x.shape[axis_a],) + x.shape[axis_b:])

    def triangle(self, kind, x, diagonal):
        """`kind` is "tril" or "triu". The matrix is the first two axes."""
        node = self._node(kind, (x,))
        getattr(node, kind).SetInParent()
        getattr(node, kind).diagonal = diagonal
        return Array(self, node.name, x.dtype, x.shape)

    # ---- Reductions and contraction ----

    def reduce(self, kind, x, dimensions, requires_elements=False):
        """Over no element the identity, or refused."""
        if not dimensions:
            return x
        node = self._node("reduce_" + kind.lower(), (x,))
        node.reduce.kind = contract.REDUCE_KINDS["KIND_" + kind]
        node.reduce.dimensions.extend(sorted(dimensions))
        if requires_elements:
            node.reduce.requires_elements = True
        return Array(
            self, node.name, x.dtype, tuple(size for axis, size in enumerate(x.shape) if axis not in dimensions)
        )

    def dot_general(self, x, y, contracting, batching, algebra=None):
        """`contracting` and `batching` are pairs of lists of axes; the result's axes are x's free, y's free, batch."""
        node = self._node("dot_general", (x, y))
        dot = node.dot_general
        dot.SetInParent()
        dot.algebra = algebra_number(algebra)
        dot.lhs_contracting_dimensions.extend(contracting[0])
        dot.rhs_contracting_dimensions.extend(contracting[1])
        dot.lhs_batching_dimensions.extend(batching[0])
        dot.rhs_batching_dimensions.extend(batching[1])
        free = [
            [
                size
                for axis, size in enumerate(operand.shape)
                if axis not in contracting[side] and axis not in batching[side]
            ]
            for side, operand in enumerate((x, y))
        ]
        return Array(self, node.name, x.dtype, tuple(free[0] + free[1] + [x.shape[axis] for axis in batching[0]]))

    # ---- Indexing and shape ----

    def gather(self, x, indices, attributes, slice_sizes, shape):
        """`attributes` are fields of contract.Gather; `shape` is the result's. A slice size that is a Dim makes the
        node a GatherDynamicSliceSizes."""
        static = dims.all_static(slice_sizes)
        node = self._node("gather", (x, indices))
        gather = contract.Gather(**attributes)
        if static:
            gather.slice_sizes.extend(slice_sizes)
            node.gather.CopyFrom(gather)
        else:
            node.gather_dynamic_slice_sizes.gather.CopyFrom(gather)
            self._add_sizes(node, node.gather_dynamic_slice_sizes.slice_sizes, slice_sizes)
        return Array(self, node.name, x.dtype, shape)

    def scatter(self, x, indices, updates, attributes, combiner):
        """`attributes` are fields of contract.Scatter but `combiner`, which is one of "ADD", "SET" …"""
        node = self._node("scatter", (x, indices, updates))
        number = contract.COMBINERS["COMBINER_" + combiner]
        node.scatter.CopyFrom(contract.Scatter(combiner=number, **attributes))
        return Array(self, node.name, x.dtype, x.shape)

    def slice(self, x, starts, limits, strides):
        if all(
            start == 0 and limit == size and stride == 1
            for start, limit, stride, size in zip(starts, limits, strides, x.shape)
        ):
            return x
        node = self._node("slice", (x,))
        node.slice.start_indices.extend(starts)
        node.slice.limit_indices.extend(limits)
        if any(stride != 1 for stride in strides):
            node.slice.strides.extend(strides)
        node.slice.SetInParent()
        shape = tuple(-(-(limit - start) // stride) for start, limit, stride in zip(starts, limits, strides))
        return Array(self, node.name, x.dtype, shape)

    def dynamic_slice(self, x, starts, sizes):
        node = self._node("dynamic_slice", (x, starts))
        node.dynamic_slice.SetInParent()
        node.dynamic_slice.slice_sizes.extend(sizes)
        return Array(self, node.name, x.dtype, tuple(sizes))

    def dynamic_update_slice(self, x, update, starts):
        node = self._node("dynamic_update_slice", (x, update, starts))
        node.dynamic_update_slice.SetInParent()
        return Array(self, node.name, x.dtype, x.shape)

    def pad(self, x, value, low, high):
        if not any(low) and not any(high):
            return x
        node = self._node("pad", (x, value))
        node.pad.edge_padding_low.extend(low)
        node.pad.edge_padding_high.extend(high)
        return Array(
            self, node.name, x.dtype, tuple(size + before + after for size, before, after in zip(x.shape, low, high))
        )

    def concatenate(self, operands, dimension):
        if len(operands) == 1:
            return operands[0]
        node = self._node("concatenate", operands)
        node.concatenate.SetInParent()
        node.concatenate.dimension = dimension
        shape = list(operands[0].shape)
        for operand in operands[1:]:
            shape[dimension] = shape[dimension] + operand.shape[dimension]
        return Array(self, node.name, operands[0].dtype, tuple(shape))

    def reverse(self, x, dimensions):
        if not dimensions:
            return x
        node = self._node("reverse", (x,))
        node.reverse.dimensions.extend(dimensions)
        return Array(self, node.name, x.dtype, x.shape)

    def shape_of(self, x, axis):
        node = self._node("shape_of", (x,))
        node.shape_of.SetInParent()
        node.shape_of.dimension = axis
        return Array(self, node.name, dtypes.int64, ())

    def dynamic_truncate(self, x, size, axis):
        """The result's size along the axis is a Dim of its own, one for equal bounds of axes of equal size."""
        node = self._node("dynamic_truncate", (x, size))
        node.dynamic_truncate.SetInParent()
        node.dynamic_truncate.dimension = axis
        result = Array(self, node.name, x.dtype, x.shape)
        length = self.once(("length", size.ref, x.shape[axis]), lambda: dims.Dim.of_axis(result, axis))
        result.shape = x.shape[:axis] + (length,) + x.shape[axis + 1 :]
        return result

    def pad_to_match(self, x, reference, axis):
        node = self._node("pad_to_match", (x, reference))
        node.pad_to_match.SetInParent()
        node.pad_to_match.dimension = axis
        length = dims.maximum(x.shape[axis], reference.shape[axis])
        return Array(self, node.name, x.dtype, x.shape[:axis] + (length,) + x.shape[axis + 1 :])

    def extension(self, message, attributes, operands, results):
        """An operation of a family, by its message's full name; one Array for each (dtype, shape) of `results`."""
        node = self._node(message.rsplit(".", 1)[1].lower(), operands)
        node.extension.op.type_url = f"type.googleapis.com/{message}"
        node.extension.op.value = contract.message_class(message)(**attributes).SerializeToString(deterministic=True)
        return [
            Array(self, f"{node.name}:{index}" if index else node.name, dtype, shape)
            for index, (dtype, shape) in enumerate(results)
        ]


def tensor_type(dtype, shape):
    return contract.TensorType(dtype=dtype.wire, shape=[dims.to_wire(size) for size in shape])


def base_name(reference):
    """The name of the node or input that a value reference names."""
    return reference.partition(":")[0]


def active_builder():
    """The builder of the trace that is under way in this thread, or None."""
    stack = getattr(_active, "stack", None)
    return stack[-1] if stack else None


def current_builder():
    """The builder of the trace that is under way in this thread. Raises RuntimeError where there is none."""
    builder = active_builder()
    if builder is None:
        raise RuntimeError(
            "td functions build a graph and work only inside a function that td.compile or td.evaluate "
            "traces; outside of one use NumPy"
        )
    return builder
