"""The graphs of linear algebra, Fourier transforms and networks in the words of other libraries: as graphs.py, but arrays
have their axes as the graph's are, matrices first where there is no batch, else last as libraries have it."""
import math

import numpy


def g17(w, x, y):
    lengths = w.sum(x * x, 1)
    distances = lengths[:, None] + lengths[None, :] - 2 * w.matmul(x, w.permute(x, (1, 0)))
    covariance = w.exp(distances * -0.5) + 0.1 * w.eye(x)
    lower = w.cholesky(covariance)
    whitened = w.solve_lower(lower, y[:, None])
    volume = w.sum(w.log(w.diagonal(lower)), 0)
    return {"loglikelihood": -(0.5 * w.sum(whitened * whitened, (0, 1)) + volume + 0.5 * len(y) * math.log(2 * math.pi))}


def g18(w, first, second, gate):
    bond, physical = first.shape[0], first.shape[1]
    theta = w.einsum("aib,bjc,ijkl->aklc", first, second, gate)
    u, s, vh = w.svd(w.reshape(theta, (bond * physical, physical * bond)))
    s = s[:bond]
    return {"u": w.reshape(u[:, :bond], (bond, physical, bond)), "s": s / w.sqrt(w.sum(s * s, 0)),
            "vh": w.reshape(vh[:bond], (bond, physical, bond))}


def svd(w, a):
    u, s, vh = w.svd(a)
    return {"u": u, "s": s, "vh": vh}


def qr(w, a):
    q, r = w.qr(a)
    return {"q": q, "r": r}


def eigh(w, a):
    values, vectors = w.eigh(a)
    return {"w": values, "v": vectors}


def g21_convolution(w, x, k):
    n = 2 * x.shape[0]
    return {"y": w.irfft(w.rfft(x, n) * w.rfft(w.flip(k), n), n)}


def g21_poisson_solver(w, x, along, across):
    return {"y": w.ifft2(w.fft2(x) * (1 / (along[:, None] + across[None, :])))}


MATRIX_OPS = {"svd": svd, "qr": qr, "eigh": eigh, "cholesky": lambda w, a: {"l": w.cholesky(a)},
              "solve": lambda w, a, b: {"x": w.solve(a, b)}, "lu": lambda w, a: {"logdet": w.log_determinant(a)}}
VECTORS = {"s", "w"}  # of a batch too
GRAPHS = {"G17": g17, "G18": g18, "G21_convolution": g21_convolution, "G21_poisson_solver": g21_poisson_solver}


def network_graph(network):
    names = ["t%d" % i for i in range(len(network["terms"]))]
    return lambda w, **inputs: {"y": w.network(network["terms"], network["output"], network["path"],
                                              [inputs[name] for name in names])}


def graph_of(workload):
    """None where the workload is none of these."""
    if workload.startswith(("G19_", "G20_")):
        return MATRIX_OPS[workload.split("_")[1]]
    return GRAPHS.get(workload)


def is_matrix_work(workload):
    return graph_of(workload) is not None


def as_libraries_have(workload, name, array):
    """A row-major array with reversed axes, as the axes of a library's users are: batches before matrices."""
    if array.ndim < 2 or name in VECTORS:
        return array
    turned = array.transpose() if workload == "G18" else numpy.swapaxes(array, -1, -2)
    return numpy.ascontiguousarray(turned)


def comparable(workload, results):
    """The part of the results that does not depend on signs, phases and bases of vectors."""
    if {"u", "s", "vh"} <= set(results):
        u, s, vh = results["u"], results["s"], results["vh"]
        if workload == "G18":
            u, vh = u.reshape(-1, u.shape[-1]), vh.reshape(vh.shape[0], -1)
        return {"s": s, "usv": (u * s[..., None, :]) @ vh, "uu": adjoint(u) @ u}
    if {"q", "r"} <= set(results):
        return {"qr": results["q"] @ results["r"], "qq": adjoint(results["q"]) @ results["q"],
                "r": numpy.tril(results["r"], -1)}
    if {"w", "v"} <= set(results):
        v = results["v"]
        return {"w": results["w"], "vwv": (v * results["w"][..., None, :]) @ adjoint(v)}
    return results


def adjoint(x):
    return numpy.conj(numpy.swapaxes(x, -1, -2))
