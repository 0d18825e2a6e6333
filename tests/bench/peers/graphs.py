"""The graphs of tests/bench/suite in the words of other libraries. Arrays are row-major: axes are reversed.

Every function takes a library's words `w` (words.py), the inputs by name, and returns the outputs by name. Words that a
library has an own form for, such as attention or a convolution, are used where its users would.
"""
import math

import numpy

import family_graphs


def g01(w, x):
    u = x * 1.25 + 0.5
    y = w.where(x > 0, w.tanh(u), w.exp(-(u * u))) * w.rsqrt(x * x + 1) + w.log1p(w.abs(x))
    return {"y": w.clip(y, -3, 3)}


def g01_gelu(w, x):
    return {"y": w.gelu(x)}


def g02(w, sa, ct, p):
    root = w.sqrt(sa)
    coefficient = 0.5

    def following():
        nonlocal coefficient
        coefficient = 3.9 * coefficient * (1 - coefficient)
        return coefficient

    def horner(x, degree, term):
        total = term()
        for _ in range(degree):
            total = total * x + term()
        return total

    def innermost():
        total = root * following()
        total = total + following()
        return total * root + following()

    def polynomial():
        return horner(p, 2, lambda: horner(ct, 9, innermost))

    numerator = polynomial()
    return {"y": numerator / polynomial() + w.log(sa + 1)}


def g03(w, p, m, v, g, step):
    return w.adamw(p, m, v, g, step)


def g03_lion(w, p, m, g):
    change = w.sign(m * 0.9 + g * (1 - 0.9)) + p * 0.1
    return {"p": p - change * 1e-4, "m": m * 0.99 + g * (1 - 0.99)}


def g04(w, x):
    return {"y": w.softmax(x)}


def g05(w, x, scale, shift):
    return {"y": w.layer_norm(x, scale, shift)}


def g06(w, x):
    n = x.shape[0]
    return {"sum": w.sum(x, 2), "max": w.max(x, 1), "min": w.min(x, 0), "squares": w.sum_of_squares(x),
            "mean": w.sum(x, (1, 2)) / (n * n)}


def g06b(w, x):
    y = w.to_f64(x)
    return {"sum": w.sum(y, 2), "max": w.max(y, 1), "product": w.prod(y[:, :64, :], 1)}


def transpose(*axes):
    rank = len(axes)
    reversed_axes = [rank - 1 - axes[rank - 1 - i] for i in range(rank)]
    return lambda w, x: {"y": w.transpose(x, reversed_axes)}


def g08(w, coefficient, **named):
    x = named["in"]
    laplacian = 4 * x[1:-1, 1:-1] - (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2])
    along = laplacian[1:, 1:-1] - laplacian[:-1, 1:-1]
    along = w.where(along * (x[2:-1, 2:-2] - x[1:-2, 2:-2]) > 0, 0, along)
    across = laplacian[1:-1, 1:] - laplacian[1:-1, :-1]
    across = w.where(across * (x[2:-2, 2:-1] - x[2:-2, 1:-2]) > 0, 0, across)
    divergence = along[1:] - along[:-1] + across[:, 1:] - across[:, :-1]
    return {"out": x[2:-2, 2:-2] - coefficient * divergence}


def g09_gather(w, table, indices):
    return {"y": w.take_rows(table, indices)}


def g09_scatter(w, table, indices, update):
    return {"y": w.add_rows(table, indices, update)}


def g10(w, q, k, v, K, V, position):
    return w.decode_step(q, k, v, K, V, position)


def product(w, a, b):
    return {"c": w.matmul(b, a)}


def g13(w, x, **weights):
    for layer in ("first", "second"):
        x = w.relu(w.linear(x, weights[layer + "_w"], weights[layer + "_b"]))
    return {"y": w.softmax(w.linear(x, weights["last_w"], weights["last_b"]))}


def g13_wide(w, x, layer_w, layer_b):
    return {"y": w.gelu(w.linear(x, layer_w, layer_b))}


def g14(w, q, k, v):
    return {"y": w.causal_attention(q, k, v)}


def g15(w, x, cosine, sine, **weights):
    """cosine, sine: of the rotary angles, f32[sequence, 1, half]."""
    sequence, width = x.shape
    depth = 2 * cosine.shape[-1]

    def linear(name, y):
        return w.linear(y, weights[name + "_w"], weights[name + "_b"])

    def norm(name, y):
        return w.layer_norm(y, weights[name + "_scale"], weights[name + "_shift"])

    def rotate(y):
        low, high = y[..., :depth // 2], y[..., depth // 2:]
        return w.concat([low * cosine - high * sine, high * cosine + low * sine], -1)

    normal = norm("norm1", x)
    q, k, v = (w.reshape(linear(name, normal), (sequence, width // depth, depth)) for name in ("q", "k", "v"))
    q, k, v = (w.permute(y, (1, 0, 2)) for y in (rotate(q), rotate(k), v))
    mixed = w.reshape(w.permute(w.attention(q, k, v), (1, 0, 2)), (sequence, width))
    after = x + linear("mix", mixed)
    return {"y": after + linear("down", w.gelu(linear("up", norm("norm2", after))))}


def g16(w, x, kernel, **_):
    """kernel: the weights as [out, in, 3, 3]."""
    return {"y": w.conv3x3(x, kernel)}


def g21_pad(w, x, k):
    return {"x": w.pad_end(x, x.shape[0]), "k": w.pad_end(w.flip(k), k.shape[0])}


def g21_spectrum(w, a, b):
    return {"y": a * b}


def g21_poisson(w, x, along, across):
    return {"y": x * (1 / (along[None, :] + across[:, None]))}


def g26(w, u, residual, direction, squared):
    for _ in range(10):
        wide = w.pad_around(direction)
        image = direction * 4 - wide[1:-1, :-2] - wide[1:-1, 2:] - wide[:-2, 1:-1] - wide[2:, 1:-1]
        length = squared / w.sum(direction * image, (0, 1))
        u = u + length * direction
        residual = residual - length * image
        before, squared = squared, w.sum(residual * residual, (0, 1))
        direction = residual + (squared / before) * direction
    return {"u": u, "residual": residual, "direction": direction, "squared": squared}


def g22(w, state, **gates):
    size = state.shape[0]
    qubits = int(math.log2(size))
    y = state
    for i in range(len(gates)):
        below = 2 ** (i % (qubits - 1))
        y = w.apply_gate(gates["gate%d" % i], w.reshape(y, (size // 4 // below, 4, below)))
        y = w.reshape(y, (size,))
    return {"state": y, "norm": w.inner_product(y)}


def einsum(output, equation, *names):
    """Labels name axes from the fastest on, as the graph's do."""
    terms, result = equation.split("->")
    reversed_equation = ",".join(t[::-1] for t in terms.split(",")) + "->" + result[::-1]
    return lambda w, **inputs: {output: w.einsum(reversed_equation, *[inputs[n] for n in names])}


def one_op(op):
    binary = {"divide": lambda w, x, z: x / z, "pow": lambda w, x, z: w.pow(x, z)}
    if op in binary:
        return lambda w, x, z: {"y": binary[op](w, x, z)}
    return lambda w, x: {"y": getattr(w, op)(x)}


def semiring_product(algebra):
    return lambda w, a, b: {"c": w.semiring_product(algebra, b, a)}


def spin_glass(side):
    return lambda w, **tensors: {"energy": w.spin_glass(side, *[tensors["t%d" % i] for i in range(len(tensors))])}


# Words of G27; the divisor of whole numbers is 7.
VECTOR_WORK = {
    "abs": lambda w, x: w.abs(x),
    "argmax": lambda w, x: w.argmax(x),
    "quotient": lambda w, x: w.floor_divide(x, 7),
    "remainder": lambda w, x: w.remainder(x, 7),
    "norm": lambda w, x: w.norm(x),
}


def vector_work(word):
    return lambda w, x: {"y": VECTOR_WORK[word](w, x)}


GRAPHS = {
    "G01": g01, "G01_gelu": g01_gelu, "G02": g02, "G03": g03, "G03_lion": g03_lion, "G04": g04, "G05": g05, "G06": g06,
    "G06b": g06b,
    "G07_2d": transpose(1, 0), "G07_3d_201": transpose(2, 0, 1), "G07_3d_102": transpose(1, 0, 2),
    "G07_6d": transpose(5, 0, 4, 1, 3, 2), "G07_23d_reversed": transpose(*range(22, -1, -1)),
    "G07_15d_reversed": transpose(*range(14, -1, -1)), "G07_15d_cyclic": transpose(*[(i + 1) % 15 for i in range(15)]),
    "G08": g08, "G09_gather": g09_gather, "G09_scatter": g09_scatter, "G10": g10, "G10_bf16": g10,
    "G13": g13, "G13_wide": g13_wide, "G14": g14, "G15": g15, "G16": g16,
    "G21_pad": g21_pad, "G21_spectrum": g21_spectrum, "G21_poisson": g21_poisson, "G22": g22,
    "G26": g26,
}


def graph_of(workload, network=None):
    """`network`: terms, output and path of a sum of products, for the workloads G24."""
    if network:
        return family_graphs.network_graph(network)
    if family_graphs.is_matrix_work(workload):
        return family_graphs.graph_of(workload)
    if workload.startswith("G01b_"):
        return one_op(workload.split("_")[1])
    if workload.startswith("G28_"):
        return semiring_product("_".join(workload.split("_")[1:3]))
    if workload.startswith("G29_spin_glass_"):
        return spin_glass(int(workload.split("_")[-1]))
    if workload.startswith("G29_paths_"):
        return lambda w, weights: {"paths": w.shortest_paths(weights)}
    if workload.startswith("G27_"):
        return vector_work(workload.split("_")[1])
    if workload.startswith(("G11_", "G12_")):
        return product
    if workload.startswith("G23_"):
        return einsum("y", "awb,bsuc,wxts,xyvu,dyc->atvd", "left", "theta", "first", "second", "right")
    if workload.startswith("G25_"):
        c, a, b = workload[len("G25_"):].split("_")
        return einsum("c", "%s,%s->%s" % (a, b, c), "a", "b")
    return GRAPHS[workload]


def peer_inputs(workload, inputs):
    """The inputs as a peer's users hold them: with tables and layouts that they make once and not at every run."""
    if family_graphs.is_matrix_work(workload):
        return {name: family_graphs.as_libraries_have(workload, name, array) for name, array in inputs.items()}
    if workload == "G15":
        x, depth = inputs["x"], 64
        exponent = numpy.arange(depth // 2) * (-math.log(1e4) / (depth // 2))
        angle = numpy.arange(x.shape[0])[:, None, None] * numpy.exp(exponent)
        return dict(inputs, cosine=numpy.cos(angle).astype(x.dtype), sine=numpy.sin(angle).astype(x.dtype))
    if workload == "G16":
        out, channels = inputs["w"].shape[0], inputs["x"].shape[1]
        kernel = inputs["w"].reshape(out, 3, 3, channels).transpose(0, 3, 1, 2)
        return {"x": inputs["x"], "kernel": numpy.ascontiguousarray(kernel)}
    return inputs
