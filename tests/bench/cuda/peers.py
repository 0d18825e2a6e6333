#!/usr/bin/env python3
"""Runs the graphs that bench_cuda measured in another library, on its GPU, and writes how long they took: peers.py LIBRARY
FIGURES OUTPUT. LIBRARY is torch, torch-compiled, jax or cupy, FIGURES what bench_cuda --json wrote. A graph that the library
cannot run is left out with its reason.

Arrays are row-major here: their shapes are the reverse of bench_cuda's, so that the same elements are neighbours.
"""
import json
import statistics
import sys
import time

SECONDS = 0.5
MOST_ROUNDS = 200
DTYPES = {"f32": "float32", "f64": "float64", "bf16": "bfloat16", "c64": "complex64"}


class Library:
    """A library of arrays with NumPy's names, in the module m."""
    m = name = None

    def compiled(self, function):
        return function

    def events(self):
        """Two events of the device, and the milliseconds between them."""
        begin, end = self.m.cuda.Event(), self.m.cuda.Event()
        return begin, end, lambda: self.m.cuda.get_elapsed_time(begin, end)

    def time(self, function):
        """Milliseconds of the device's work, and of a call with what it waits for."""
        begin, end, elapsed = self.events()
        start = time.perf_counter()
        begin.record()
        function()
        end.record()
        end.synchronize()
        return elapsed(), (time.perf_counter() - start) * 1e3

    def total(self, x, axis):
        return self.m.sum(x, axis)

    def softmax(self, x):
        e = self.m.exp(x - self.m.max(x, -1, keepdims=True))
        return e / self.m.sum(e, -1, keepdims=True)

    def gelu(self, x):
        return 0.5 * x * (1 + self.m.tanh(0.797885 * (x + 0.044715 * x * x * x)))

    def permute(self, x, axes):
        return self.m.ascontiguousarray(self.m.transpose(x, axes))

    def concatenate(self, arrays):
        return self.m.concatenate(arrays, -1)

    def eye(self, n, like):
        return self.m.eye(n, dtype=like.dtype)

    def factors(self, kind, x):
        return getattr(self.m.linalg, kind)(x)

    def fft(self, x):
        return self.m.fft.fft(x)


class Torch(Library):
    def __init__(self):
        import torch
        if not torch.cuda.is_available():
            raise ImportError("it finds no GPU")
        torch.backends.cuda.matmul.allow_tf32 = False
        self.m, self.name = torch, "torch " + torch.__version__

    def array(self, shape, dtype):
        return (self.m.rand(*shape, device="cuda") + 0.25).to(getattr(self.m, dtype))

    def events(self):
        begin, end = (self.m.cuda.Event(enable_timing=True) for _ in range(2))
        return begin, end, lambda: begin.elapsed_time(end)

    def softmax(self, x):
        return self.m.softmax(x, -1)

    def gelu(self, x):
        return self.m.nn.functional.gelu(x, approximate="tanh")

    def permute(self, x, axes):
        return x.permute(axes).contiguous()

    def concatenate(self, arrays):
        return self.m.cat(arrays, -1)

    def eye(self, n, like):
        return self.m.eye(n, dtype=like.dtype, device="cuda")

    def factors(self, kind, x):
        return getattr(self.m.linalg, "lu_factor" if kind == "lu" else kind)(x)


class TorchCompiled(Torch):
    def __init__(self):
        super().__init__()
        self.name += " compiled"

    def compiled(self, function):
        return self.m.compile(function)


class Jax(Library):
    def __init__(self):
        import jax
        if jax.default_backend() != "gpu":
            raise ImportError("it finds no GPU")
        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_default_matmul_precision", "highest")
        import jax.numpy
        self.jax, self.m, self.name = jax, jax.numpy, "jax " + jax.__version__

    def array(self, shape, dtype):
        return (self.jax.random.uniform(self.jax.random.key(0), shape, dtype="float32") + 0.25).astype(dtype)

    def compiled(self, function):
        return self.jax.jit(function)

    def time(self, function):
        # It has no events: of several calls in a row each waits for the device alone.
        start = time.perf_counter()
        self.jax.block_until_ready(function())
        once = time.perf_counter() - start
        start = time.perf_counter()
        self.jax.block_until_ready([function() for _ in range(5)])
        return (time.perf_counter() - start) / 5 * 1e3, once * 1e3

    def softmax(self, x):
        return self.jax.nn.softmax(x, -1)

    def gelu(self, x):
        return self.jax.nn.gelu(x, approximate=True)

    def permute(self, x, axes):
        return self.m.transpose(x, axes)

    def factors(self, kind, x):
        return self.jax.scipy.linalg.lu_factor(x) if kind == "lu" else super().factors(kind, x)


class Cupy(Library):
    def __init__(self):
        import cupy
        cupy.cuda.runtime.getDeviceCount()
        self.m, self.name = cupy, "cupy " + cupy.__version__

    def array(self, shape, dtype):
        if dtype == "bfloat16":
            raise TypeError("there is no bfloat16")
        return (self.m.random.random(shape, dtype="float32") + 0.25).astype(dtype)


LIBRARIES = {"torch": Torch, "torch-compiled": TorchCompiled, "jax": Jax, "cupy": Cupy}


def normalized(x):
    d = x - x.mean(-1)[..., None]
    return d * ((d * d).mean(-1) ** -0.5)[..., None]


def ten_layers(library, x, *weights):
    for w in weights:
        x = library.m.tanh(x @ w) + x
    return x


def graphs(library):
    """Functions of the library by the name of the workload."""
    m = library.m
    return {
        "negate_f32": lambda x: -x,
        "exp_map_f32": lambda x, y: m.exp(x * y) - x,
        "gelu_bf16": library.gelu,
        "softmax_1024_f32": library.softmax,
        "softmax_32768_f32": library.softmax,
        "squares_of_rows_f32": lambda x: library.total(x * x, -1),
        "squares_of_columns_f32": lambda x: library.total(x * x, 0),
        "normalized_rows_f32": normalized,
        "transpose_f32": lambda x: library.permute(x, (1, 0)),
        "permute_f32": lambda x: library.permute(x, (1, 2, 0)),
        "concatenate_f32": lambda x, y: library.concatenate([x, y]),
        "product_f64": lambda x, y: y @ x,
        "product_f32": lambda x, y: y @ x,
        "product_bf16": lambda x, y: y @ x,
        "biased_product_f32": lambda w, x, b: x @ w + b,
        "products_8x8_f32": lambda x, y: y @ x,
        "cholesky_32_f64": lambda x: library.factors("cholesky", x),
        "cholesky_256_f64": lambda x: library.factors("cholesky", x),
        "lu_32_f64": lambda x: library.factors("lu", x),
        "qr_32_f64": lambda x: library.factors("qr", x),
        "eigh_32_f64": lambda x: library.factors("eigh", x),
        "fft_4096_c64": library.fft,
        "ten_layers_64_f32": lambda x, *weights: ten_layers(library, x, *weights),
        "one_small_map_f32": lambda x, y: m.tanh(x * y) + x,
    }


def measure(library, workload, function):
    arguments = [library.array(tuple(reversed(i["shape"])), DTYPES[i["dtype"]]) for i in workload["inputs"]]
    if workload["workload"].startswith(("cholesky", "lu", "qr", "eigh")):
        (x,) = arguments
        arguments = [(x + x.swapaxes(-1, -2)) / 8 + x.shape[-1] * library.eye(x.shape[-1], x)]
    function = library.compiled(function)
    for _ in range(3):
        library.time(lambda: function(*arguments))
    device, whole, start = [], [], time.monotonic()
    while len(device) < 3 or (time.monotonic() - start < SECONDS and len(device) < MOST_ROUNDS):
        times = library.time(lambda: function(*arguments))
        device.append(times[0])
        whole.append(times[1])
    return {"device_ms": statistics.median(device), "run_ms": statistics.median(whole)}


def main():
    name, figures, output = sys.argv[1:]
    try:
        library = LIBRARIES[name]()
    except Exception as error:  # also of a library that is there and does not find its own parts
        sys.exit(f"{name}: {error}")
    with open(figures, encoding="utf-8") as file:
        workloads = json.load(file)["workloads"]
    known, results = graphs(library), {}
    for workload in workloads:
        try:
            results[workload["workload"]] = measure(library, workload, known[workload["workload"]])
        except Exception as error:
            print(f"{library.name}: {workload['workload']}: {type(error).__name__}: {str(error).splitlines()[0][:100]}")
        # What was measured is kept where time runs out.
        with open(output, "w", encoding="utf-8") as file:
            json.dump({"library": library.name, "workloads": results}, file)


if __name__ == "__main__":
    main()
