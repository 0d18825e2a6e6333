"""Activation functions of neural networks."""

import math

from tensord import dtypes
from tensord.functions.arithmetic import add, maximum, multiply, negative
from tensord.functions.logic import greater, where
from tensord.functions.transcendental import erf, exp, expm1, log1p, logistic
from tensord.tracing import pointwise
from tensord.tracing.lifting import as_array


def relu(x):
    """max(x, 0)."""
    return maximum(x, 0)


def silu(x):
    """x * logistic(x)."""
    return pointwise.rounded_once(lambda x: multiply(x, logistic(x)), as_array(x))


def gelu(x, approximate=False):
    """x * P(X <= x) for a standard normal X; with `approximate`, by the formula with tanh."""
    x = as_array(x)
    x = x.builder.convert(x, dtypes.inexact_of(x.dtype))
    return pointwise.rounded_once(_gelu_by_tanh if approximate else _gelu, x)


def _gelu(x):
    return multiply(multiply(0.5, x), add(1.0, erf(multiply(x, math.sqrt(0.5)))))


def _gelu_by_tanh(x):
    inner = multiply(math.sqrt(2.0 / math.pi), add(x, multiply(0.044715, multiply(x, multiply(x, x)))))
    # (1 + tanh(u)) / 2, without the digits that the sum loses where tanh is nearly -1.
    return multiply(x, logistic(multiply(2.0, inner)))


def softplus(x):
    """log(1 + exp(x)), computed so that nothing overflows."""
    return pointwise.rounded_once(_softplus, as_array(x))


def _softplus(x):
    # Chosen by a comparison, as in logaddexp, so that derivatives of any order are right at 0.
    is_positive = greater(x, 0)
    return add(where(is_positive, x, 0), log1p(exp(where(is_positive, negative(x), x))))


def elu(x, alpha=1.0):
    """x where positive, alpha * (exp(x) - 1) elsewhere."""
    x = as_array(x)
    positive = greater(x, 0)
    return where(positive, x, multiply(alpha, expm1(where(positive, 0, x))))
