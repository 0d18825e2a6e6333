"""Functions that read and write at places, and take diagonals and triangles, with what they mean in NumPy."""

import numpy as np

import checkout  # noqa: F401
import tensord as td
from function_cases import Case, booleans, both, complexes, integers, reals, same

X, CUBE = reals(4, 6), reals(3, 4, 5)
TYPES = ("bool", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128")
I, J = np.array([0, 3, -1, 1]), np.array([[0], [-2]], np.int32)


def of_type(dtype, *shape):
    """Small whole numbers, so that sums are exact in every type."""
    return integers(*shape, low=0 if dtype == "bool" else -4, high=2 if dtype == "bool" else 5).astype(dtype)


def updated(key, operation=None):
    """NumPy's x[key] = values, or operation.at(x, key, values), on a copy."""

    def run(x, values, *_):
        result = x.copy()
        if operation is None:
            result[key] = values
        else:
            operation.at(result, key, values)
        return result

    return run


def put(x, indices, values, axis):
    result = x.copy()
    np.put_along_axis(result, indices, values, axis)
    return result


def window_of(x, starts, sizes):
    starts = [min(max(int(s), 0), n - size) for s, n, size in zip(starts, x.shape, sizes)]
    return tuple(slice(s, s + size) for s, size in zip(starts, sizes))


def padded(x, size, axis):
    widths = [(0, max(size - x.shape[axis], 0) if a == axis else 0) for a in range(x.ndim)]
    return np.pad(x, widths)


_READS = [
    same("arrays_of_integers", lambda x, i, j: (x[i, i], x[:, i, i], x[i, :, i], x[j, i], x[..., i]), CUBE, I % 3, J),
    same(
        "arrays_and_integers", lambda x, i: (x[0, :, i], x[:, 0, i], x[i, 0], x[i, :, -1], x[0, i, None]), CUBE, I % 3
    ),
    same("arrays_and_slices", lambda x, i: (x[::-1, i, 1:3], x[i, ::2, i], x[1:, i[1:], ::-2]), CUBE, I % 3),
    same("arrays_apart", lambda x, i: (x[:, i, ..., i], x[i, None, i], x[None, i, None], x[i, ..., None]), CUBE, I % 3),
    same("known_arrays", lambda x: (x[[0, 2], [1, -1]], x[[[0], [2]], :, [1, 3]], x[range(2)], x[(1, 2), 0]), CUBE),
    same("known_masks", lambda x: (x[np.arange(3) > 0], x[[True, False, True], 1:], x[X[:3, :4] > 0]), CUBE),
    same("no_index", lambda x: (x[()], x[...], x[[], 0], x[:, np.zeros((0, 2), int)], x[np.zeros((3, 4), bool)]), CUBE),
    same("no_entry", lambda x: (x[[]], x[:, [0]], x[np.zeros(0, int), [1]]), np.zeros((0, 2))),
    same(
        "traced_integers",
        lambda x, i, j: (x[i], x[i, j], x[:, i], x[i, :, j], x[-1, i], x[i, [0, 1]]),
        CUBE,
        np.int64(-2),
        np.int32(1),
    ),
    same("traced_bounds", lambda x, i: (x[:i], x[i:], x[: i + 9], x[-9 - i :]), X, np.int64(2)),
    same("traced_negative_bounds", lambda x, i: (x[:i], x[:, i:], x[i - 9 :], x[: i - 9]), X, np.int64(-1)),
    same(
        "traced_pair_of_bounds",
        lambda x, i, j: (x[i:j], x[1:j], x[i:-1], x[j:i], x[:, i:j][1:]),
        X,
        np.int64(1),
        np.int32(3),
    ),
    both("take", lambda p, x, i: (p.take(x, i), p.take(x, i, axis=1), p.take(x, 2, 0), p.take(x, [[1, -1]], -1)), X, I),
    both("take_clip", lambda p, x, i: (p.take(x, i, axis=1, mode="clip"), p.take(x, [-3, 99], mode="clip")), X, I * 9),
    both("take_wrap", lambda p, x, i: (p.take(x, i, axis=1, mode="wrap"), p.take(x, [-30, 99], mode="wrap")), X, I * 9),
    both(
        "take_along_axis",
        lambda p, x, i: (p.take_along_axis(x, i, 1), p.take_along_axis(x, i[:, :2], -1)),
        X,
        integers(4, 3, low=-6, high=6),
    ),
    both("take_along_axis_ravel", lambda p, x, i: p.take_along_axis(x, i, None), X, I),
    both("take_along_axis_sorts", lambda p, x, i: p.take_along_axis(x, i, -1), CUBE, np.argsort(CUBE, axis=-1)),
    both(
        "take_along_axis_broadcasts",
        lambda p, x, i: p.take_along_axis(x, i, 1),
        CUBE,
        integers(1, 2, 5, low=-4, high=4),
    ),
    both("take_along_axis_axis_0", lambda p, x, i: p.take_along_axis(x, i, 0), CUBE, integers(7, 4, 1, low=-3, high=3)),
]
_READS += [
    same(
        f"read_{dtype}",
        lambda x, i: (x[i], x[:, i], x[i, i], np.take_along_axis(x, i[:, None], 1)),
        of_type(dtype, 4, 4),
        I,
    )
    for dtype in TYPES
]

_OPERATIONS = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


def _at(name, key, x, values, *, operations=("set", *_OPERATIONS)):
    """x.at[key].operation(values) for each operation. The key is known while tracing."""
    for operation in operations:
        yield Case(
            f"at_{name}_{operation}({x.dtype})",
            lambda x, values, operation=operation: getattr(x.at[key], operation)(values),
            updated(key, _OPERATIONS.get(operation)),
            x,
            values,
        )


def _traced_at(name, make_key, x, values, *indices, operations=("set", *_OPERATIONS)):
    """The same with a key that holds traced arrays."""
    for operation in operations:
        yield Case(
            f"at_{name}_{operation}({x.dtype})",
            lambda x, values, *i, operation=operation: getattr(x.at[make_key(*i)], operation)(values),
            lambda x, values, *i, operation=operation: updated(make_key(*i), _OPERATIONS.get(operation))(x, values),
            x,
            values,
            *indices,
        )


_DUPLICATES = np.array([1, 3, 1, -1, 0, 1])
_TABLE = np.array([[1, 2, 1], [3, 1, -1]])
_WRITES = [
    *_at("integer", (1, -2), X, np.float64(2.5)),
    *_at("row", 2, X, reals(6)),
    *_at("window", np.s_[1:3, -4:], X, reals(2, 1)),
    *_at("window_reversed", np.s_[::-1, 1:3], X, reals(4, 2)),
    *_at("whole", ..., X, reals(6)),
    *_at("steps", np.s_[::2, 4:0:-3], X, reals(2, 2)),
    *_at("steps_and_window", np.s_[1:3, ::2, 1:4], CUBE, reals(2, 2, 3)),
    *_at("new_axes", np.s_[None, 1:3, None, ::2], X, reals(1, 2, 1, 3)),
    *_at("nothing", np.s_[4:], X, reals(6)),
    *_at("known", ([0, 2], slice(None), [1, -1]), CUBE, reals(2, 4)),
    *_at("mask", X > 0, X, np.float64(0.25)),
    *_traced_at("rows", lambda i: i, X, reals(6, 6), _DUPLICATES),
    *_traced_at("rows_scalar", lambda i: i, X, np.float64(1.5), _DUPLICATES),
    *_traced_at("columns", lambda i: np.s_[:, i], X, reals(6), _DUPLICATES),
    *_traced_at("table", lambda i: i, X, reals(2, 3, 6), _TABLE),
    *_traced_at("table_of_columns", lambda i: np.s_[1:3, i], X, reals(2, 2, 3), _TABLE),
    *_traced_at("points", lambda i, j: (i, j), X, reals(2, 3), _TABLE, np.array([1, 1, -1], np.int32)),
    *_traced_at("apart", lambda i: np.s_[i, 1:3, i], CUBE, reals(6, 2), _DUPLICATES % 3),
    *_traced_at("mixed", lambda i: np.s_[1, None, i, ::2], CUBE, reals(6, 1, 3), _DUPLICATES),
    *_traced_at("mixed_reversed", lambda i: np.s_[::-2, i, ::-1], CUBE, reals(2, 6, 5), _DUPLICATES),
    *_traced_at("scalars", lambda i, j: np.s_[i, :, j], CUBE, reals(4), np.int64(-1), np.int32(2)),
    *_traced_at("vector", lambda i: i, reals(5), reals(6), _DUPLICATES),
]
for _dtype in TYPES:
    _operations = ("set", "add", "multiply", "min", "max")
    _WRITES += _traced_at(
        "type", lambda i: i, of_type(_dtype, 4, 3), of_type(_dtype, 6, 3), _DUPLICATES, operations=_operations
    )
_WRITES += [
    Case(
        "at_subtract",
        lambda x, v, i: x.at[i].subtract(v),
        lambda x, v, i: updated(i, np.subtract)(x, v),
        X,
        reals(6, 6),
        _DUPLICATES,
    ),
    Case("at_get", lambda x, i: x.at[i, 1:].get(), lambda x, i: x[i, 1:], X, I),
    Case(
        "at_casts",
        lambda x, v: (x.at[0].set(v), x.at[1].set(2.7), x.at[2].add(True)),
        lambda x, v: (updated(0)(x, v), updated(1)(x, 2.7), updated(2, np.add)(x, True)),
        integers(4, 2),
        reals(2),
    ),
    Case(
        "at_skips",
        lambda x, i: (x.at[i].set(9.0), x.at[1:3, i].add(1.0)),
        lambda x, i: (updated([3, 1])(x, 9.0), updated(np.s_[1:3, [3, 4, 1]], np.add)(x, 1.0)),
        reals(4, 5),
        np.array([3, 4, -6, 1, 2**40, -(2**40)]),
    ),
    Case(
        "reads_clamp",
        lambda x, i: x[i],
        lambda x, i: x[[3, 3, 0, 1, 3, 0]],
        reals(4, 5),
        np.array([3, 4, -6, 1, 2**62, -(2**62)]),
    ),
    Case(
        "put_along_axis",
        lambda x, i, v: td.put_along_axis(x, i, v, 1),
        lambda x, i, v: put(x, i, v, 1),
        X,
        np.array([[0], [5], [-1], [2]]),
        reals(4, 1),
    ),
    Case(
        "put_along_axis_broadcasts",
        lambda x, i, v: td.put_along_axis(x, i, 7, 0),
        lambda x, i, v: put(x, i, 7, 0),
        CUBE,
        np.array([[[1]], [[-1]]]),
        reals(1),
    ),
    Case(
        "put_along_axis_ravel",
        lambda x, i, v: td.put_along_axis(x, i, v, None),
        lambda x, i, v: put(x, i, v, None),
        X,
        I,
        reals(4),
    ),
]

_DIAGONALS = []
for _x in [*(of_type(dtype, 4, 6) for dtype in TYPES), reals(6, 4), reals(0, 3), reals(2, 3, 4, 5)]:
    for _k in (-7, -2, -1, 0, 1, 3, 9):
        _DIAGONALS.append(
            both(f"triangles({_x.dtype}{_x.shape}, {_k})", lambda p, x, k=_k: (p.tril(x, k), p.triu(x, k)), _x)
        )
        _DIAGONALS.append(both(f"diagonal({_x.dtype}{_x.shape}, {_k})", lambda p, x, k=_k: p.diagonal(x, k), _x))
_DIAGONALS += [
    both(
        "diagonal_axes",
        lambda p, x: (p.diagonal(x, 1, 0, 2), p.diagonal(x, -1, -1, 1), p.diagonal(x, 0, 3, 0)),
        reals(2, 3, 4, 5),
    ),
    both(
        "trace_axes",
        lambda p, x: (p.trace(x, 1, 0, 2), p.trace(x, axis1=-1, axis2=1), p.trace(x, dtype=np.float32)),
        reals(2, 3, 4, 5),
    ),
    both(
        "trace_types",
        lambda p, x, y, z: (p.trace(x), p.trace(y), p.trace(z, 1)),
        booleans(3, 3),
        integers(3, 3, dtype=np.int32),
        complexes(3, 4),
    ),
    both(
        "diag_of_vectors",
        lambda p, x: (p.diag(x), p.diag(x, 2), p.diag(x, -3), p.diag(x > 0), p.diag(x[:0], 1)),
        reals(4),
    ),
    both("diag_of_matrices", lambda p, x: (p.diag(x), p.diag(x, 2), p.diag(x, -3), p.diag(x, 8)), X),
    both("diagflat", lambda p, x: (p.diagflat(x), p.diagflat(x, -1)), reals(2, 3)),
    same(
        "triangle_indices",
        lambda x: (x[np.tril_indices_from(x)], x[np.triu_indices_from(x, 1)], x[np.tril_indices(3)]),
        X,
    ),
    Case(
        "diag_indices", lambda x: x.at[np.diag_indices_from(x)].set(0.0), lambda x: x - np.diag(np.diag(x)), reals(3, 3)
    ),
    Case(
        "extract_diag",
        lambda x: (td.extract_diag(x, 0, 2), td.extract_diag(x, 2, 0), td.extract_diag(x, -1, -3)),
        lambda x: (np.einsum("iji->ij", x), np.einsum("iji->ji", x), np.einsum("iji->ji", x)),
        reals(3, 2, 3),
    ),
    Case(
        "embed_diag",
        lambda x: (
            td.embed_diag(x, 0, 0),
            td.embed_diag(x, 0, 1),
            td.embed_diag(x, 0, 2),
            td.embed_diag(x, 1, 0),
            td.embed_diag(x, 1, 1),
            td.embed_diag(x, -1, -1),
        ),
        lambda x: tuple(
            np.einsum(e, np.eye(n), x)
            for e, n in (
                ("ij,jk->ijk", 2),
                ("ij,jk->jik", 2),
                ("ij,jk->jki", 2),
                ("ij,kj->ikj", 3),
                ("ij,kj->kij", 3),
                ("ij,kj->kji", 3),
            )
        ),
        reals(2, 3),
    ),
]

_WINDOWS = [
    Case(
        "dynamic_slice",
        lambda x, i, s: (td.dynamic_slice(x, (i, 1), (2, 3)), td.dynamic_slice(x, s, (4, 0))),
        lambda x, i, s: (x[window_of(x, (i, 1), (2, 3))], x[window_of(x, s, (4, 0))]),
        X,
        np.int32(1),
        np.array([9, -9]),
    ),
    Case(
        "dynamic_slice_clamps",
        lambda x, s: td.dynamic_slice(x, s, (2, 2, 2)),
        lambda x, s: x[window_of(x, s, (2, 2, 2))],
        CUBE,
        np.array([-(2**63), 2**63 - 1, 2]),
    ),
    Case("dynamic_slice_rank_0", lambda x: td.dynamic_slice(x, (), ()), lambda x: x, np.float64(2.0)),
    Case(
        "dynamic_update_slice_clamps",
        lambda x, u, s: td.dynamic_update_slice(x, u, s),
        lambda x, u, s: updated(window_of(x, s, u.shape))(x, u),
        X,
        reals(2, 3),
        np.array([3, -5], np.int32),
    ),
    Case(
        "dynamic_update_slice_list",
        lambda x, i: td.dynamic_update_slice(x, [7, 8], [i]),
        lambda x, i: updated(np.s_[1:3])(x, [7, 8]),
        integers(3),
        np.int64(2),
    ),
    *(
        Case(
            f"dynamic_truncate({size})",
            lambda x, n: (td.dynamic_truncate(x, n), td.dynamic_truncate(x, n, -1) * 2 + 1),
            lambda x, n: (x[: max(n, 0)], x[:, : max(n, 0)] * 2 + 1),
            X,
            np.int64(size),
        )
        for size in (-3, 0, 3, 4, 5, 2**62)
    ),
    Case(
        "dynamic_truncate_computes",
        lambda x, n: (
            td.dynamic_truncate(x, n).sum(0),
            td.dynamic_truncate(x, n).mean(0),
            td.dynamic_truncate(x, n) @ x.T,
            td.shape_of(td.dynamic_truncate(x, n), 0),
        ),
        lambda x, n: (x[:n].sum(0), x[:n].mean(0), x[:n] @ x.T, np.int64(n)),
        X,
        np.int32(2),
    ),
    Case(
        "dynamic_truncate_pair",
        lambda x, y, n: td.dynamic_truncate(x, n) * td.dynamic_truncate(y, n),
        lambda x, y, n: x[:n] * y[:n],
        X,
        reals(4, 6),
        np.int32(3),
    ),
    Case(
        "pad_to_match",
        lambda x, y: (td.pad_to_match(x, y), td.pad_to_match(x, y, -1), td.pad_to_match(y, x, 1)),
        lambda x, y: (padded(x, 7, 0), padded(x, 2, 1), padded(y, 6, 1)),
        X,
        reals(7, 2),
    ),
    Case(
        "truncated_and_padded",
        lambda x, n: td.pad_to_match(td.dynamic_truncate(x, n), x),
        lambda x, n: padded(x[:n], 4, 0),
        X,
        np.int64(1),
    ),
    Case("shape_of", lambda x: (td.shape_of(x, 0), td.shape_of(x, -1) * 2), lambda x: (np.int64(4), np.int64(12)), X),
    Case(
        "gather",
        lambda x, i: td.gather(
            x, i, offset_dims=[1], collapsed_slice_dims=[0], start_index_map=[0], index_vector_dim=1, slice_sizes=(1, 6)
        ),
        lambda x, i: x[i],
        X,
        np.array([2, 0]),
    ),
    Case(
        "scatter",
        lambda x, i, u: td.scatter(
            x,
            i,
            u,
            update_window_dims=[1],
            inserted_window_dims=[0],
            scatter_dims_to_operand_dims=[0],
            index_vector_dim=1,
            combiner="maximum",
        ),
        lambda x, i, u: updated(i, np.maximum)(x, u),
        X,
        np.array([2, 0, 2]),
        reals(3, 6),
    ),
    Case(
        "scatter_batch",
        lambda x, i, u: td.scatter(
            x,
            i,
            u,
            update_window_dims=[],
            inserted_window_dims=[1],
            input_batching_dims=[0],
            scatter_indices_batching_dims=[0],
            scatter_dims_to_operand_dims=[1],
            index_vector_dim=2,
        ),
        lambda x, i, u: updated((np.arange(4)[:, None], i), np.add)(x, u),
        X,
        integers(4, 9, low=0, high=6),
        reals(4, 9),
    ),
]

_SORTED = np.sort(np.concatenate([reals(12), [0.5, 0.5, np.inf, -np.inf, np.nan, np.nan]]))
_SEARCHES = [
    both(
        f"searchsorted({len(x)} of {x.dtype}, {side})",
        lambda p, x, v, side=side: (p.searchsorted(x, v, side), p.searchsorted(x, v[0, 0], side=side)),
        x,
        v,
    )
    for side in ("left", "right")
    for x, v in (
        (_SORTED, np.array([[0.5, np.nan, np.inf], [-np.inf, 9.0, -9.0]])),
        (np.sort(integers(33)), integers(4, 5)),
        (np.sort(integers(8)).astype(np.int32), reals(3, 3)),
        (np.array([1.0]), np.array([[1.0, 0.0, 2.0]])),
        (np.zeros(0), np.array([[1.0, np.nan]])),
        (np.array([False, True, True]), np.array([[True, False]])),
    )
]
_SEARCHES += [
    both("searchsorted_sorter", lambda p, x, v, s: p.searchsorted(x, v, sorter=s), X[0], X[1], np.argsort(X[0])),
    same("searchsorted_method", lambda x, v: x.searchsorted(v), _SORTED, X),
]

CASES = [*_READS, *_WRITES, *_DIAGONALS, *_WINDOWS, *_SEARCHES]
