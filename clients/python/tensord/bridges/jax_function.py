"""Compiled programs as functions of JAX."""

import functools
import inspect

import numpy as np

from tensord import dims, dtypes
from tensord.derivatives.programs import backward_program


def to_jax(program):
    """A function of JAX that computes a td.CompiledProgram on its server, differentiable by jax.grad and jax.vjp.

    It takes the program's arguments, in their structure, and returns its results, as jax.Arrays; it works in jax.jit,
    and in jax.vmap by a call for each element. Dtypes must be the program's: JAX has 64 bits only with jax_enable_x64.
    The server makes the backward pass when it is first asked for, and that of the backward pass, for second
    derivatives; forward mode (jax.jvp) is JAX's refusal for every custom_vjp. Cotangents have JAX's convention for
    complex numbers. Integers have no cotangent. Sizes of results are those of arguments, or known; a size that the run
    decides is a TypeError. Raises ImportError without JAX.
    """
    import jax

    flat = _flat_function(jax, program.flat())

    @functools.wraps(program, updated=())
    def call(*args, **named):
        leaves = program.argument_leaves(args, named)
        arrays = [_array(jax, *one) for one in zip(program.graph.inputs, program.input_specs, leaves)]
        return program.unflatten_results(flat(*arrays))

    call.__name__ = call.__qualname__ = program.graph.name
    return call


def _array(jax, value, spec, leaf):
    array = jax.numpy.asarray(leaf, spec.dtype.numpy) if dtypes.is_weak(leaf) else jax.numpy.asarray(leaf)
    if array.dtype != spec.dtype.numpy:
        hint = ""
        if spec.dtype.itemsize > array.dtype.itemsize and not jax.config.jax_enable_x64:
            hint = ", and JAX has 64 bits only after jax.config.update('jax_enable_x64', True)"
        raise TypeError(f"argument {value.name!r} is {array.dtype}, the program was compiled for {spec.dtype}{hint}")
    return array


def _flat_function(jax, program):
    options = _callback_options(jax)

    def run(*arrays):
        return tuple(program(*map(np.asarray, arrays)))

    def primal(*arrays):
        types = [jax.ShapeDtypeStruct(shape, spec.dtype.numpy)
                 for shape, spec in zip(_result_shapes(program, arrays), program.output_specs)]  # fmt: skip
        return tuple(jax.pure_callback(run, tuple(types), *arrays, **options))

    backward_function = functools.lru_cache(None)(lambda: _flat_function(jax, backward_program(program)))

    def forward(*arrays):
        return function(*arrays), arrays

    def backward(arrays, cotangents):
        # JAX's cotangents are transposes, the server's are adjoints.
        given = [jax.numpy.conj(one) for one, spec in zip(cotangents, program.output_specs) if spec.dtype.is_inexact]
        found = iter(backward_function()(*arrays, *given) if given else ())
        return tuple(
            jax.numpy.conj(next(found)) if spec.dtype.is_inexact else np.zeros(array.shape, jax.dtypes.float0)
            for array, spec in zip(arrays, program.input_specs)
        )

    function = jax.custom_vjp(primal)
    function.defvjp(forward, backward)
    return function


def _callback_options(jax):
    """How a callback is mapped over a batch, a call for each, in this version of JAX."""
    has_methods = "vmap_method" in inspect.signature(jax.pure_callback).parameters
    return {"vmap_method": "sequential"} if has_methods else {"vectorized": False}


def _result_shapes(program, arrays):
    sizes = {}
    for spec, array in zip(program.input_specs, arrays):
        if len(spec.shape) != array.ndim:
            raise ValueError(f"{program!r} was given an array of shape {array.shape} for {spec}")
        for size, actual in zip(spec.shape, array.shape):
            sizes.update((leaf, actual) for leaf in dims.leaves_of(size) if size == dims.Dim.symbol(leaf))
    try:
        return [tuple(dims.evaluate(size, sizes) for size in spec.shape) for spec in program.output_specs]
    except KeyError:
        raise TypeError(f"{program!r} has results of sizes that its run decides, which no function of JAX can have") from None
