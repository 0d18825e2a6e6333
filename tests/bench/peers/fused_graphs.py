"""The graphs of tests/bench/fused in the words of other libraries. Arrays are row-major: axes are reversed.

Every function takes the library's namespace `xp` and the inputs by name, and returns the outputs by name.
"""


def g01(xp, x):
    u = x * 1.25 + 0.5
    y = xp.where(x > 0, xp.tanh(u), xp.exp(-(u * u))) * (1 / xp.sqrt(x * x + 1)) + xp.log1p(abs(x))
    return {"y": xp.clip(y, -3, 3)}


def g01_gelu(xp, x):
    inner = x + x * x * x * 0.044715
    return {"y": x * 0.5 * (xp.tanh(inner * 0.7978845608) + 1)}


def g03(xp, p, m, v, g, step):
    new_m = m * 0.9 + g * 0.1
    new_v = v * 0.999 + g * g * 0.001
    ratio = new_m / (1 - 0.9 ** step) / (xp.sqrt(new_v / (1 - 0.999 ** step)) + 1e-8)
    return {"p": p - (ratio + p * 0.01) * 1e-3, "m": new_m, "v": new_v}


def g04(xp, x):
    e = xp.exp(x - xp.amax(x, 1)[:, None])
    return {"y": e / xp.sum(e, 1)[:, None]}


def g05(xp, x, scale, shift):
    centred = x - (xp.sum(x, 1) / x.shape[1])[:, None]
    variance = xp.sum(centred * centred, 1) / x.shape[1]
    return {"y": centred * (1 / xp.sqrt(variance + 1e-5))[:, None] * scale + shift}


def one_op(op):
    def run(xp, x, z=None):
        named = {
            "divide": lambda: x / z,
            "pow": lambda: x ** z,
            "rsqrt": lambda: xp.rsqrt(x) if hasattr(xp, "rsqrt") else 1 / xp.sqrt(x),
        }
        return {"y": named[op]() if op in named else getattr(xp, op)(x)}

    return run


def graph_of(workload):
    if workload.startswith("G01b_"):
        return one_op(workload.split("_")[1])
    return {"G01": g01, "G01_gelu": g01_gelu, "G03": g03, "G04": g04, "G05": g05}[workload]
