"""Everyday spellings of NumPy: parameters by place and by name, NumPy's integers and arrays of them for shapes and axes, numbers
beyond a type, signs of zero, results of small dtypes."""

import numpy as np

import checkout  # noqa: F401
import tensord as td
from function_cases import Case, both, same

F32 = np.array([[0.5, -1.5, 2.25], [3.0, -0.25, 1.0]], np.float32)
F64 = F32.astype(np.float64)
I32 = np.array([[7, -3, 0], [2, -8, 5]], np.int32)
MASK = np.array([[True, False, True], [False, True, True]])
ZEROS = np.array([0.0, -0.0, 1.5, -1.5, 6.0, -6.0, np.inf, -np.inf, np.nan])
DIVISORS = np.array([3.0, -3.0, 0.5, np.inf, -np.inf])
COMPLEX = np.array([0j, 5j, 1 + 0j, complex(0.0, -0.0)])
LARGE = 2**40


_PARAMETERS = [
    both("sum by place", lambda p, x: (p.sum(x, 0, None, None, True), p.sum(x, 1, np.float32, None, False, 5)), F64),
    both(
        "initial and where",
        lambda p, x: (
            p.sum(x, 0, initial=2.5, where=MASK),
            p.prod(x, 1, where=MASK, keepdims=True),
            p.max(x, 1, initial=0.75),
            p.min(x, 0, initial=9.0, where=MASK),
            p.any(x, 0, where=~MASK),
            p.all(x > 0, axis=1, where=MASK),
        ),
        F64,
    ),
    both("mean, var and std of some", lambda p, x: (p.mean(x, 1, where=MASK), p.var(x, 0, where=MASK), p.std(x, where=MASK)), F64),
    both("an extreme of nothing with initial", lambda p, x: p.max(x, 0, initial=-1.0), np.zeros((0, 3))),
    both("average that returns weights", lambda p, x: p.average(x, 1, np.array([1, 2, 3]), True), F64),
    both("average in float64", lambda p, x: p.average(x, weights=I32 + 10), F32),
    both("ufuncs by name", lambda p, x: (p.add(x, x, out=None, where=True, casting="same_kind", order="K"), p.exp(x, dtype=None)), F64),
    both(
        "ufuncs in a type",
        lambda p, i, b: (
            p.add(i, i, dtype=np.float64),
            p.divide(i, 4, dtype=np.float32),
            p.subtract(b, b, dtype=np.int64),
            p.less(i, 3, dtype=bool),
            p.abs(i * (1 + 1j), dtype=np.float64),
            p.multiply(i, i, dtype=np.int64, casting="safe"),
        ),
        I32,
        MASK,
    ),
    same("reduce and outer of ufuncs", lambda x: (np.add.reduce(x), np.maximum.reduce(x, axis=1), np.multiply.outer(x, x)), F64),
    same(
        "methods by place and name",
        lambda x: (
            x.sum(0, None, None, True),
            x.clip(0.0, max=2.0),
            x.clip(min=0.0),
            x.copy(),
            x.astype(np.float32, "K", "same_kind", True, False),
            x.reshape(3, 2, order="F"),
            x.ravel("F"),
            x.flatten(order="F"),
            x.round(1, None),
        ),
        F64,
    ),
    both("clip by name", lambda p, x: (p.clip(x, a_min=0, a_max=None), p.clip(x, -1, a_max=2)), F64),
    both("reshape in order F", lambda p, x: (p.reshape(x, (4, 6), order="F"), p.ravel(x, "F")), np.arange(24.0).reshape(2, 3, 4)),
    both("creation by place", lambda p, x: (p.zeros((2,), int, "F"), p.ones(2, None, order="F"), p.empty((0, 2), np.float32),
                                            p.full(2, 3.5, None, "F"), p.zeros_like(x, None, "C", True, (2,)),
                                            p.eye(2, 3, 1, int, "F"), p.identity(2, None)), F64),
    both("joined in a type", lambda p, x: (p.concatenate((x, x), 0, dtype=np.float32), p.stack([x, x], 1, None),
                                           p.concatenate((x, I32), axis=1, dtype=np.float64, casting="safe")), F64),
    both("angles in degrees", lambda p, z: (p.angle(z, True), p.angle(z.real), p.angle(z.real > 0)), COMPLEX),
    both("trace in a type", lambda p, x: p.trace(x, 1, 0, 1, np.float32, None), F64),
]  # fmt: skip

_INTEGERS = [
    same(
        "arrays as shapes and axes",
        lambda x: (
            x.reshape(np.array([3, 2])),
            np.transpose(x, np.array([1, 0])),
            x.transpose(np.array([1, 0])),
            np.sum(x, tuple(np.array([0, 1]))),
            np.moveaxis(x, np.array([0]), np.array([1])),
            np.expand_dims(x, [0, -1]),
            np.broadcast_to(x, np.array([2, 2, 3])),
            np.sum(x, np.int64(1)),
            np.sum(x, np.array(0)),
            np.flip(x, np.int32(1)),
            np.roll(x, np.array([1, 2]), np.array([0, 1])),
        ),
        F64,
    ),
    both(
        "arrays as counts",
        lambda p, x: (
            p.tile(x, np.array([2, 1])),
            p.repeat(x, np.int64(2), 0),
            p.repeat(x, np.array([2, 0, 1]), axis=1),
            p.repeat(x, [3], axis=0),
            p.repeat(x, [1, 2, 0, 1, 0, 3]),
            p.zeros(np.array([2, 1])),
            p.full(np.int64(2), 1.5),
            p.tensordot(x, x, np.array([[0], [0]])),
            p.tensordot(x, x, axes=(1, 1)),
            *p.split(x, np.array([1, 2]), axis=1),
        ),
        F64,
    ),
    both("lists of Arrays", lambda p, x: (p.maximum([x[0, 0], 1.0], 0.25), p.sum(p.asarray([x, x * 2]), 0), x[0] + [1, 2, 3]), F64),
]

_NUMBERS = [
    Case(
        "integers beyond the type compare",
        lambda x: (x < LARGE, x <= LARGE, x == LARGE, x != LARGE, x > LARGE, -LARGE < x, -LARGE > x, LARGE >= x),
        lambda x: tuple(np.full(x.shape, truth) for truth in (True, True, False, True, False, True, False, True)),
        I32,
    ),
    Case(
        "integers beyond the type do not limit",
        lambda x: (x.clip(-LARGE, LARGE), x.clip(0, LARGE), np.clip(x, -(2**70), 3)),
        lambda x: (x, np.maximum(x, 0), np.minimum(x, 3)),
        I32,
    ),
    same("integers divided by zero", lambda x, y: (x // y, x % y, np.fmod(x, y), *divmod(x, y)), I32, np.array([0, 2, -3], np.int32)),
    same("integers divided by numbers", lambda x: (x // 3, x // -3, x % 3, x % -3, np.fmod(x, -4), x // 0, x % 0, x // np.int32(2), 7 // x, 7 % x), I32),
    same("the least and the greatest integers divided by numbers",
         lambda x: tuple(f for d in (-1, 2, -3, 7, -(2**63), 2**63 - 1) for f in (x // d, x % d)),
         np.array([-(2**63), 1 - 2**63, -7, -1, 0, 1, 6, 2**63 - 2, 2**63 - 1])),
    same("integers rounded to tens", lambda x: (np.round(x, -1), x.round(-2), np.round(x, 3)), np.array([15, -25, 149, 1251])),
    Case("hypot keeps float32", lambda x: np.hypot(x, 2.0), lambda x: np.hypot(x, np.float32(2)), F32),
    same("a number is an array of its own type in products", lambda x: (np.dot(x, 2.0), np.inner(3.0, x), np.outer(x, 2.0)), F32),
    same("booleans in fractions", lambda b: (np.exp(b), np.sqrt(b), np.rint(b), np.hypot(b, b), np.mean(b), b / b), MASK),
    same("complex as truth", lambda z: (z.astype(bool), np.logical_not(z), np.any(z), np.astype(z, bool) if hasattr(np, "astype") else z),
         COMPLEX),
    # The inverse of a zero tells its sign.
    same("signs of zero", lambda x, y: (1 / (x // y), 1 / (x % y), 1 / np.sign(x), 1 / np.fmod(x, y), 1 / np.mod(x, y)),
         ZEROS[:, None], DIVISORS),
    same("floors by zero", lambda x: (x // 0.0, x % 0.0), ZEROS),
    same("a step that vanishes", lambda x, y: np.linspace(x, y, 4) * 2.0**1023 * 2.0**51, np.array(0.0), np.array([5e-324, 1.5e-323])),
    # Small powers, told apart from zero.
    same("powers whose inverses overflow", lambda x: (x**-1, (x**-2).astype(np.float64) * 2.0**16, (x**-3).astype(np.float64) * 2.0**16),
         np.array([256, -41, 3, 0.5], np.float16), tolerance=1e-3),
    same("powers beside the range", lambda x: (x**-2 * 1e306, x**-3 * 1e306, x**4), np.array([1e158, -1e103, 3.0, 1.0]), tolerance=1e-9),
    Case("floors by numbers that round to zero", lambda x: (x // 1e-50, x % -1e-50), lambda x: (x // np.float32(0), x % np.float32(-0.0)),
         ZEROS.astype(np.float32)),
]  # fmt: skip

_SMALL = [
    same("angles of small types", lambda x, b: (np.deg2rad(x), np.radians(b), np.exp2(b), np.rad2deg(x * 2)), F32, MASK),
    Case("fractions of integers beyond the type", lambda x: (x / LARGE, LARGE / x, np.isclose(x, LARGE), np.where(x > 0, 2**70, 1e300)),
         lambda x: (x / float(LARGE), float(LARGE) / x, np.zeros(x.shape, bool), np.where(x > 0, 2.0**70, 1e300)), I32),
    Case("arange with a typed step", lambda x: (td.arange(0, 3, np.float32(0.5)), td.arange(np.float32(2), dtype=np.float32)),
         lambda x: (np.arange(0, 3, 0.5), np.arange(2, dtype=np.float32)), F64),
    same("what is known of Arrays", lambda x: (np.ndim(x) + np.size(x) + np.size(x, 0) + x, np.shape(x)[1] * x, x.nbytes + x.itemsize + x, np.copy(x), np.iscomplexobj(x)), F64),
    Case("signs of complex numbers", td.sign,
         lambda z: np.array([1, -1, 1j, -1j, complex(np.nan, np.nan), 1, 1j, complex(0.6, 0.8), 0, complex(np.nan, np.nan)]),
         np.array([complex(np.inf, 1), complex(-np.inf, 0), complex(2, np.inf), complex(0, -np.inf), complex(np.inf, -np.inf),
                   complex(np.inf, np.nan), complex(np.nan, np.inf), 3 + 4j, complex(-0.0, 0.0), complex(np.nan, 1)])),
    same("complex numbers rounded", lambda z: (np.rint(z * 0.7), np.round(z, 1), np.abs(z, dtype=np.float64)), COMPLEX),
    Case("ufuncs of fractions of integers beyond the type", lambda x: (np.hypot(x, LARGE), np.arctan2(-LARGE, x)),
         lambda x: (np.hypot(x, float(LARGE)), np.arctan2(-float(LARGE), x)), I32),
    same("axis 0 of a number", lambda x: (x.sum(0), np.max(x, -1), np.argmax(x, 0), np.repeat(x, 2, 0)), np.array(2.5)),
    same("whole arrays", lambda x, y: (np.allclose(x, y), np.allclose(x, x + 1e-9), np.array_equal(x, x), np.array_equal(x, y),
                                       np.array_equal(x * np.nan, x * np.nan, equal_nan=True), np.array_equal(x, x[0])), F64, -F64),
]  # fmt: skip

_LINSPACE = [
    both(
        "linspace",
        lambda p, x: (
            p.linspace(-1, 1, 4, dtype=int),
            p.linspace(0, 1j, 3),
            p.linspace(2.5, -7, 6, False, dtype=np.int32),
            *p.linspace(0, 3, 7, retstep=True),
            *p.linspace(0, 3, 5, False, True),
            p.linspace(0, 1, 0),
            p.linspace(3, 9, 1),
            *p.linspace(3, 9, 1, retstep=True),
            p.linspace(0, 5e-324, 3),
            p.linspace(1, 1e300j, 3),
            p.linspace(False, True, 3),
            p.linspace(0, 1, np.int64(3), dtype=np.float32),
        ),
        F64,
    ),
    both(
        "linspace between arrays",
        lambda p, x: (
            p.linspace(x, x * 2, 4),
            p.linspace(x, 1.0, 3, axis=1),
            p.linspace(np.zeros(3), x, 3, axis=-1),
            *p.linspace(x, x + 1, 5, endpoint=False, retstep=True),
        ),
        F64,
    ),
    both("arange in floats", lambda p, x: (p.arange(0.1, 5.0, 0.3), p.arange(3.0, dtype=np.float32), p.arange(stop=4), p.arange(1, 2, 0.1)), F64),
]

CASES = [*_PARAMETERS, *_INTEGERS, *_NUMBERS, *_SMALL, *_LINSPACE]
