"""Evaluates a wire graph with NumPy, one node after another, as the comments of graph.proto say.

The oracle of the tests: it knows the contract and nothing of how the client traces, so that a traced function is
checked against the numbers that its graph means. It covers what the client emits and refuses the
rest. Slow and obvious.
"""

import itertools
import math

import numpy as np

import checkout  # noqa: F401
from tensord import contract, dtypes

ROW_MAJOR = contract.ROW_MAJOR


class NotCovered(Exception):
    """The oracle does not know the operation."""


def evaluate(graph, arguments):
    """The graph's outputs for NumPy arguments in the order of its inputs."""
    return Evaluation(graph, arguments).outputs()


class Evaluation:
    def __init__(self, graph, arguments):
        self.values, self.symbols = {}, {}
        for value, argument in zip(graph.inputs, arguments, strict=True):
            argument = np.asarray(argument)
            dtype = dtypes.from_wire(value.type.dtype)
            assert argument.dtype == dtype.numpy, f"input {value.name}: {argument.dtype} is not {dtype}"
            self.bind(value.type.shape, argument.shape)
            self.values[value.name] = argument
        for node in graph.nodes:
            assert node.name not in self.values, f"two values named {node.name}"
            operands = [self.values[reference.removesuffix(":0")] for reference in node.inputs]
            kind = node.WhichOneof("op")
            rule = getattr(self, "op_" + kind, None)
            if rule is None:
                raise NotCovered(kind)
            with np.errstate(all="ignore"):
                results = rule(getattr(node, kind), *operands)
            # Only an extension has several results.
            results = results if isinstance(results, list) else [results]
            for index, result in enumerate(results):
                self.values[f"{node.name}:{index}" if index else node.name] = np.asarray(result)
        self.graph = graph

    def outputs(self):
        return [self.values[output.value] for output in self.graph.outputs]

    def bind(self, shape, sizes):
        assert len(shape) == len(sizes)
        for expression, size in zip(shape, sizes):
            if expression.WhichOneof("expr") == "symbol":
                assert self.symbols.setdefault(expression.symbol, size) == size, f"symbol {expression.symbol}"
            else:
                assert self.size(expression) == size

    def size(self, expression, operands=()):
        kind = expression.WhichOneof("expr")
        if kind == "size":
            return expression.size
        if kind == "symbol":
            return self.symbols[expression.symbol]
        if kind == "operand":
            return operands[expression.operand.operand].shape[expression.operand.axis]
        names = {number: name for name, number in contract.DIM_KINDS.items()}
        functions = {
            "KIND_ADD": lambda a, b: a + b,
            "KIND_SUBTRACT": lambda a, b: a - b,
            "KIND_MULTIPLY": lambda a, b: a * b,
            "KIND_FLOOR_DIVIDE": lambda a, b: a // b,
            "KIND_MINIMUM": min,
            "KIND_MAXIMUM": max,
        }
        binary = expression.binary
        result = functions[names[binary.kind]](self.size(binary.lhs, operands), self.size(binary.rhs, operands))
        assert result >= 0, "a negative size"
        return result

    def shape(self, expressions, operands=()):
        return tuple(self.size(expression, operands) for expression in expressions)

    # ---- Leaves ----

    def op_constant(self, node):
        tensor = node.value
        flat = np.frombuffer(tensor.data, dtypes.from_wire(tensor.dtype).numpy)
        return flat.reshape(tuple(tensor.shape), order="C" if tensor.order == ROW_MAJOR else "F")

    def op_iota(self, node):
        shape = self.shape(node.type.shape)
        along = [1] * len(shape)
        along[node.dimension] = shape[node.dimension]
        counted = np.arange(shape[node.dimension]).reshape(along)
        return np.broadcast_to(counted, shape).astype(dtypes.from_wire(node.type.dtype).numpy)

    # ---- Elementwise ----

    def op_unary(self, kind, x):
        name = next(name for name, number in contract.UNARY_OPS.items() if number == kind).removeprefix("UNARY_OP_")
        integer_or_bool = x.dtype.kind in "ib"
        if name not in ("NEGATE", "ABS", "SIGN", "NOT"):
            assert not integer_or_bool, f"{name} of {x.dtype}"
        if name == "NOT":
            assert integer_or_bool
            return ~x
        functions = {
            "NEGATE": np.negative,
            "CONJ": np.conj,
            "ABS": np.abs,
            "SIGN": _sign,
            "EXP": np.exp,
            "LOG": np.log,
            "SIN": np.sin,
            "COS": np.cos,
            "TANH": np.tanh,
            "SQRT": np.sqrt,
            "RSQRT": lambda v: 1 / np.sqrt(v),
            "EXPM1": np.expm1,
            "LOG1P": np.log1p,
            "LOGISTIC": lambda v: 1 / (1 + np.exp(-v)),
            "ERF": np.vectorize(math.erf),
            "FLOOR": np.floor,
            "CEIL": np.ceil,
            "ROUND_NEAREST_EVEN": np.rint,
            "IS_FINITE": np.isfinite,
            "REAL": np.real,
            "IMAG": np.imag,
            "TAN": np.tan,
            "CBRT": np.cbrt,
            "SINH": np.sinh,
            "COSH": np.cosh,
            "ASIN": np.arcsin,
            "ACOS": np.arccos,
            "ATAN": np.arctan,
            "ASINH": np.arcsinh,
            "ACOSH": np.arccosh,
            "ATANH": np.arctanh,
            "LOG2": np.log2,
            "LOG10": np.log10,
            "EXP2": np.exp2,
        }
        if name in ("FLOOR", "CEIL", "ROUND_NEAREST_EVEN", "IS_FINITE", "ERF", "CBRT"):
            assert x.dtype.kind == "f", f"{name} of {x.dtype}"
        result = functions[name](x)
        return result if name in ("ABS", "IS_FINITE", "REAL", "IMAG") else result.astype(x.dtype)

    def op_binary(self, kind, x, y):
        name = next(name for name, number in contract.BINARY_OPS.items() if number == kind).removeprefix("BINARY_OP_")
        assert x.dtype == y.dtype and x.shape == y.shape, f"{name}: {x.dtype}{x.shape} and {y.dtype}{y.shape}"
        integer, boolean = x.dtype.kind == "i", x.dtype.kind == "b"
        if name == "DIVIDE":
            if integer:
                divisor = np.where(y == 0, 1, y)
                floor = x // divisor
                is_below = (floor * divisor != x) & ((x < 0) != (divisor < 0))
                return np.where(y == 0, -1, floor + is_below).astype(x.dtype)
            return x / y
        if name == "REMAINDER":
            return np.where(y == 0, x, np.fmod(x, np.where(y == 0, 1, y))) if integer else np.fmod(x, y)
        if name in ("AND", "OR", "XOR"):
            assert integer or boolean
            return {"AND": np.bitwise_and, "OR": np.bitwise_or, "XOR": np.bitwise_xor}[name](x, y)
        if name == "COMPLEX":
            assert x.dtype in (np.float32, np.float64)
            return (x + 1j * y).astype(np.complex64 if x.dtype == np.float32 else np.complex128)
        if boolean:
            return {
                "ADD": np.logical_or,
                "MULTIPLY": np.logical_and,
                "MAXIMUM": np.logical_or,
                "MINIMUM": np.logical_and,
            }[name](x, y)
        functions = {
            "ADD": np.add,
            "MULTIPLY": np.multiply,
            "MAXIMUM": np.maximum,
            "MINIMUM": np.minimum,
            "POW": np.power,
            "SUBTRACT": np.subtract,
            "ATAN2": np.arctan2,
        }
        return functions[name](x, y)

    def op_compare(self, node, x, y):
        assert x.dtype == y.dtype and x.shape == y.shape
        name = next(name for name, number in contract.COMPARE_DIRECTIONS.items() if number == node.direction)
        assert x.dtype.kind != "c" or name in ("DIRECTION_EQ", "DIRECTION_NE")
        return {
            "EQ": np.equal,
            "NE": np.not_equal,
            "LT": np.less,
            "LE": np.less_equal,
            "GT": np.greater,
            "GE": np.greater_equal,
        }[name.removeprefix("DIRECTION_")](x, y)

    def op_select(self, node, predicate, on_true, on_false):
        assert predicate.dtype == np.bool_ and predicate.shape in ((), on_true.shape)
        assert on_true.shape == on_false.shape and on_true.dtype == on_false.dtype
        return np.where(predicate, on_true, on_false)

    def op_clamp(self, node, low, x, high):
        assert low.dtype == x.dtype == high.dtype and low.shape in ((), x.shape) and high.shape in ((), x.shape)
        return np.minimum(np.maximum(x, low), high)

    def op_convert(self, node, x):
        target = dtypes.from_wire(node.dtype).numpy
        if x.dtype.kind == "c" and target.kind != "c":
            x = x.real
        return x != 0 if target.kind == "b" else x.astype(target)

    # ---- Structural ----

    def op_transpose(self, node, x):
        return x.transpose(tuple(node.permutation))

    def op_reshape(self, node, x, *sources):
        return x.reshape(self.shape(node.shape, (x,) + sources), order="C" if node.order == ROW_MAJOR else "F")

    def op_broadcast_in_dim(self, node, x, *sources):
        shape = self.shape(node.shape, (x,) + sources)
        places = list(node.broadcast_dimensions)
        assert len(places) == x.ndim and len(set(places)) == len(places)
        assert all(size in (1, shape[place]) for size, place in zip(x.shape, places))
        order = np.argsort(places)
        middle = [1] * len(shape)
        for place, size in zip(places, x.shape):
            middle[place] = size
        return np.broadcast_to(x.transpose(order).reshape(middle), shape)

    def op_extract_diag(self, node, x):
        assert x.shape[node.axis_a] == x.shape[node.axis_b]
        rest = np.diagonal(x, axis1=node.axis_a, axis2=node.axis_b)
        return np.moveaxis(rest, -1, node.axis_a - (node.axis_b < node.axis_a))

    def op_embed_diag(self, node, x):
        result = np.zeros(x.shape[: node.axis_b] + (x.shape[node.axis_a],) + x.shape[node.axis_b :], x.dtype)
        kept = node.axis_a + (node.axis_b <= node.axis_a)
        for place in range(x.shape[node.axis_a]):
            at = [slice(None)] * result.ndim
            at[kept] = at[node.axis_b] = place
            result[tuple(at)] = np.take(x, place, node.axis_a)
        return result

    def op_tril(self, node, x):
        return self.triangle(x, lambda offset: offset <= node.diagonal)

    def op_triu(self, node, x):
        return self.triangle(x, lambda offset: offset >= node.diagonal)

    def triangle(self, x, keeps):
        assert x.ndim >= 2
        mask = keeps(np.arange(x.shape[1]) - np.arange(x.shape[0])[:, None])
        return np.where(mask.reshape(mask.shape + (1,) * (x.ndim - 2)), x, np.zeros((), x.dtype))

    # ---- Reductions and contraction ----

    def op_reduce(self, node, x):
        name = next(name for name, number in contract.REDUCE_KINDS.items() if number == node.kind)
        axes = tuple(node.dimensions)
        assert list(axes) == sorted(set(axes))
        assert not node.requires_elements or all(x.shape[axis] for axis in axes)
        if name in ("KIND_AND", "KIND_OR"):
            assert x.dtype == np.bool_
            return np.all(x, axis=axes) if name == "KIND_AND" else np.any(x, axis=axes)
        if name in ("KIND_SUM", "KIND_PRODUCT"):
            return (np.sum if name == "KIND_SUM" else np.prod)(x, axis=axes, dtype=x.dtype)
        least = {"f": -np.inf, "c": -np.inf, "b": False}.get(x.dtype.kind)
        greatest = {"f": np.inf, "c": np.inf, "b": True}.get(x.dtype.kind)
        if least is None:
            least, greatest = np.iinfo(x.dtype).min, np.iinfo(x.dtype).max
        return np.max(x, axis=axes, initial=least) if name == "KIND_MAX" else np.min(x, axis=axes, initial=greatest)

    def op_dot_general(self, node, x, y):
        assert x.dtype == y.dtype and x.dtype.kind != "b"
        letters = iter("abcdefghijklmnopqrstuvwxyz")
        x_labels, y_labels = [next(letters) for _ in x.shape], [next(letters) for _ in y.shape]
        batch = []
        for x_axes, y_axes, is_batch in (
            (node.lhs_contracting_dimensions, node.rhs_contracting_dimensions, False),
            (node.lhs_batching_dimensions, node.rhs_batching_dimensions, True),
        ):
            for x_axis, y_axis in zip(x_axes, y_axes, strict=True):
                assert x.shape[x_axis] == y.shape[y_axis]
                y_labels[y_axis] = x_labels[x_axis]
                batch += [x_labels[x_axis]] if is_batch else []
        free = [label for label in x_labels if label not in y_labels] + [
            label for label in y_labels if label not in x_labels
        ]
        wide = x.dtype if x.dtype != np.float16 else np.float32
        equation = f"{''.join(x_labels)},{''.join(y_labels)}->{''.join(free + batch)}"
        return np.einsum(equation, x.astype(wide), y.astype(wide)).astype(x.dtype)

    # ---- Indexing and shape ----

    def op_gather(self, node, x, indices):
        return self.gather(node, x, indices, tuple(node.slice_sizes))

    def op_gather_dynamic_slice_sizes(self, node, x, indices, *sources):
        return self.gather(node.gather, x, indices, self.shape(node.slice_sizes, (x, indices) + sources))

    def gather(self, node, x, indices, slice_sizes):
        assert indices.dtype in (np.int32, np.int64) and len(slice_sizes) == x.ndim
        _check_ascending(node.offset_dims, node.collapsed_slice_dims, node.operand_batching_dims)
        dropped = [*node.collapsed_slice_dims, *node.operand_batching_dims]
        assert all(slice_sizes[axis] == 1 for axis in dropped) and len(set(dropped)) == len(dropped)
        assert all(size <= extent for size, extent in zip(slice_sizes, x.shape))
        vectors = _index_vectors(
            indices, node.index_vector_dim, x, node.start_index_map, node.operand_batching_dims,
            node.start_indices_batching_dims,
        )  # fmt: skip
        window = [size for axis, size in enumerate(slice_sizes) if axis not in dropped]
        batch_shape = tuple(size for axis, size in enumerate(indices.shape) if axis != node.index_vector_dim)
        result = np.empty(batch_shape + tuple(window), x.dtype)
        for position, start in vectors:
            start = [min(max(s, 0), extent - size) for s, extent, size in zip(start, x.shape, slice_sizes)]
            piece = x[tuple(slice(s, s + size) for s, size in zip(start, slice_sizes))]
            result[position] = piece.reshape(window)
        offsets = list(node.offset_dims)
        batch_places = [axis for axis in range(result.ndim) if axis not in offsets]
        return np.moveaxis(result, range(result.ndim), batch_places + offsets)

    def op_scatter(self, node, x, indices, updates):
        assert indices.dtype in (np.int32, np.int64) and updates.dtype == x.dtype
        _check_ascending(node.update_window_dims, node.inserted_window_dims, node.input_batching_dims)
        combiners = {number: name for name, number in contract.COMBINERS.items()}
        combine = {
            "COMBINER_ADD": np.add,
            "COMBINER_SET": lambda old, new: new,
            "COMBINER_MULTIPLY": np.multiply,
            "COMBINER_MINIMUM": np.minimum,
            "COMBINER_MAXIMUM": np.maximum,
        }[combiners[node.combiner]]
        dropped = [*node.inserted_window_dims, *node.input_batching_dims]
        assert len(set(dropped)) == len(dropped)
        places = list(node.update_window_dims)
        batch_places = [axis for axis in range(updates.ndim) if axis not in places]
        updates = updates.transpose(batch_places + places)
        batch_shape = tuple(size for axis, size in enumerate(indices.shape) if axis != node.index_vector_dim)
        assert updates.shape[: len(batch_shape)] == batch_shape and len(places) == x.ndim - len(dropped)
        vectors = _index_vectors(
            indices, node.index_vector_dim, x, node.scatter_dims_to_operand_dims, node.input_batching_dims,
            node.scatter_indices_batching_dims,
        )  # fmt: skip
        window = iter(updates.shape[len(batch_shape) :])
        sizes = [1 if axis in dropped else next(window) for axis in range(x.ndim)]
        assert all(size <= extent for size, extent in zip(sizes, x.shape))
        result = x.copy()
        for position, start in vectors:
            if any(s < 0 or s > extent - size for s, extent, size in zip(start, x.shape, sizes)):
                continue
            at = tuple(slice(s, s + size) for s, size in zip(start, sizes))
            result[at] = combine(result[at], updates[position].reshape(sizes))
        return result

    def op_slice(self, node, x):
        strides = list(node.strides) or [1] * x.ndim
        assert len(node.start_indices) == len(node.limit_indices) == len(strides) == x.ndim
        for start, limit, size in zip(node.start_indices, node.limit_indices, x.shape):
            assert 0 <= start <= limit <= size
        return x[tuple(map(slice, node.start_indices, node.limit_indices, strides))]

    def op_dynamic_slice(self, node, x, starts):
        assert all(width <= size for width, size in zip(node.slice_sizes, x.shape, strict=True))
        starts = [min(max(int(s), 0), size - width) for s, size, width in zip(starts, x.shape, node.slice_sizes)]
        return x[tuple(slice(s, s + width) for s, width in zip(starts, node.slice_sizes))]

    def op_dynamic_update_slice(self, node, x, update, starts):
        assert all(width <= size for width, size in zip(update.shape, x.shape, strict=True))
        starts = [min(max(int(s), 0), size - width) for s, size, width in zip(starts, x.shape, update.shape)]
        result = x.copy()
        result[tuple(slice(s, s + width) for s, width in zip(starts, update.shape))] = update
        return result

    def op_pad(self, node, x, value):
        assert value.shape == () and value.dtype == x.dtype and not any(node.interior_padding)
        widths = list(zip(node.edge_padding_low, node.edge_padding_high, strict=True))
        assert all(size + low + high >= 0 for size, (low, high) in zip(x.shape, widths)), "a negative size"
        padded = np.pad(x, [(max(low, 0), max(high, 0)) for low, high in widths], constant_values=value)
        return padded[
            tuple(slice(max(-low, 0), size - max(-high, 0)) for (low, high), size in zip(widths, padded.shape))
        ]

    def op_concatenate(self, node, *operands):
        assert len({operand.dtype for operand in operands}) == 1
        return np.concatenate(operands, node.dimension)

    def op_reverse(self, node, x):
        return np.flip(x, tuple(node.dimensions))

    def op_optimization_barrier(self, node, x, *others):
        return x

    def op_shape_of(self, node, x):
        return np.int64(x.shape[node.dimension])

    def op_dynamic_truncate(self, node, x, size):
        assert size.shape == () and size.dtype in (np.int32, np.int64)
        kept = min(max(int(size), 0), x.shape[node.dimension])
        return np.take(x, np.arange(kept), node.dimension)

    def op_pad_to_match(self, node, x, reference):
        missing = max(reference.shape[node.dimension] - x.shape[node.dimension], 0)
        return np.pad(x, [(0, missing if axis == node.dimension else 0) for axis in range(x.ndim)])

    # ---- Families ----

    def op_extension(self, node, *operands):
        name = node.op.type_url.rpartition("/")[2]
        message = contract.message_class(name).FromString(node.op.value)
        if name == "tensord.fft.v1.Fft":
            return [_fft(message, *operands)]
        if name == "tensord.einsum.v1.Einsum":
            return [_einsum(message, operands)]
        # The wire's matrix is the first two axes, NumPy's the last two.
        matrices = [np.moveaxis(operand, (0, 1), (-2, -1)) for operand in operands]
        results = _LINALG[name.removeprefix("tensord.linalg.v1.")](message, *matrices)
        batch = operands[0].ndim - 2
        return [np.moveaxis(r, range(batch, r.ndim), range(r.ndim - batch)) for r in map(np.asarray, results)]


def _check_ascending(*lists):
    for axes in lists:
        assert list(axes) == sorted(set(axes))


def _index_vectors(indices, vector_dim, x, index_map, batching, indices_batching):
    """Each place among the batch axes of `indices`, in column-major order, with the start on every axis of x."""
    if vector_dim == indices.ndim:
        indices = indices[..., None]
    assert indices.shape[vector_dim] == len(index_map) and vector_dim not in indices_batching
    assert [x.shape[axis] for axis in batching] == [indices.shape[axis] for axis in indices_batching]
    moved = np.moveaxis(indices, vector_dim, -1)
    for reversed_position in itertools.product(*map(range, reversed(moved.shape[:-1]))):
        position = reversed_position[::-1]
        start = [0] * x.ndim
        for place, axis in enumerate(index_map):
            start[axis] = int(moved[position][place])
        for axis, other in zip(batching, indices_batching):
            start[axis] = position[other - (other > vector_dim)]
        yield position, start


def _lu(message, a):
    """LU by elimination with row pivots, one matrix after another."""
    rows, columns = a.shape[-2:]
    least = min(rows, columns)
    permutation = np.zeros(a.shape[:-2] + (rows, rows), a.dtype)
    lower, upper = np.zeros(a.shape[:-1] + (least,), a.dtype), np.zeros(a.shape[:-2] + (least, columns), a.dtype)
    parity = np.ones(a.shape[:-2], a.dtype)
    for batch in np.ndindex(*a.shape[:-2]):
        work, order = a[batch].copy(), np.arange(rows)
        for k in range(least):
            pivot = k + np.argmax(np.abs(work[k:, k]))
            if pivot != k:
                work[[k, pivot]], order[[k, pivot]] = work[[pivot, k]], order[[pivot, k]]
                parity[batch] = -parity[batch]
            if work[k, k] != 0:
                work[k + 1 :, k] /= work[k, k]
            work[k + 1 :, k + 1 :] -= np.outer(work[k + 1 :, k], work[k, k + 1 :])
        permutation[batch] = np.eye(rows)[order]
        lower[batch] = np.tril(work[:, :least], -1) + np.eye(rows, least)
        upper[batch] = np.triu(work[:least])
    return permutation, lower, upper, parity


def _triangular_solve(message, a, b):
    assert message.left_side
    a = np.tril(a) if message.lower else np.triu(a)
    if message.unit_diagonal:
        a = a - a * np.eye(a.shape[-1]) + np.eye(a.shape[-1])
    turned = [a, np.swapaxes(a, -1, -2), np.conj(np.swapaxes(a, -1, -2))][message.transpose_a]
    return [np.linalg.solve(turned, b)]


def _cutoff(message, a):
    default = np.finfo(a.dtype).eps * max(a.shape[-2:])
    return message.relative_cutoff if message.HasField("relative_cutoff") else default


def _rank(message, a):
    values = np.linalg.svd(a, compute_uv=False)
    return np.sum(values > _cutoff(message, a) * values.max(-1, keepdims=True), -1)


def _householder_qr(_, a):
    h, tau = np.linalg.qr(a, mode="raw")  # as Fortran has it: transposed
    return np.swapaxes(h, -1, -2), tau


_LINALG = {
    "Cholesky": lambda m, a: [np.linalg.cholesky(a)],
    "Lu": _lu,
    "Qr": lambda m, a: np.linalg.qr(a, mode="complete" if m.full else "reduced"),
    "HouseholderQr": _householder_qr,
    "Svd": lambda m, a: np.linalg.svd(a, full_matrices=m.full),
    "SvdValues": lambda m, a: [np.linalg.svd(a, compute_uv=False)],
    "Eigh": lambda m, a: np.linalg.eigh(a),
    "EighValues": lambda m, a: [np.linalg.eigvalsh(a)],
    "Eig": lambda m, a: [_complex(result) for result in np.linalg.eig(a)],
    "EigValues": lambda m, a: [_complex(np.linalg.eigvals(a))],
    "Solve": lambda m, a, b: [np.linalg.solve(a, b)],
    "TriangularSolve": _triangular_solve,
    "Inverse": lambda m, a: [np.linalg.inv(a)],
    "TriangularDeterminant": lambda m, t: [np.linalg.det(t), *np.linalg.slogdet(t)],
    "Equilibrate": lambda m, a: [a, np.zeros(a.shape[:-2], a.real.dtype)],
    "Determinant": lambda m, a: [np.linalg.det(a)],
    "SignLogDeterminant": lambda m, a: np.linalg.slogdet(a),
    "PseudoInverse": lambda m, a: [np.linalg.pinv(a, _cutoff(m, a))],
    "LeastSquares": lambda m, a, b: [np.linalg.pinv(a, _cutoff(m, a)) @ b],
    "MatrixRank": lambda m, a: [_rank(m, a)],
}


def _complex(x):
    return x.astype(np.result_type(x.dtype, np.complex64))


def _fft(message, x):
    names = {number: name for name, number in contract.enum_values("tensord.fft.v1.Fft.Kind").items()}
    function = {
        "KIND_FFT": np.fft.fftn,
        "KIND_IFFT": np.fft.ifftn,
        "KIND_RFFT": np.fft.rfftn,
        "KIND_IRFFT": np.fft.irfftn,
    }
    axes, kind = list(message.axes), names[message.kind]
    result = function[kind](x, list(message.lengths) or None, axes, [None, "ortho", "forward"][message.norm])
    if x.dtype in (np.float32, np.complex64):
        result = result.astype(np.float32 if kind == "KIND_IRFFT" else np.complex64)
    return result


def _einsum(message, operands):
    """From left to right: the order changes no result."""
    assert len({operand.dtype for operand in operands}) == 1
    if message.equation:
        assert not message.operands and not message.HasField("output")
        inputs, output = message.equation.split("->")
        assert inputs.count("(") == inputs.count(")")
        terms = inputs.replace("(", "").replace(")", "").split(",")
        assert all(label.isascii() and label.isalpha() for label in "".join([*terms, output]))
    else:
        assert message.HasField("output")
        terms, output = [list(term.labels) for term in message.operands], list(message.output.labels)
    _check_path(message, len(operands))
    wide = np.float32 if operands[0].dtype == np.float16 else operands[0].dtype
    result, labels = np.ones((), wide), []
    for place, (term, operand) in enumerate(zip(terms, operands, strict=True)):
        later = {label for other in [*terms[place + 1 :], output] for label in other}
        number = {label: position for position, label in enumerate(dict.fromkeys([*labels, *term]))}
        kept = [label for label in number if label in later]
        lists = [[number[label] for label in axes] for axes in (labels, term, kept)]
        result, labels = np.einsum(result, lists[0], operand.astype(wide), lists[1], lists[2]), kept
    sizes = dict(zip(labels, result.shape))
    assert all(label in sizes for label in output)
    spread = np.zeros([sizes[label] for label in output], operands[0].dtype)
    for index in np.ndindex(*result.shape):  # a label repeated in the output fills a diagonal
        position = dict(zip(labels, index))
        spread[tuple(position[label] for label in output)] = result[index]
    return spread


def _check_path(message, count):
    for step in message.path:
        assert 1 < len(set(step.operands)) == len(step.operands) and max(step.operands) < count
        count -= len(step.operands) - 1
    assert count == 1 or not message.path


def _sign(x):
    if x.dtype.kind != "c":
        return np.sign(x)
    size = np.abs(x)
    return np.where(size == 0, 0, x / np.where(size == 0, 1, size))
