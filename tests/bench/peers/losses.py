"""The functions of the workloads D… in the words of other libraries: real numbers, of which the gradients are measured.

As in graphs.py, arrays are row-major: axes are reversed.
"""
import numpy

import family_graphs
import graphs


def squares(workload):
    graph = graphs.graph_of(workload)

    def loss(w, **inputs):
        return sum(w.total(y * y) for y in graph(w, **inputs).values())

    return loss


def classifier(w, x, t, **weights):
    for layer in ("first", "second"):
        x = w.relu(w.linear(x, weights[layer + "_w"], weights[layer + "_b"]))
    return w.cross_entropy(w.linear(x, weights["last_w"], weights["last_b"]), t)


def picked_rows(w, table, indices, others):
    rows = w.take_rows(table, indices)
    return w.total(rows * rows * others)


def call_prices(w, spot, strike, rate, volatility, time):
    spread = volatility * w.sqrt(time)
    above = (w.log(spot / strike) + (rate + 0.5 * volatility * volatility) * time) / spread

    def normal(x):
        return 0.5 * (w.erf(x * (0.5 ** 0.5)) + 1)

    return w.total(spot * normal(above) - strike * w.exp(-rate * time) * normal(above - spread))


def recurrence(w, x, h, u, weights):
    h = w.recurrence(weights, u, x, h)
    return w.total(h * h)


def gaussian_process(w, x, y):
    return family_graphs.g17(w, x, y)["loglikelihood"]


def mps(w, **tensors):
    """The tensors' axes: right, physical, left."""
    overlap = None
    for site in range(len(tensors) // 2):
        a, b = tensors["a%d" % site], tensors["b%d" % site]
        half = w.einsum("rpl,ls->rps", a, overlap) if overlap is not None else a
        overlap = w.einsum("rps,tps->rt", half, b)
    return w.total(overlap)


def cholesky(w, a, c):
    return w.total(w.cholesky(a) * c)


def qr(w, a, c):
    q, r = w.qr(a)
    return w.total(q * q * c) + w.total(r * r * c)


def eigh(w, a, c):
    values, vectors = w.eigh(a)
    return w.total(w.matmul(vectors * w.log(values), w.permute(vectors, (1, 0))) * c)


def svd(w, a, c):
    u, s, vh = w.svd(a)
    return w.total(w.matmul(u * w.tanh(s), vh) * c)


LOSSES = {"D05": squares("G05"), "D09": picked_rows, "D13": classifier, "D14": squares("G14"), "D15": squares("G15"),
          "D16": squares("G16"), "D17": gaussian_process, "D20_cholesky": cholesky, "D20_qr": qr, "D20_eigh": eigh,
          "D20_svd": svd, "D24_mps": mps, "D_black_scholes": call_prices, "D_recurrence": recurrence}
# Read as symmetric: libraries share the gradient between both triangles in different ways.
SYMMETRIC = ("D20_cholesky", "D20_eigh")


def is_loss(workload):
    return workload.startswith("D")


def is_value(workload):
    return workload.endswith("_value")


def kind_of(workload):
    name = workload.removesuffix("_value")
    return name.rsplit("_", 1)[0] if name.startswith("D20_") else name


def loss_of(workload):
    return LOSSES[kind_of(workload)]


def has_matrices(workload):
    return kind_of(workload).startswith(("D17", "D20"))


def peer_inputs(workload, inputs):
    if has_matrices(workload):
        return {name: graphs_matrix(array) for name, array in inputs.items()}
    return graphs.peer_inputs("G" + kind_of(workload)[1:], inputs)


def graphs_matrix(array):
    return family_graphs.as_libraries_have("", "", array)


def peer_name(workload, name):
    """The name that an input has among a peer's."""
    return "kernel" if kind_of(workload) == "D16" and name == "w" else name


def as_ours(workload, name, gradient):
    """A peer's gradient with the axes that the graph's input has, reversed."""
    if has_matrices(workload) and gradient.ndim == 2:
        return numpy.ascontiguousarray(gradient.T)
    if kind_of(workload) == "D16" and name == "w":
        return numpy.ascontiguousarray(gradient.transpose(0, 2, 3, 1)).reshape(gradient.shape[0], -1)
    return gradient


def comparable(workload, gradient):
    return gradient + gradient.T if kind_of(workload) in SYMMETRIC and gradient.ndim == 2 else gradient
