"""Gradients of functions with one real number as their result."""

import functools

from tensord.array import Array
from tensord.derivatives.traced_call import TracedCall, describe, name_of, types_of
from tensord.functions.logic import conj
from tensord.tracing.lifting import as_array


def grad(function, argnums=0, has_aux=False, holomorphic=False):
    """A function that returns the gradient of `function`, which returns one real number.

    It takes the arguments of `function`, and works where that is traced: in td.compile and td.evaluate, in other traced
    functions, and in another td.grad. argnums: the place of the argument, or a sequence of places, to differentiate with
    respect to; the gradient has that argument's structure, dtypes and shapes, and is a tuple for a sequence. has_aux:
    `function` returns a pair (number, others), and the gradient comes as a pair (gradient, others). holomorphic:
    arguments and result are complex, and the result is the complex derivative.

    The server differentiates while the function is traced: that of td.compile's or td.evaluate's `client`. The
    gradient of a real function of complex numbers x + iy is df/dx + i df/dy, the direction of steepest ascent; JAX's is the
    conjugate. Raises TypeError for another result and for integers, td.Unimplemented, with `node` and `op`, where an
    operation has no derivative.
    """
    both = value_and_grad(function, argnums, has_aux, holomorphic, _title="td.grad")

    def gradient(*args, **keywords):
        value, slopes = both(*args, **keywords)
        return (slopes, value[1]) if has_aux else slopes

    return named("grad", function, gradient)


def value_and_grad(function, argnums=0, has_aux=False, holomorphic=False, *, _title="td.value_and_grad"):
    """A function that returns a pair: the result of `function`, and its gradient as td.grad has it.

    With has_aux the pair is ((number, others), gradient).
    """

    def value_and_gradient(*args, **keywords):
        call = TracedCall(_title, function, args, keywords, argnums, has_aux)
        value = _one_number(call, holomorphic)
        if holomorphic:
            slopes = [conj(slope) for slope in call.backward([as_array(1, value.dtype)])]
        else:
            slopes = call.derivative("grad").apply([], types_of(call.values)) if call.values else []
        return (value, call.aux) if has_aux else value, call.for_each_value(slopes)

    return named("value_and_grad", function, value_and_gradient)


def _one_number(call, holomorphic):
    result = call.value()
    wanted = "one complex number" if holomorphic else "one real number"
    if not isinstance(result, Array):
        hint = "; has_aux=True is for a pair (number, others)" if isinstance(result, (tuple, list)) else ""
        raise TypeError(f"{call.title} takes a function that returns {wanted}, and {call.name} returns {result!r}{hint}")
    if result.shape:
        raise TypeError(
            f"{call.title} takes a function that returns {wanted}, and {call.name} returns {describe(result)}: reduce it "
            "with td.sum or td.mean, or use td.vjp, td.jacfwd or td.jacrev"
        )
    if not (result.dtype.is_complex if holomorphic else result.dtype.is_float):
        hint = "" if holomorphic or not result.dtype.is_complex else ": take td.real or td.abs of it, or set holomorphic"
        raise TypeError(
            f"{call.title} takes a function that returns {wanted}, and {call.name} returns {describe(result)}{hint}"
        )
    if holomorphic and not all(value.dtype.is_complex for value in call.values):
        raise TypeError(f"{call.title} with holomorphic takes complex arguments: convert those of {call.name} with astype")
    return result


def named(prefix, function, made):
    """`made`, with the signature of `function` and a name of its own."""
    functools.update_wrapper(made, function)
    made.__name__ = f"{prefix}_of_{name_of(function)}"
    return made
