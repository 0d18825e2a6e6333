"""ONNX's words: they record a model, which ONNX Runtime runs."""
import math

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 23
TYPES = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "int32": TensorProto.INT32, "int64": TensorProto.INT64,
         "bool": TensorProto.BOOL}


class Recorder:
    """The nodes and constants of a model that is being written."""

    def __init__(self):
        self.nodes = []
        self.constants = {}

    def constant(self, array):
        array = numpy.asarray(array)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.constants:
            self.constants[key] = numpy_helper.from_array(array, "c%d" % len(self.constants))
        return self.constants[key].name

    def add(self, op, inputs, shape, dtype, **attributes):
        name = "v%d" % len(self.nodes)
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return Value(self, name, tuple(shape), dtype)

    def model(self, inputs, outputs):
        graph_inputs = [helper.make_tensor_value_info(n, TYPES[a.dtype.name], a.shape) for n, a in inputs.items()]
        graph_outputs = []
        for name, value in outputs.items():
            self.nodes.append(helper.make_node("Identity", [value.name], ["out_" + name]))
            graph_outputs.append(helper.make_tensor_value_info("out_" + name, TYPES[value.dtype], value.shape))
        graph = helper.make_graph(self.nodes, "graph", graph_inputs, graph_outputs, list(self.constants.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
        onnx.checker.check_model(model)
        return model


class Value:
    """A tensor of the model, with the operators of arrays."""

    def __init__(self, recorder, name, shape, dtype):
        self.recorder, self.name, self.shape, self.dtype = recorder, name, shape, dtype

    def operand(self, other):
        if isinstance(other, Value):
            return other
        array = numpy.asarray(other, self.dtype)
        return Value(self.recorder, self.recorder.constant(array), array.shape, self.dtype)

    def combined(self, op, other, swapped=False, dtype=None):
        left, right = self, self.operand(other)
        if swapped:
            left, right = right, left
        return self.recorder.add(op, [left.name, right.name], numpy.broadcast_shapes(left.shape, right.shape),
                                 dtype or self.dtype)

    def __gt__(self, other):
        return self.combined("Greater", other, dtype="bool")

    def __neg__(self):
        return self.recorder.add("Neg", [self.name], self.shape, self.dtype)

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        if Ellipsis in index:
            at = index.index(Ellipsis)
            index = index[:at] + (slice(None),) * (len(self.shape) - len(index) + 1) + index[at + 1:]
        starts, ends, axes = [], [], []
        shape = list(self.shape)
        for axis, part in enumerate(index):
            start, end, _ = part.indices(shape[axis])
            if (start, end) != (0, shape[axis]):
                starts.append(start)
                ends.append(end)
                axes.append(axis)
                shape[axis] = end - start
        bounds = [self.recorder.constant(numpy.array(x, numpy.int64)) for x in (starts, ends, axes)]
        return self.recorder.add("Slice", [self.name] + bounds, shape, self.dtype) if axes else self


for _name, _op in (("add", "Add"), ("sub", "Sub"), ("mul", "Mul"), ("truediv", "Div"), ("pow", "Pow")):
    setattr(Value, "__%s__" % _name, lambda self, other, o=_op: self.combined(o, other))
    setattr(Value, "__r%s__" % _name, lambda self, other, o=_op: self.combined(o, other, True))


class OnnxWords:
    UNARY = {"exp": "Exp", "log": "Log", "sin": "Sin", "cos": "Cos", "tanh": "Tanh", "sqrt": "Sqrt", "abs": "Abs",
             "sign": "Sign", "relu": "Relu"}

    def __getattr__(self, name):
        if name not in self.UNARY:
            raise NotImplementedError("ONNX has no " + name)
        return lambda x: x.recorder.add(self.UNARY[name], [x.name], x.shape, x.dtype)

    def named(self, op, x, others, shape, **attributes):
        return x.recorder.add(op, [x.name] + [x.operand(o).name for o in others], shape, x.dtype, **attributes)

    def pow(self, x, y):
        return x ** y

    def rsqrt(self, x):
        return 1 / self.sqrt(x)

    def expm1(self, x):
        return self.exp(x) - 1

    def log1p(self, x):
        return self.log(x + 1)

    def where(self, condition, x, y):
        some = x if isinstance(x, Value) else y
        x, y = some.operand(x), some.operand(y)
        shape = numpy.broadcast_shapes(condition.shape, x.shape, y.shape)
        return some.recorder.add("Where", [condition.name, x.name, y.name], shape, some.dtype)

    def clip(self, x, low, high):
        return self.named("Clip", x, [low, high], x.shape)

    def gelu(self, x):
        return self.named("Gelu", x, [], x.shape, approximate="tanh")

    def adamw(self, p, m, v, g, step):
        new_m = m * 0.9 + g * (1 - 0.9)
        new_v = v * 0.999 + g * g * (1 - 0.999)
        ratio = new_m / (1 - 0.9 ** step) / (self.sqrt(new_v / (1 - 0.999 ** step)) + 1e-8)
        return {"p": p - (ratio + p * 0.01) * 1e-3, "m": new_m, "v": new_v}

    def softmax(self, x):
        return self.named("Softmax", x, [], x.shape, axis=-1)

    def layer_norm(self, x, scale, shift):
        return self.named("LayerNormalization", x, [scale, shift], x.shape, axis=-1, epsilon=1e-5)

    def reduced(self, op, x, axes):
        axes = (axes,) if isinstance(axes, int) else axes
        shape = [s for i, s in enumerate(x.shape) if i not in axes]
        return x.recorder.add(op, [x.name, x.recorder.constant(numpy.array(axes, numpy.int64))], shape, x.dtype, keepdims=0)

    def sum(self, x, axes):
        return self.reduced("ReduceSum", x, axes)

    def max(self, x, axes):
        return self.reduced("ReduceMax", x, axes)

    def min(self, x, axes):
        return self.reduced("ReduceMin", x, axes)

    def prod(self, x, axes):
        return self.reduced("ReduceProd", x, axes)

    def sum_of_squares(self, x):
        return self.reduced("ReduceSumSquare", x, tuple(range(len(x.shape))))

    def to_f64(self, x):
        return x.recorder.add("Cast", [x.name], x.shape, "float64", to=TensorProto.DOUBLE)

    def permute(self, x, axes):
        return x.recorder.add("Transpose", [x.name], [x.shape[a] for a in axes], x.dtype, perm=list(axes))

    transpose = permute

    def reshape(self, x, shape):
        shape_name = x.recorder.constant(numpy.array(shape, numpy.int64))
        return x.recorder.add("Reshape", [x.name, shape_name], shape, x.dtype)

    def concat(self, parts, axis):
        shape = list(parts[0].shape)
        shape[axis] = sum(p.shape[axis] for p in parts)
        return parts[0].recorder.add("Concat", [p.name for p in parts], shape, parts[0].dtype, axis=axis)

    def pad_around(self, x):
        pads = x.recorder.constant(numpy.array([1, 1, 1, 1], numpy.int64))
        return x.recorder.add("Pad", [x.name, pads], tuple(size + 2 for size in x.shape), x.dtype)

    def pad_end(self, x, count):
        pads = x.recorder.constant(numpy.array([0, count], numpy.int64))
        return x.recorder.add("Pad", [x.name, pads], (x.shape[0] + count,), x.dtype)

    def flip(self, x):
        bounds = [x.recorder.constant(numpy.array([n], numpy.int64)) for n in (-1, -x.shape[0] - 1, 0, -1)]
        return x.recorder.add("Slice", [x.name] + bounds, x.shape, x.dtype)

    def take_rows(self, table, indices):
        return table.recorder.add("Gather", [table.name, indices.name], indices.shape + table.shape[1:], table.dtype, axis=0)

    def add_rows(self, table, indices, update):
        positions = indices.recorder.add("Cast", [indices.name], indices.shape, "int64", to=TensorProto.INT64)
        positions = self.reshape(positions, indices.shape + (1,))
        return table.recorder.add("ScatterND", [table.name, positions.name, update.name], table.shape, table.dtype,
                                  reduction="add")

    def matmul(self, a, b):
        shape = numpy.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + (a.shape[-2], b.shape[-1])
        return a.recorder.add("MatMul", [a.name, b.name], shape, a.dtype)

    def linear(self, x, weights, bias):
        return x.recorder.add("Gemm", [x.name, weights.name, bias.name], (x.shape[0], weights.shape[1]), x.dtype)

    def attention(self, q, k, v, **attributes):
        parts = [self.reshape(y, (1,) + y.shape) for y in (q, k, v)]
        result = q.recorder.add("Attention", [p.name for p in parts], parts[0].shape, q.dtype,
                                scale=1 / math.sqrt(q.shape[-1]), **attributes)
        return self.reshape(result, q.shape)

    def causal_attention(self, q, k, v):
        return self.attention(q, k, v, is_causal=1)

    def conv3x3(self, x, kernel):
        return x.recorder.add("Conv", [x.name, kernel.name], (x.shape[0], kernel.shape[0]) + x.shape[2:], x.dtype,
                              pads=[1, 1, 1, 1])

    def einsum(self, equation, *operands):
        terms, result = equation.split("->")
        sizes = {label: size for term, x in zip(terms.split(","), operands) for label, size in zip(term, x.shape)}
        return operands[0].recorder.add("Einsum", [x.name for x in operands], [sizes[label] for label in result],
                                        operands[0].dtype, equation=equation)
