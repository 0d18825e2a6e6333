"""Functions of the package that JAX has too: elementwise ones, reductions, shapes and places."""

import numpy as np

import checkout  # noqa: F401
from derivative_case import any_of, case, positive, within

ALL = "fdcz"
I = np.array([0, 3, -1, 1])  # repeated places too: -1 is 3 of four
ROWS, COLUMNS = np.array([[0], [2], [2]]), np.array([[1, 4]])
PLACES = np.array([[0, 2, 1], [3, 3, 0], [1, 5, 5], [2, 0, 4]])
MASK = np.array([[True, False, True, True], [False, True, True, False], [True, True, False, True]])

_UNARY = {  # by the arguments: functions, and kinds of those that take complex numbers
    any_of: (
        "negative positive square exp sin cos sinh cosh tanh expm1 arctan arcsinh exp2 conj real imag logistic",
        "abs absolute sign floor ceil trunc rint erf cbrt deg2rad rad2deg degrees radians gelu relu silu elu softplus",
    ),
    positive: ("log sqrt rsqrt reciprocal log1p", "log2 log10"),
    within: ("arcsin arccos arctanh tan", ""),
}
_BINARY = {
    any_of: ("add subtract multiply", "maximum minimum fmax fmin hypot arctan2 logaddexp"),
    positive: ("divide true_divide power", "remainder mod fmod"),
}


def _of_one():
    for numbers, lists in _UNARY.items():
        for kinds, names in zip((ALL, "fd"), lists):
            for name in names.split():
                yield case(name, lambda p, x, name=name: getattr(p, name)(x), numbers(3, 4), kinds=kinds)
    yield case("arccosh", lambda p, x: p.arccosh(x + 1.5), positive(5), kinds=ALL)
    yield case("abs of complex numbers", lambda p, z: p.abs(z), any_of(5), kinds="cz")
    yield case("angle", lambda p, z: p.angle(z), positive(5), kinds="cz")
    yield case("gelu by tanh", lambda p, x: p.gelu(x, approximate=True), any_of(6))
    yield case("elu of another slope", lambda p, x: p.elu(x, 0.5), any_of(6))
    yield case("complex", lambda p, x, y: p.complex(x, y) ** 2, any_of(4), any_of(4))


def _of_two():
    for numbers, lists in _BINARY.items():
        for kinds, names in zip((ALL, "fd"), lists):
            for name in names.split():
                yield case(
                    name, lambda p, x, y, name=name: getattr(p, name)(x, y), numbers(3, 1), numbers(4), kinds=kinds
                )
    yield case("logaddexp of far numbers", lambda p, x, y: p.logaddexp(20 * x, y), any_of(5), any_of(5))
    yield case("powers by numbers", lambda p, x: (x**2, x**3, x**-1, x**0.5, x**-1.5, 2.0**x), positive(5), kinds=ALL)
    yield case("clip", lambda p, x: (p.clip(x, -1, 1), p.clip(x, None, 0.3), p.clip(x, 0.1, None)), any_of(4, 5))
    yield case("clip by arrays", lambda p, x, low, high: p.clip(x, low, high + 3), any_of(3, 4), any_of(4), positive(4))
    yield case("where", lambda p, x, y: p.where(x > y, x * y, p.sin(y)), any_of(3, 4), any_of(4))
    yield case("where guards", lambda p, x: p.where(x > 0, p.log(p.where(x > 0, x, 1.0)), 0.0), any_of(7))
    yield case("round", lambda p, x: p.round(x, 1) * x, any_of(7))
    yield case("float_power", lambda p, x, y: p.float_power(x, y), positive(3, 1), positive(4), kinds="d")
    yield case("operators", lambda p, x, y: (x + y, x - y, x * y, x / y, -x, +x), positive(4), positive(4), kinds=ALL)
    yield case("reflected operators", lambda p, x: (1 + x, 1 - x, 3 * x, 2 / x), positive(5), kinds=ALL)
    yield case("division of real numbers", lambda p, x, y: (x // y + x, x % y, p.divmod(x, y)[1]), positive(4), positive(4))
    yield case("conversions", lambda p, x: p.astype(p.astype(x, np.float32), np.float64) ** 2, any_of(4), kinds="d", order=1)


_AXES = {"of all": {}, "axis 0": {"axis": 0}, "axes 0, -1": {"axis": (0, -1)}, "kept": {"axis": 1, "keepdims": True}}
_REDUCTIONS = {
    "sum": (any_of, ALL),
    "mean": (any_of, ALL),
    "prod": (positive, ALL),
    "max": (any_of, "fd"),
    "min": (any_of, "fd"),
    "var": (any_of, ALL),
    "std": (any_of, "fd"),
    "logsumexp": (any_of, "fd"),
}


def _reductions():
    for name, (numbers, kinds) in _REDUCTIONS.items():
        for title, options in _AXES.items():
            yield case(
                f"{name}, {title}",
                lambda p, x, name=name, options=options: getattr(p, name)(x, **options),
                numbers(3, 4, 2),
                kinds=kinds,
            )
    yield case("ptp", lambda p, x: (p.ptp(x), p.ptp(x, axis=0)), any_of(3, 4))
    yield case("amax, amin", lambda p, x: p.amax(x, axis=1) * p.amin(x, axis=1), any_of(3, 4))
    yield case("average", lambda p, x, w: (p.average(x), p.average(x, axis=1, weights=w)), any_of(3, 4), positive(4))
    yield case("sum where", lambda p, x: p.sum(x, axis=0, where=MASK, initial=2.0), any_of(3, 4), kinds=ALL)
    yield case("max where", lambda p, x: p.max(x, axis=0, where=MASK, initial=-5.0), any_of(3, 4))
    yield case("mean, var where", lambda p, x: (p.mean(x, axis=1, where=MASK), p.var(x, axis=1, where=MASK)), any_of(3, 4))
    yield case("var with ddof", lambda p, x: (p.var(x, axis=1, ddof=1), p.std(x, ddof=2)), any_of(3, 4))
    yield case("softmax", lambda p, x: (p.softmax(x), p.softmax(x, axis=0)), any_of(3, 4))
    yield case("log_softmax", lambda p, x: (p.log_softmax(x), p.log_softmax(x, axis=0)), any_of(3, 4))
    yield case("prod with a zero", lambda p, x: p.prod(x * np.array([1, 0, 1, 1], np.float32), axis=1), positive(3, 4))
    yield case("sum of an empty axis", lambda p, x: p.sum(x[:, :0] ** 2, axis=1) + p.sum(x), any_of(3, 4), kinds=ALL)
    yield case("methods", lambda p, x: (x.sum(), x.mean(axis=0), x.max(axis=1), x.prod(axis=0), x.var()), any_of(3, 4))
    for order in (None, 1, 2, 3, np.inf, -np.inf):
        yield case(f"norm {order}", lambda p, x, o=order: p.linalg.norm(x, o), positive(5), kinds=ALL if order in (None, 2) else "fd")
    for order in ("fro", 1, np.inf, "nuc", 2):
        yield case(f"matrix norm {order}", lambda p, x, o=order: p.linalg.norm(x, o), positive(3, 4), kinds="fd", order=1)
    yield case("norm along an axis", lambda p, x: p.linalg.norm(x, axis=1, keepdims=True), any_of(3, 4), kinds=ALL)
    yield case("vector_norm", lambda p, x: p.linalg.vector_norm(x, axis=0, ord=3), positive(3, 4))


_SHAPES = [
    case("reshape", lambda p, x: (p.reshape(x, (3, -1)), p.reshape(x, -1), x.reshape(2, 2, 6)), any_of(4, 6), kinds=ALL),
    case("reshape in order F", lambda p, x: p.reshape(x, (3, 8), order="F") ** 2, any_of(4, 6), kinds=ALL),
    case("ravel", lambda p, x: p.ravel(x) ** 2, any_of(2, 3), kinds=ALL),
    case("transpose", lambda p, x: (p.transpose(x), p.transpose(x, (2, 0, 1)), x.T), any_of(2, 3, 4), kinds=ALL),
    case("matrix_transpose", lambda p, x: p.matrix_transpose(x) * x[0, 0, 0], any_of(2, 3, 4), kinds=ALL),
    case("swapaxes", lambda p, x: p.swapaxes(x, 0, -1) ** 2, any_of(2, 3, 4), kinds=ALL),
    case("moveaxis", lambda p, x: p.moveaxis(x, (0, 1), (-1, 0)) ** 2, any_of(2, 3, 4), kinds=ALL),
    case("permute_dims", lambda p, x: p.permute_dims(x, (1, 2, 0)) ** 2, any_of(2, 3, 4), kinds=ALL),
    case("expand_dims", lambda p, x: (p.expand_dims(x, 0), p.expand_dims(x, (-1, 1))), any_of(4, 6), kinds=ALL),
    case("squeeze", lambda p, x: p.squeeze(x, axis=2) ** 2, any_of(1, 3, 1), kinds=ALL),
    case("broadcast_to", lambda p, x: p.broadcast_to(x, (3, 4, 6)) ** 2, any_of(4, 1), kinds=ALL),
    case("broadcast_arrays", lambda p, x, y: p.broadcast_arrays(x, y)[0] * y, any_of(4, 1), any_of(3), kinds=ALL),
    case("concatenate", lambda p, x, y: p.concatenate([x, y * 2, x], axis=-1) ** 2, any_of(4, 3), any_of(4, 1), kinds=ALL),
    case("stack", lambda p, x, y: (p.stack([x, y]), p.stack([x, y * x], axis=-1)), any_of(4), any_of(4), kinds=ALL),
    case("vstack, hstack", lambda p, x, y: (p.vstack([x, y]), p.hstack([x, y])), any_of(4), any_of(4), kinds=ALL),
    case("split", lambda p, x: [a * b for a, b in zip(p.split(x, 3, axis=1), p.split(x, [2, 4], axis=1))], any_of(4, 6), kinds=ALL),
    case("flip", lambda p, x: p.flip(x, 1) * p.flip(x, (0, 1)), any_of(3, 4), kinds=ALL),
    case("roll", lambda p, x: p.roll(x, 2, 1) * p.roll(x, -7) * p.roll(x, (1, 2), (0, 1)), any_of(3, 4), kinds=ALL),
    case("tile", lambda p, x: p.tile(x, (3, 1, 2)) ** 2, any_of(2, 3), kinds=ALL),
    case("repeat", lambda p, x: (p.repeat(x, 2) ** 2, p.repeat(x, 3, axis=0)), any_of(2, 3), kinds=ALL),
    case("repeat by counts", lambda p, x: p.repeat(x, np.array([2, 0, 3]), axis=1) ** 2, any_of(2, 3), kinds=ALL),
    case("pad", lambda p, x: (p.pad(x, 1) ** 2, p.pad(x, ((0, 2), (1, 0)), constant_values=7)), any_of(2, 3), kinds=ALL),
    case("diag", lambda p, x: (p.diag(x, 1) @ p.diag(x, -1), p.diag(p.diag(x))), any_of(4), kinds=ALL),
    case("diagonal", lambda p, x: (p.diagonal(x, 2) ** 2, p.diagonal(x, -1)), any_of(4, 6), kinds=ALL),
    case("diagonal of a stack", lambda p, x: p.diagonal(x, 0, 1, 2) ** 2, any_of(2, 3, 3), kinds=ALL),
    case("diagflat", lambda p, x: p.diagflat(x, 1) ** 2, any_of(2, 2), kinds=ALL),
    case("trace", lambda p, x: p.trace(x) * p.trace(x, 1), any_of(3, 3), kinds=ALL),
    case("tril", lambda p, x: p.tril(x, -1) @ p.tril(x), any_of(3, 3), kinds=ALL),
    case("triu", lambda p, x: p.triu(x, 1) @ p.triu(x), any_of(3, 3), kinds=ALL),
    case("atleast_2d", lambda p, x: p.atleast_2d(x) ** 2, any_of(3), kinds=ALL),
    case("linspace", lambda p, x, y: p.linspace(x, y, 5) ** 2, any_of(), any_of(), kinds="fd"),
    case("full_like, zeros_like", lambda p, x: (p.full_like(x, 2) * x, p.zeros_like(x) * x), any_of(3), kinds=ALL),
]

_PLACES = [
    case("integers", lambda p, x: (x[0] * x[-1], x[2, 3] ** 2, x[:, 1]), any_of(4, 6), kinds=ALL),
    case("slices", lambda p, x: (x[1:3] ** 2, x[:, ::2] * x[0, 0], x[::-1], x[3:0:-2, 5:1:-1]), any_of(4, 6), kinds=ALL),
    case("new axes", lambda p, x: x[None] * x[:, None, :, None][..., 0], any_of(4, 4), kinds=ALL),
    case("arrays", lambda p, x: (x[I] ** 2, x[:, I], x[I, 0] ** 2), any_of(4, 6), kinds=ALL),
    case("two arrays", lambda p, x: x[ROWS, COLUMNS] ** 2, any_of(4, 6), kinds=ALL),
    case("arrays apart", lambda p, x: x[I % 3, :, I] ** 2, any_of(3, 2, 4), kinds=ALL),
    case("masks", lambda p, x: x[MASK[:, 0], 1:] ** 2, any_of(3, 4), kinds=ALL),
    case("take", lambda p, x: (p.take(x, I, axis=1) ** 2, p.take(x, I)), any_of(4, 6), kinds=ALL),
    case("take with clip", lambda p, x: p.take(x, I * 9, axis=0, mode="clip") ** 2, any_of(4, 6), kinds=ALL),
    case("take with wrap", lambda p, x: p.take(x, I * 9, axis=0, mode="wrap") ** 2, any_of(4, 6), kinds=ALL),
    case("take_along_axis", lambda p, x: p.take_along_axis(x, PLACES, 1) ** 2, any_of(4, 6), kinds=ALL),
    case("sorted by places", lambda p, x: p.take_along_axis(x, p.argmax(x, axis=1)[:, None], 1) ** 2, any_of(3, 4)),
    case("put_along_axis", lambda p, x, y: p.put_along_axis(x, PLACES[:, 1:], y, 1) ** 2, any_of(4, 6), any_of(4, 2), order=1),
    case("set a number", lambda p, x, y: x.at[1, 2].set(y) ** 2, any_of(3, 4), any_of(), kinds=ALL),
    case("set a slice", lambda p, x, y: x.at[1:, ::2].set(y) ** 2, any_of(3, 4), any_of(2, 2), kinds=ALL),
    case("set rows", lambda p, x, y: x.at[np.array([2, 0])].set(y) ** 2, any_of(4, 3), any_of(2, 3), kinds=ALL),
    case("set columns", lambda p, x, y: x.at[:, np.array([2, 0])].set(y) ** 2, any_of(4, 3), any_of(4, 2), kinds=ALL),
    case("add at a slice", lambda p, x, y: x.at[1:].add(y) ** 2, any_of(4, 3), any_of(3), kinds=ALL),
    case("add at places", lambda p, x, y: x.at[I].add(y) ** 2, any_of(4, 3), any_of(4, 3), kinds=ALL),
    case("add at points", lambda p, x, y: x.at[ROWS, COLUMNS].add(y) ** 2, any_of(4, 6), any_of(3, 2), kinds=ALL),
    case("subtract at places", lambda p, x, y: x.at[I].subtract(y) ** 2, any_of(4, 3), any_of(4, 3), kinds=ALL),
    case("multiply at strides", lambda p, x, y: x.at[::2].multiply(y), any_of(4, 3), any_of(2, 3), kinds=ALL),
    case("multiply at a slice", lambda p, x, y: x.at[1:3].multiply(y), any_of(4, 3), any_of(2, 3), kinds=ALL),
    case("max at places", lambda p, x, y: x.at[I].max(y), any_of(4, 3), any_of(4, 3), order=1),
    case("min at places", lambda p, x, y: x.at[I].min(y), any_of(4, 3), any_of(4, 3), order=1),
    case("dynamic_slice", lambda p, x: p.dynamic_slice(x, (np.int32(3), np.int32(1)), (2, 3)) ** 2, any_of(4, 6), kinds=ALL),
    case("dynamic_update_slice", lambda p, x, y: p.dynamic_update_slice(x, y, (np.int32(1), np.int32(9))) ** 2,
         any_of(4, 6), any_of(2, 3), kinds=ALL),
    case("embedding", lambda p, table, w: p.tanh(table[PLACES] @ w), any_of(6, 3), any_of(3, 2)),
    case("a band by places", lambda p, x: p.zeros((5, 5), x.dtype).at[np.arange(4), np.arange(1, 5)].add(x) @ p.ones((5, 2), np.float32), any_of(4)),
]  # fmt: skip

CASES = [*_of_one(), *_of_two(), *_reductions(), *_SHAPES, *_PLACES]
