"""Checks of values and gradients, the workloads D…: ours against NumPy in 64 bits, peers' against ours."""
import os
import sys

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "peers"))
import losses  # noqa: E402
import peer as peer_program  # noqa: E402
import words  # noqa: E402

# Of the value, and of the slope along a direction, relative to the sum of its terms' sizes; by dtype of the inputs.
VALUE = {"f32": 1e-4, "f64": 1e-9}
SLOPE = {"f32": 1e-3, "f64": 1e-5}
# Of peers' gradients, relative to the largest number.
PEER = {"f32": 5e-3, "f64": 1e-7}


def wide_inputs(folder, about):
    inputs = peer_program.read_inputs(folder, about["inputs"])
    return {name: x.astype(numpy.float64) if x.dtype.kind == "f" else x for name, x in inputs.items()}


def value_at(workload, inputs):
    return float(losses.loss_of(workload)(words.NumPyWords(), **losses.peer_inputs(workload, inputs)))


def dtype_of(about):
    return about["inputs"][0]["dtype"]


def read_ours(folder, about):
    results = {}
    for tensor in about["outputs"]:
        file = os.path.join(folder, "result_%s.bin" % tensor["name"])
        flat = numpy.fromfile(file, peer_program.DTYPES[tensor["dtype"]])
        results[tensor["name"]] = flat.reshape(tensor["shape"][::-1])
    return results


def checked_results(workload, folder, about):
    """Our results, and the name of one that is wrong, or None.

    The gradient is looked at along a random direction, beside a difference of NumPy's values.
    """
    ours, inputs, dtype = read_ours(folder, about), wide_inputs(folder, about), dtype_of(about)
    value = value_at(workload, inputs)
    if not abs(ours[about["outputs"][0]["name"]] - value) <= VALUE[dtype] * max(1, abs(value)):
        return ours, "loss"
    slopes = {name: ours[name + ".cotangent"].astype(numpy.float64) for name in peer_program.slopes_in(about)}
    if not slopes:
        return ours, None
    random, terms, size, step = numpy.random.default_rng(1), 0.0, 0.0, 1e-5
    direction = {}
    for name, slope in slopes.items():
        t = random.normal(size=slope.shape)
        if losses.kind_of(workload) in losses.SYMMETRIC:
            t = t + t.T
        # The slope itself too, so that the sum is not near 0.
        scale = numpy.linalg.norm(slope)
        t = t / numpy.linalg.norm(t) + (losses.comparable(workload, slope) / scale if scale else 0)
        direction[name] = t
        terms, size = terms + float((t * slope).sum()), size + float(abs(t * slope).sum())
    def moved(by):
        return value_at(workload, {n: x + by * direction[n] if n in direction else x for n, x in inputs.items()})

    difference = (moved(step) - moved(-step)) / (2 * step)
    return ours, None if abs(difference - terms) <= SLOPE[dtype] * max(abs(terms), 1e-3 * size) else "gradient"


def wrong_gradient(workload, about, wanted, read):
    """The first of a peer's results that is not ours, or None."""
    tolerance = PEER[dtype_of(about)]
    for tensor in about["outputs"]:
        ours = losses.comparable(workload, wanted[tensor["name"]])
        theirs = losses.comparable(workload, numpy.asarray(read(tensor)).reshape(wanted[tensor["name"]].shape))
        largest = float(abs(ours).max(initial=0))
        if not numpy.allclose(theirs, ours, rtol=tolerance, atol=tolerance * largest):
            return tensor["name"]
    return None
