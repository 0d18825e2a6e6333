"""Derivatives along directions: forwards along tangents, backwards along cotangents."""

from tensord.derivatives.gradients import grad
from tensord.derivatives.traced_call import TracedCall, as_directions, types_of
from tensord.functions.creation import zeros_like


def jvp(function, primals, tangents, has_aux=False):
    """(results, tangents of the results) of a function at `primals` along `tangents`, both tuples of its arguments.

    Tangents have the structures, dtypes and shapes of the primals, which are floats or complex numbers; a result of
    another dtype has the tangent None. has_aux: the function returns a pair (results, others), and others come third.
    Works in traced functions, as td.grad does.
    """
    _check_tuples("td.jvp", primals, tangents)
    call = TracedCall("td.jvp", function, primals, {}, range(len(primals)), has_aux)
    directions = as_directions("td.jvp", tuple(tangents), call.arguments, call.values)
    slopes = _along(call, directions)
    return (call.value(), slopes, call.aux) if has_aux else (call.value(), slopes)


def _along(call, directions):
    smooth = [output for output in call.outputs if output.dtype.is_inexact]
    if smooth and directions:
        found = iter(call.derivative("jvp").apply(directions, types_of(smooth)))
    else:
        found = iter([zeros_like(output) for output in smooth])
    return call.for_each_output([next(found) if output.dtype.is_inexact else None for output in call.outputs])


def vjp(function, *primals, has_aux=False):
    """(results, backward): the results of a function at `primals`, and a function that takes cotangents backwards.

    backward(cotangents) takes the structure, dtypes and shapes of the results and returns a tuple, a cotangent for each
    primal. It may be called several times; what lies before the cotangents is computed once. The cotangent of an
    integer or truth value is not looked at. Cotangents are adjoints: td.vjp of a linear map is its conjugate transpose.
    has_aux: the function returns a pair (results, others), and others come third. Works in traced functions, as td.grad
    does.
    """
    call = TracedCall("td.vjp", function, primals, {}, range(len(primals)), has_aux)

    def backward(cotangents):
        directions = as_directions("the backward function of td.vjp", cotangents, call.results, call.outputs)
        return call.for_each_value(call.backward(directions))

    return (call.value(), backward, call.aux) if has_aux else (call.value(), backward)


def hvp(function, primals, tangents, argnums=0):
    """The product of the Hessian of a function, which returns one real number, with `tangents`: no Hessian is made.

    It is the tangent of td.grad(function, argnums) at `primals` along `tangents`, both tuples of the function's
    arguments, and has the structure of the gradient. Works in traced functions, as td.grad does.
    """
    _check_tuples("td.hvp", primals, tangents)
    return jvp(grad(function, argnums), primals, tangents)[1]


def _check_tuples(title, primals, tangents):
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, (tuple, list)):
            raise TypeError(f"{title} takes {name} as a tuple, one for each argument, not {given!r}: ({name},)")
    if len(primals) != len(tangents):
        raise ValueError(f"{title} takes a tangent for each primal, got {len(tangents)} for {len(primals)}")
