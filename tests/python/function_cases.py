"""Functions that are traced, with what they mean in NumPy: run by the oracle without a server, and by a server."""

import math

import numpy as np

import checkout  # noqa: F401
import tensord as td


class Case:
    """`traced` builds the graph, `reference` is NumPy's computation of the same arguments."""

    def __init__(self, name, traced, reference, *arguments, tolerance=1e-12):
        self.name, self.traced, self.reference = name, traced, reference
        self.arguments, self.tolerance = arguments, tolerance

    def expected(self):
        with np.errstate(all="ignore"):
            return self.reference(*self.arguments)


def check_equal(test, case, actual, expected):
    """Same structure, dtypes, shapes and numbers up to the case's tolerance."""
    if isinstance(expected, (tuple, list)):
        test.assertEqual(len(actual), len(expected), case.name)
        for one_actual, one_expected in zip(actual, expected):
            check_equal(test, case, one_actual, one_expected)
        return
    expected = np.asarray(expected)
    test.assertEqual(actual.dtype, expected.dtype, case.name)
    test.assertEqual(actual.shape, expected.shape, case.name)
    tolerance = max(case.tolerance, {"e": 2e-3, "f": 3e-6, "F": 3e-6}.get(expected.dtype.char, 0))
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance, err_msg=case.name)


_random = np.random.default_rng(20240607)


def reals(*shape, dtype=np.float64, low=-3.0, high=3.0):
    return _random.uniform(low, high, shape).astype(dtype)


def integers(*shape, dtype=np.int64, low=-9, high=9):
    return _random.integers(low, high, shape, dtype=dtype)


def complexes(*shape, dtype=np.complex128):
    return (reals(*shape) + 1j * reals(*shape)).astype(dtype)


def booleans(*shape):
    return _random.integers(0, 2, shape).astype(bool)


_EDGES = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -1.0, 1e300, -1e-300])

_UNARY = {  # name: arguments
    "negative": (reals(4, 3), integers(5), complexes(4)),
    "abs": (reals(4), integers(4), complexes(4), booleans(4)),
    "absolute": (_EDGES,),
    "sign": (reals(6), integers(6)),
    "exp": (reals(7), integers(4), complexes(5)),
    "exp2": (reals(5), reals(5, low=-900, high=900), integers(3), complexes(4), np.array([np.inf + 1j, np.inf + 0j])),
    "expm1": (reals(5, low=-1e-3, high=1e-3),),
    "log": (reals(5, low=1e-3), complexes(4)),
    "log2": (reals(5, low=1e-3), complexes(4), integers(4, low=1), 2.0 ** np.arange(-1074, 1024)),
    "log10": (reals(5, low=1e-3), complexes(4), integers(4, low=1), 10.0 ** np.arange(-307, 309)),
    "log1p": (reals(5, low=-0.5),),
    "sqrt": (reals(5, low=0), complexes(5), integers(3, low=0)),
    "cbrt": (reals(5),),
    "square": (reals(5), integers(4), complexes(3)),
    "reciprocal": (reals(5), complexes(3)),
    "sin": (reals(5), complexes(4)),
    "cos": (reals(5), complexes(4)),
    "tan": (reals(5),),
    "arcsin": (reals(5, low=-1, high=1), complexes(5), _EDGES[:7]),
    "arccos": (reals(5, low=-1, high=1), complexes(5), _EDGES[:7]),
    "arctan": (reals(5), _EDGES, complexes(5)),
    "arcsinh": (reals(5), _EDGES, complexes(5)),
    "arccosh": (reals(5, low=1, high=9), complexes(5)),
    "arctanh": (reals(5, low=-1, high=1), complexes(5), _EDGES[:7]),
    "sinh": (
        reals(5),
        reals(4, low=-1e-4, high=1e-4),
        reals(3, low=700, high=710),
        reals(9, low=9, high=24),
        complexes(3),
        np.array([11.0, 11.5, 12, 20, 1e-7], np.float16),
        np.array([1e-12 + 1e-12j, 1e-20 + 0j, 710.2 + 1j, np.inf + 0j]),
    ),
    "cosh": (
        reals(5),
        reals(3, low=700, high=710),
        complexes(3),
        np.array([11.0, 11.5, 12, 20], np.float16),
        np.array([1e-12 + 1e-12j, 710.2 + 1j, np.inf + 0j]),
    ),
    "tanh": (reals(5), complexes(4)),
    "floor": (reals(9), _EDGES),
    "ceil": (reals(9), _EDGES),
    "trunc": (reals(9), _EDGES),
    "rint": (reals(9), _EDGES, integers(3)),
    "round": (reals(9), _EDGES, complexes(4)),
    "isfinite": (_EDGES, integers(3), complexes(3)),
    "isnan": (_EDGES, complexes(3)),
    "isinf": (_EDGES, integers(3)),
    "logical_not": (reals(3), booleans(4), integers(4)),
    "invert": (integers(5), booleans(4)),
    "conj": (complexes(4), reals(3)),
    "real": (complexes(4), reals(3)),
    "imag": (complexes(4), reals(3)),
    "angle": (complexes(4),),
    "deg2rad": (reals(4),),
    "rad2deg": (reals(4),),
    "positive": (reals(3),),
    "ravel": (reals(2, 3),),
    "transpose": (reals(2, 3, 4),),
    "zeros_like": (integers(3),),
    "ones_like": (reals(2, 2),),
    "diag": (reals(4), reals(3, 3), reals(2, 5)),
    "diagonal": (reals(3, 3, 2), reals(4, 2)),
    "tril": (reals(3, 4), reals(2, 3, 3)),
    "triu": (reals(3, 4), reals(2, 3, 3)),
    "trace": (reals(3, 3), integers(4, 4)),
    "flip": (reals(2, 3),),
    "squeeze": (reals(1, 3, 1),),
    "atleast_2d": (reals(3),),
}

_REDUCTIONS = {
    "sum": (reals(3, 4, 2), integers(3, 4, 2), booleans(3, 4, 2), complexes(3, 4, 2), reals(3, 4, 2, dtype=np.float32)),
    "prod": (reals(3, 4, 2), integers(3, 4, 2, low=1, high=3, dtype=np.int32)),
    "max": (reals(3, 4, 2), integers(3, 4, 2)),
    "min": (reals(3, 4, 2), integers(3, 4, 2), booleans(3, 4, 2)),
    "mean": (reals(3, 4, 2), integers(3, 4, 2), complexes(3, 4, 2), reals(3, 4, 2, dtype=np.float16)),
    "var": (reals(3, 4, 2), integers(3, 4, 2), complexes(3, 4, 2)),
    "std": (reals(3, 4, 2),),
    "any": (booleans(3, 4, 2), reals(3, 4, 2)),
    "all": (booleans(3, 4, 2), integers(3, 4, 2)),
    "count_nonzero": (integers(3, 4, 2, low=0, high=2),),
    "ptp": (reals(3, 4, 2),),
}

_BINARY = {
    "add": "ric",
    "subtract": "ric",
    "multiply": "ric",
    "divide": "rc",
    "floor_divide": "ri",
    "remainder": "ri",
    "fmod": "ri",
    "maximum": "ri",
    "minimum": "ri",
    "fmax": "r",
    "fmin": "r",
    "arctan2": "r",
    "hypot": "r",
    "logaddexp": "r",
    "equal": "ric",
    "not_equal": "ric",
    "less": "ri",
    "less_equal": "ri",
    "greater": "ri",
    "greater_equal": "ri",
    "logical_and": "rib",
    "logical_or": "rib",
    "logical_xor": "rib",
    "bitwise_and": "ib",
    "bitwise_or": "ib",
    "bitwise_xor": "ib",
    "isclose": "r",
}
_OPERANDS = {
    "r": lambda: (reals(3, 1), reals(4)),
    "i": lambda: (integers(3, 1), integers(4, low=1)),
    "c": lambda: (complexes(3, 1), complexes(4)),
    "b": lambda: (booleans(3, 1), booleans(4)),
}


def _unary_cases():
    for name, inputs in _UNARY.items():
        for number, argument in enumerate(inputs):
            yield Case(f"{name}[{number}]", getattr(td, name), getattr(np, name), argument)


def _binary_cases():
    for name, kinds in _BINARY.items():
        for kind in kinds:
            yield Case(f"{name}[{kind}]", getattr(td, name), getattr(np, name), *_OPERANDS[kind]())


def _reduction_cases():
    for name, inputs in _REDUCTIONS.items():
        for argument in inputs:
            for axis in (None, 1, (0, -1)):
                if name == "ptp" and isinstance(axis, tuple):
                    continue
                for keepdims in (False, True):

                    def run(x, package, axis=axis, keepdims=keepdims, name=name):
                        return getattr(package, name)(x, axis=axis, keepdims=keepdims)

                    yield Case(
                        f"{name}({argument.dtype}, axis={axis}, keepdims={keepdims})",
                        lambda x, run=run: run(x, td),
                        lambda x, run=run: run(x, np),
                        argument,
                    )


def both(name, function, *arguments, tolerance=1e-12):
    """A function of (package, *arguments) that is the same for td and for np."""
    return Case(
        name, lambda *args: function(td, *args), lambda *args: function(np, *args), *arguments, tolerance=tolerance
    )


def same(name, function, *arguments, tolerance=1e-12):
    """A function of operators, methods and NumPy's own functions: traced as it stands."""
    return Case(name, function, function, *arguments, tolerance=tolerance)


def _erf(x):
    return np.vectorize(math.erf, otypes=[x.dtype])(x)


def _softmax(x, axis):
    grown = np.exp(x - x.max(axis=axis, keepdims=True))
    return grown / grown.sum(axis=axis, keepdims=True)


def _with_block(x, block, row, column):
    result = x.copy()
    result[row : row + block.shape[0], column : column + block.shape[1]] = block
    return result


X, Y, M = reals(4, 6), reals(6), integers(4, 6)

_SHAPING = [
    both("reshape", lambda p, x: p.reshape(x, (3, -1)), X),
    both("reshape_int", lambda p, x: p.reshape(x, -1), X),
    same("reshape_method", lambda x: x.reshape(2, 2, 6).reshape((4, 6)), X),
    both("transpose_axes", lambda p, x: p.transpose(x, (2, 0, 1)), reals(2, 3, 4)),
    same(
        "transpose_method",
        lambda x: (x.transpose(1, 0, 2), x.T, x.transpose((0, 2, 1)), x.swapaxes(0, -1)),
        reals(2, 3, 4),
    ),
    both("moveaxis", lambda p, x: p.moveaxis(x, (0, 1), (-1, 0)), reals(2, 3, 4)),
    both("expand_dims", lambda p, x: (p.expand_dims(x, 0), p.expand_dims(x, (-1, 1))), X),
    both("broadcast_to", lambda p, x: p.broadcast_to(x, (3, 4, 6)), X),
    both("concatenate", lambda p, x, y: p.concatenate([x, y * 2, x], axis=-1), X, reals(4, 1)),
    both("concatenate_promotes", lambda p, x, y: p.concatenate([x, y]), integers(3), reals(2)),
    both("concatenate_ravel", lambda p, x, y: p.concatenate([x, y], axis=None), X, Y),
    both("stack", lambda p, x, y: (p.stack([x, y]), p.stack([x, y], axis=-1)), Y, reals(6)),
    both("vstack_hstack", lambda p, x, y: (p.vstack([x, y]), p.hstack([x, y])), Y, reals(6)),
    both("split", lambda p, x: list(p.split(x, 3, axis=1)) + list(p.split(x, [1, 4], axis=1)), X),
    both("flip", lambda p, x: (p.flip(x, 1), p.flip(x, (0, 1))), X),
    both("roll", lambda p, x: (p.roll(x, 2, 1), p.roll(x, -7), p.roll(x, (1, 2), (0, 1)), p.roll(x, (1, 9), 0)), X),
    both("tile", lambda p, x: (p.tile(x, 2), p.tile(x, (3, 1, 2))), X),
    both("repeat", lambda p, x: (p.repeat(x, 2), p.repeat(x, 3, axis=0)), X),
    both("pad", lambda p, x: (p.pad(x, 1), p.pad(x, ((0, 2), (1, 0)), constant_values=7)), X),
    both("diag_k", lambda p, x: (p.diag(x, 1), p.diag(x, -2)), Y),
    both("diagonal_k", lambda p, x: (p.diagonal(x, 2), p.diagonal(x, -1)), X),
    both("tril_k", lambda p, x: (p.tril(x, -1), p.triu(x, 1), p.triu(x, -2)), X),
    both("squeeze_axis", lambda p, x: p.squeeze(x, axis=2), reals(1, 3, 1)),
    same("empty", lambda x: (x + 1, x.sum(axis=0), x.T @ x, x.reshape(3, 0, 2)), reals(0, 3)),
    same("rank_zero", lambda x: (x * 2, x.reshape(1, 1), x.sum()), np.float64(3.5)),
]

_CREATION = [
    both(
        "creation",
        lambda p, x: (
            p.zeros((2, 3)),
            p.ones(4, dtype=np.int32),
            p.full((2,), 7),
            p.eye(3),
            p.eye(3, 4, 1),
            p.identity(2),
        ),
        Y,
    ),
    both(
        "arange",
        lambda p, x: (
            p.arange(5),
            p.arange(2, 9, 3),
            p.arange(5, 0, -2),
            p.arange(0.0, 1.0, 0.25),
            p.arange(3) * x[:3],
        ),
        Y,
    ),
    both(
        "linspace", lambda p, x: (p.linspace(0.0, 1.0, 7), p.linspace(2, 3, 4, endpoint=False), p.linspace(5, 6, 1)), Y
    ),
    both("like", lambda p, x: (p.zeros_like(x), p.full_like(x, 2), p.ones_like(x, dtype=np.float32)), M),
    both("tri", lambda p, x: p.tri(3, 4, 1), Y),
    Case("iota", lambda x: td.iota((2, 3), 1), lambda x: np.broadcast_to(np.arange(3), (2, 3)), Y),
]

_INDEXING = [
    same("index_int", lambda x: (x[0], x[-1], x[2, 3], x[:, 1]), X),
    same("index_slice", lambda x: (x[1:3], x[:, ::2], x[::-1], x[3:0:-2, 5:1:-1], x[:, 9:], x[5:2], x[-3:-1, -2:]), X),
    same("index_none", lambda x: (x[None], x[:, None, 2:4], x[..., 0], x[0, ..., None]), X),
    same("index_array", lambda x, i: (x[i], x[:, i], x[i, 0], x[..., i][1:]), X, np.array([0, 3, -1, 1])),
    same("index_matrix", lambda x, i: (x[i], x[1, i]), X, np.array([[0, 3], [-1, 1]])),
    same("index_known", lambda x: (x[[0, 3, -1]], x[:, np.array([[1], [-6]])], x[np.array(2)], x[[]]), X),
    same("index_traced_scalar", lambda x, i: x[i.sum()], X, np.array([1, 1])),
    both("take", lambda p, x, i: (p.take(x, i), p.take(x, i, axis=1)), X, np.array([2, -1, 0])),
    Case("dynamic_slice", lambda x, i: td.dynamic_slice(x, (i, 1), (2, 3)), lambda x, i: x[2:4, 1:4], X, np.int64(3)),
    Case(
        "dynamic_update_slice",
        lambda x, u, i: td.dynamic_update_slice(x, u, (i, 1)),
        lambda x, u, i: _with_block(x, u, int(i), 1),
        X,
        reals(2, 3),
        np.int64(1),
    ),
    Case("masked", lambda x: td.where(x > 0, x, 0), lambda x: np.where(x > 0, x, 0), X),
    both("where_broadcast", lambda p, c, x, y: p.where(c, x, y), booleans(4, 1), X, Y),
    both("where_scalars", lambda p, c: p.where(c, 1, 0), booleans(5)),
    both("argmax", lambda p, x: (p.argmax(x), p.argmax(x, axis=0), p.argmin(x, axis=1)), M),
    both("argmax_nan", lambda p, x: (p.argmax(x), p.argmin(x)), np.array([1.0, np.nan, 3.0, np.nan])),
]

_CONTRACTION = [
    both(f"matmul{x.shape}{y.shape}", lambda p, x, y: (p.matmul(x, y), x @ y), x, y)
    for x, y in (
        (reals(3, 4), reals(4, 5)),
        (reals(4), reals(4)),
        (reals(4), reals(4, 5)),
        (reals(3, 4), reals(4)),
        (reals(2, 3, 4), reals(4, 5)),
        (reals(3, 4), reals(2, 4, 5)),
        (reals(2, 3, 4), reals(2, 4, 5)),
        (reals(2, 1, 3, 4), reals(6, 4, 5)),
        (reals(1, 3, 4), reals(2, 4, 5)),
        (reals(4), reals(2, 4, 5)),
        (reals(2, 3, 4), reals(4)),
        (reals(0, 3, 4), reals(4, 5)),
        (reals(3, 0), reals(0, 2)),
        (complexes(3, 4), complexes(4, 2)),
        (integers(3, 4), integers(4, 2)),
        (booleans(3, 4), booleans(4, 2)),
        (integers(3, 4), reals(4, 2)),
    )
] + [
    both("dot", lambda p, x, y: (p.dot(x, y), p.dot(x[0, 0], y[0, :, 0]), x.dot(2.0)), reals(2, 3, 4), reals(5, 4, 2)),
    both("vdot", lambda p, x, y: p.vdot(x, y), complexes(2, 3), complexes(3, 2)),
    both("inner", lambda p, x, y: p.inner(x, y), reals(2, 4), reals(3, 4)),
    both("outer", lambda p, x, y: p.outer(x, y), reals(2, 2), reals(3)),
    both(
        "tensordot",
        lambda p, x, y: (p.tensordot(x, y), p.tensordot(x, y, axes=([0, 2], [2, 1])), p.tensordot(x, y, axes=0)),
        reals(2, 3, 4),
        reals(3, 4, 2),
    ),
    Case("vecdot", td.vecdot, lambda x, y: (np.conj(x) * y).sum(-1), complexes(3, 4), complexes(3, 4)),
]

_OPERATORS = [
    same(
        "operators",
        lambda x, y: (x + y, x - y, x * y, x / y, x // y, x % y, -x, +x, abs(x), x**2, x**-1, x**3.0, 2**y),
        X,
        reals(4, 6, low=0.5),
    ),
    same("reflected", lambda x: (1 + x, 1 - x, 2 * x, 2 / x, 7 // x, 7 % x, 2.0**x), reals(5, low=0.5)),
    same(
        "integers",
        lambda x, y: (x + y, x // y, x % y, x / y, x**2, x & y, x | y, x ^ y, ~x, divmod(x, y), x + 1, x * 2.5, x + 1j),
        M,
        integers(4, 6, low=1),
    ),
    same("comparisons", lambda x, y: (x == y, x != y, x < y, x <= 0, x > 1, 0 >= x), M, integers(6)),
    same("booleans", lambda x, y: (x & y, x | y, x ^ y, ~x, x + y, x * y, x + 1, x * 1.5), booleans(5), booleans(5)),
    same(
        "complex",
        lambda x, y: (x * y, x / y, x + 1, abs(x), x.real, x.imag, x.conj(), x == y, x**2),
        complexes(4),
        complexes(4),
    ),
    same(
        "floor_division_edges",
        lambda x, y: (x // y, x % y),
        np.array([7.0, -7.0, 7.0, -7.0, 1.0, 0.3, 6.0, -0.5, 0.0]),
        np.array([2.0, 2.0, -2.0, -2.0, 0.1, 0.1, -3.0, np.inf, 3.0]),
    ),
    same(
        "numpy_array_operand", lambda x: (np.arange(6) * x, x + np.ones((2, 4, 6), np.float32), np.float64(2) - x), X
    ),
    same(
        "numpy_functions",
        lambda x: (
            np.exp(x),
            np.sum(x, axis=0),
            np.where(x > 0, x, -x),
            np.concatenate([x, x]),
            np.maximum(x, 0),
            np.transpose(x),
            np.clip(x, -1, 1),
            np.mean(x),
            np.amax(x, axis=1),
        ),
        X,
    ),
    same(
        "methods",
        lambda x: (
            x.sum(),
            x.mean(axis=0),
            x.max(axis=1),
            x.min(),
            x.prod(axis=0),
            x.std(),
            x.var(axis=1, ddof=1),
            x.clip(-1, 1),
            x.round(2),
            x.astype(np.int32),
            x.astype("float32"),
            x.ravel(),
            x.argmax(axis=0),
            x.any(),
            x.all(),
        ),
        X,
    ),
    both(
        "clip",
        lambda p, x: (p.clip(x, -1, 1), p.clip(x, p.zeros((6,)), 2), p.clip(x, None, 0.5), p.clip(x, 0, None)),
        X,
    ),
    both(
        "power",
        lambda p, x: (p.power(x, 0.5), p.power(x, 7), p.power(x, 2.5), p.power(2, x), p.float_power(x, 3)),
        reals(5, low=0.1),
    ),
    both(
        "logaddexp_inf",
        lambda p, x, y: p.logaddexp(x, y),
        np.array([-np.inf, np.inf, 1.0]),
        np.array([-np.inf, 1.0, -np.inf]),
    ),
    both("hypot_large", lambda p, x, y: p.hypot(x, y), np.array([3e200, 0.0, np.inf]), np.array([4e200, 0.0, 1.0])),
    both("round_decimals", lambda p, x: (p.round(x, 2), p.round(x, -1)), reals(6, low=-99, high=99)),
    both("average", lambda p, x, w: (p.average(x), p.average(x, axis=1, weights=w)), X, reals(6, low=0.1)),
    both("isclose_nan", lambda p, x: p.isclose(x, x, equal_nan=True), _EDGES),
    Case("fmod_float32", lambda x: td.fmod(x, 2), lambda x: np.fmod(x, np.float32(2)), reals(5, dtype=np.float32)),
    Case("complex_of", td.complex, lambda x, y: x + 1j * y, reals(4), reals(4)),
    Case(
        "weak_scalars",
        lambda x: (x * 2.5, x + 1, 3 - x, x / 3, x**2, x * 1j),
        lambda x: tuple(
            r.astype(np.complex64 if r.dtype.kind == "c" else np.float32)
            for r in (x * 2.5, x + 1, 3 - x, x / 3, x**2, x * 1j)
        ),
        reals(5, dtype=np.float32),
    ),
]

_ACTIVATIONS = [
    Case("softmax", td.softmax, lambda x: _softmax(x, -1), reals(3, 5) * 300),
    Case("softmax_axis", lambda x: td.softmax(x, axis=0), lambda x: _softmax(x, 0), reals(3, 5, dtype=np.float32)),
    Case("log_softmax", td.log_softmax, lambda x: np.log(_softmax(x, -1)), reals(3, 5)),
    Case(
        "logsumexp",
        lambda x: (td.logsumexp(x), td.logsumexp(x, axis=0), td.logsumexp(x, axis=1, keepdims=True)),
        lambda x: (np.log(np.exp(x).sum()), np.log(np.exp(x).sum(0)), np.log(np.exp(x).sum(1, keepdims=True))),
        reals(3, 5),
    ),
    Case("logsumexp_inf", td.logsumexp, lambda x: np.float64(-np.inf), np.array([-np.inf, -np.inf])),
    Case("logistic", td.logistic, lambda x: 1 / (1 + np.exp(-x)), reals(5)),
    Case("erf", td.erf, _erf, reals(6)),
    Case("rsqrt", td.rsqrt, lambda x: 1 / np.sqrt(x), reals(5, low=0.1)),
    Case("gelu", td.gelu, lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2))), reals(6)),
    Case(
        "gelu_tanh",
        lambda x: td.gelu(x, approximate=True),
        lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        reals(6),
    ),
    Case(
        "relu_silu_elu",
        lambda x: (td.relu(x), td.silu(x), td.elu(x), td.softplus(x)),
        lambda x: (np.maximum(x, 0), x / (1 + np.exp(-x)), np.where(x > 0, x, np.expm1(x)), np.log1p(np.exp(x))),
        reals(6),
    ),
    Case("norm", td.norm, np.linalg.norm, complexes(3, 4)),
]

_DTYPES = [
    same(
        f"dtype_{dtype.__name__}",
        lambda x: (x + x, x * x, x.sum(), x.max(), x.astype(np.float64)),
        reals(5).astype(dtype),
    )
    for dtype in (np.float16, np.float32, np.int32, np.int64)
]

CASES = [
    *_unary_cases(),
    *_binary_cases(),
    *_reduction_cases(),
    *_SHAPING,
    *_CREATION,
    *_INDEXING,
    *_CONTRACTION,
    *_OPERATORS,
    *_ACTIVATIONS,
    *_DTYPES,
]
