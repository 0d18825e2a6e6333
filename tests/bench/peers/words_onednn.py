"""oneDNN's words: its primitives by its C interface, made once for each shape."""
import ctypes
import glob
import os
import sys

import numpy

DTYPES = {"f16": 1, "bf16": 2, "f32": 3}
CPU, IN_ORDER, INFERENCE, SOFTMAX = 1, 1, 96, 0x30000
SRC, DST, WEIGHTS = 1, 17, 33
DIMS = ctypes.c_int64 * 12


class Argument(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("memory", ctypes.c_void_p)]


class Tensor:
    """An array with the dtype that oneDNN takes it for: NumPy has no BF16."""

    def __init__(self, array, dtype):
        self.array, self.dtype = array, dtype

    @property
    def shape(self):
        return self.array.shape

    def view(self, shape, strides):
        """Of elements."""
        size = self.array.itemsize
        return Tensor(numpy.lib.stride_tricks.as_strided(self.array, shape, [s * size for s in strides]), self.dtype)


def new_tensor(shape, dtype):
    return Tensor(numpy.empty(shape, numpy.float32 if dtype == "f32" else numpy.uint16), dtype)


class Library:
    """Calls that answer 0, with what they make as their first argument."""

    def __init__(self):
        files = sorted(glob.glob(os.path.join(sys.prefix, "lib", "libdnnl.so.3*")))
        if not files:
            raise ImportError("no libdnnl.so.3 in " + sys.prefix)
        self.library = ctypes.CDLL(files[0])

    def make(self, name, *arguments):
        made = ctypes.c_void_p()
        self.call(name, ctypes.byref(made), *arguments)
        return made

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status == 3:  # dnnl_unimplemented
            raise NotImplementedError("oneDNN has no %s for this processor" % name)
        if status:
            raise RuntimeError("%s: %d" % (name, status))


class OneDnnWords:
    def __init__(self):
        self.library = Library()
        self.engine = self.library.make("dnnl_engine_create", CPU, ctypes.c_size_t(0))
        self.stream = self.library.make("dnnl_stream_create", self.engine, IN_ORDER)
        self.primitives = {}

    def __getattr__(self, name):
        raise NotImplementedError("oneDNN has no " + name)

    def half(self, array, dtype):
        return Tensor(array.view(numpy.uint16), dtype)

    def widened(self, value):
        if value.dtype == "f16":
            return value.array.view(numpy.float16).astype(numpy.float32)
        return (value.array.astype(numpy.uint32) << 16).view(numpy.float32) if value.dtype == "bf16" else value.array

    def described(self, tensor):
        strides = [s // tensor.array.itemsize for s in tensor.array.strides]
        return self.library.make("dnnl_memory_desc_create_with_strides", len(tensor.shape), DIMS(*tensor.shape),
                                 DTYPES[tensor.dtype], DIMS(*strides))

    def run(self, name, describe, tensors):
        """One primitive over (argument, tensor), made when it is run first. `describe` gives what its description takes of
        those of the tensors."""
        key = (name,) + tuple((t.shape, t.array.strides, t.dtype) for _, t in tensors)
        if key not in self.primitives:
            descriptions = [self.described(t) for _, t in tensors]
            made = self.library.make(name + "_primitive_desc_create", self.engine, *describe(*descriptions))
            self.primitives[key] = self.library.make("dnnl_primitive_create", made), descriptions
        primitive, descriptions = self.primitives[key]
        memories = [self.library.make("dnnl_memory_create", d, self.engine, ctypes.c_void_p(t.array.ctypes.data))
                    for d, (_, t) in zip(descriptions, tensors)]
        arguments = (Argument * len(tensors))(*[(kind, m.value) for (kind, _), m in zip(tensors, memories)])
        self.library.call("dnnl_primitive_execute", primitive, self.stream, len(tensors), arguments)
        self.library.call("dnnl_stream_wait", self.stream)
        for memory in memories:
            self.library.call("dnnl_memory_destroy", memory)

    def multiplied(self, a, b, dtype):
        product = new_tensor(a.shape[:-1] + b.shape[-1:], dtype)
        self.run("dnnl_matmul", lambda left, right, result: (left, right, None, result, None),
                 [(SRC, a), (WEIGHTS, b), (DST, product)])
        return product

    def matmul(self, a, b):
        a, b = (x if isinstance(x, Tensor) else Tensor(x, {"float32": "f32"}.get(x.dtype.name)) for x in (a, b))
        if None in (a.dtype, b.dtype):
            raise NotImplementedError("oneDNN has no products of F64")
        return self.multiplied(a, b, a.dtype)

    def decode_step(self, q, k, v, K, V, position):
        if not isinstance(q, Tensor):
            q, k, v, K, V = (Tensor(x, "f32") for x in (q, k, v, K, V))
        at = int(position)
        K.array[:, at], V.array[:, at] = k.array[:, 0], v.array[:, 0]
        heads, depth = q.shape
        length = at + 1
        keys = K.view((heads, depth, length), (K.shape[1] * depth, 1, depth))
        scores = self.multiplied(q.view((heads, 1, depth), (depth, depth, 1)), keys, "f32")
        scores.array *= depth ** -0.5
        weights = new_tensor(scores.shape, q.dtype)
        self.run("dnnl_softmax_forward", lambda x, y: (INFERENCE, SOFTMAX, x, y, 2, None), [(SRC, scores), (DST, weights)])
        values = V.view((heads, length, depth), (V.shape[1] * depth, depth, 1))
        attention = self.multiplied(weights, values, q.dtype)
        return {"attention": Tensor(attention.array[:, 0], q.dtype), "K": K, "V": V}
