"""Jacobians and Hessians, row by row or column by column."""

from tensord import dims
from tensord.derivatives.gradients import named
from tensord.derivatives.traced_call import TracedCall, describe, types_of
from tensord.functions.creation import eye, zeros
from tensord.functions.logic import conj
from tensord.functions.shaping import moveaxis, reshape, stack


def jacfwd(function, argnums=0, has_aux=False, holomorphic=False):
    """A function that returns the Jacobian of `function`, a column for each element of its arguments: for few arguments.

    The Jacobian has the structure of the result; each leaf is replaced by the structure of the argument, or a tuple of
    those for several argnums, whose leaves have the axes of the result and then those of the argument. argnums, has_aux
    and where it works: as td.grad. Each column is nodes of its own, so the sizes are known while tracing. holomorphic:
    as for td.grad; without, arguments are real.
    """

    def jacobian(*args, **keywords):
        call = TracedCall("td.jacfwd", function, args, keywords, argnums, has_aux)
        _check_dtypes(call, holomorphic, call.values, "an argument")
        blocks = [_columns(call, place) for place in range(len(call.values))]
        return _arranged(call, [[block[place] for block in blocks] for place in range(len(call.outputs))], has_aux)

    return named("jacfwd", function, jacobian)


def jacrev(function, argnums=0, has_aux=False, holomorphic=False):
    """A function that returns the Jacobian of `function`, a row for each element of its result: for few results.

    As td.jacfwd, but results are real without holomorphic.
    """

    def jacobian(*args, **keywords):
        call = TracedCall("td.jacrev", function, args, keywords, argnums, has_aux)
        _check_dtypes(call, holomorphic, call.outputs, "a result")
        return _arranged(call, [_rows(call, place, holomorphic) for place in range(len(call.outputs))], has_aux)

    return named("jacrev", function, jacobian)


def hessian(function, argnums=0, has_aux=False, holomorphic=False):
    """A function that returns the second derivatives of `function`: td.jacfwd of td.jacrev, in that structure."""
    rows = jacrev(function, argnums, has_aux, holomorphic)
    return named("hessian", function, jacfwd(rows, argnums, has_aux, holomorphic))


def _columns(call, place):
    """For each output the derivative with respect to one value."""
    value, types = call.values[place], types_of(call.outputs)
    basis = _basis(call, value)
    if not basis:
        return [zeros(shape + value.shape, dtype) for dtype, shape in types]
    derivative = call.derivative("jvp", wrt=[place])
    columns = [derivative.apply([direction], types) for direction in basis]
    return [
        reshape(moveaxis(stack([column[index] for column in columns]), 0, -1), shape + value.shape)
        for index, (_, shape) in enumerate(types)
    ]


def _rows(call, place, holomorphic):
    """For each value the derivative of one output."""
    output, types = call.outputs[place], types_of(call.values)
    basis = _basis(call, output)
    if not basis or not types:
        return [zeros(output.shape + shape, dtype) for dtype, shape in types]
    derivative = call.derivative("vjp", outputs=[place])
    rows = [derivative.apply([direction], types) for direction in basis]
    blocks = [stack([row[index] for row in rows]) for index in range(len(types))]
    blocks = [reshape(block, output.shape + shape) for block, (_, shape) in zip(blocks, types)]
    return [conj(block) if holomorphic else block for block in blocks]


def _basis(call, value):
    """A direction for each element of a value, in order."""
    count = dims.product(value.shape)
    if not dims.is_static(count):
        raise TypeError(
            f"{call.title} makes nodes for each element of {describe(value)}, and {count} is known only when the program "
            "runs: use td.jvp or td.vjp along the directions that are wanted, or compile for a size"
        )
    identity = eye(count, dtype=value.dtype)
    return [reshape(identity[index], value.shape) for index in range(count)]


def _check_dtypes(call, holomorphic, values, what):
    for value in [*call.values, *call.outputs] if holomorphic else call.outputs:
        if not (value.dtype.is_complex if holomorphic else value.dtype.is_inexact):
            wanted = "complex numbers" if holomorphic else "floats and complex numbers"
            raise TypeError(f"{call.title} of {call.name} takes {wanted}, not {describe(value)}: convert it with astype")
    for value in [] if holomorphic else values:
        if value.dtype.is_complex:
            raise TypeError(
                f"{call.title}: {what} of {call.name} is {describe(value)}, whose derivative is no matrix: set "
                "holomorphic if it is a complex derivative, or differentiate real and imaginary parts"
            )


def _arranged(call, blocks, has_aux):
    """Blocks, one for each output and value, in the structures of the results and the arguments."""
    jacobian = call.for_each_output([call.for_each_value(row) for row in blocks])
    return (jacobian, call.aux) if has_aux else jacobian
