"""Compiled programs as functions of PyTorch."""

import functools

import numpy as np

from tensord import dtypes
from tensord.derivatives.programs import backward_program


def to_torch(program):
    """A function of PyTorch that computes a td.CompiledProgram on its server, differentiable by autograd.

    It takes the program's arguments, in their structure, as tensors of its dtypes, and returns its results as tensors
    on the device of the first argument. The server makes the backward pass when it is first asked for, and that of the
    backward pass, for second derivatives (create_graph=True). Integers have no gradient; gradients of complex numbers
    have PyTorch's convention, which is the server's too. Raises ImportError without PyTorch.
    """
    import torch

    remote = _Remote(program.flat())

    @functools.wraps(program, updated=())
    def call(*args, **named):
        leaves = program.argument_leaves(args, named)
        tensors = [_tensor(torch, *one) for one in zip(program.graph.inputs, program.input_specs, leaves)]
        return program.unflatten_results(_function(torch).apply(remote, *tensors))

    call.__name__ = call.__qualname__ = program.graph.name
    return call


class _Remote:
    """A program of flat arguments, and its backward pass once that was asked for."""

    def __init__(self, program):
        self.program = program

    @functools.cached_property
    def backward(self):
        return _Remote(backward_program(self.program))


def _tensor(torch, value, spec, leaf):
    wanted = getattr(torch, str(spec.dtype))
    tensor = torch.as_tensor(leaf, dtype=wanted) if dtypes.is_weak(leaf) else torch.as_tensor(leaf)
    if tensor.dtype is not wanted:
        raise TypeError(f"argument {value.name!r} is {tensor.dtype}, the program was compiled for {spec.dtype}")
    return tensor


def _to_numpy(torch, tensor, dtype):
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    if dtype is dtypes.bfloat16:
        return tensor.contiguous().view(torch.int16).numpy().view(dtype.numpy)
    return tensor.numpy()


def _from_numpy(torch, array, dtype, device):
    if dtype is dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16).to(device)
    return torch.from_numpy(array.copy()).to(device)


@functools.lru_cache(None)
def _function(torch):
    """The autograd.Function of every program, made once PyTorch was imported."""

    class RemoteFunction(torch.autograd.Function):
        @staticmethod
        def forward(remote, *tensors):
            specs = remote.program.input_specs
            device = tensors[0].device if tensors else None
            results = remote.program(*(_to_numpy(torch, tensor, spec.dtype) for tensor, spec in zip(tensors, specs)))
            return tuple(
                _from_numpy(torch, result, spec.dtype, device) for result, spec in zip(results, remote.program.output_specs)
            )

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.remote = inputs[0]
            ctx.save_for_backward(*inputs[1:])
            specs = ctx.remote.program.output_specs
            ctx.mark_non_differentiable(*(one for one, spec in zip(output, specs) if not spec.dtype.is_inexact))

        @staticmethod
        def backward(ctx, *cotangents):
            program, tensors = ctx.remote.program, ctx.saved_tensors
            given = [one for one, spec in zip(cotangents, program.output_specs) if spec.dtype.is_inexact]
            found = iter(RemoteFunction.apply(ctx.remote.backward, *tensors, *given))
            return (None, *(next(found) if spec.dtype.is_inexact else None for spec in program.input_specs))

    return RemoteFunction
