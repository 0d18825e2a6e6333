#!/usr/bin/env python3
"""Another library running the graphs of tests/bench/suite, in turns with others: does what the lines of its standard
input say and answers each with one line of JSON, as bench_graphs does.

  open NAME FOLDER   reads the inputs that bench_graphs wrote, runs once, writes FOLDER/LIBRARY_result.bin, and says how
                     long that took in milliseconds; refused where the library cannot run that graph
  run COUNT          milliseconds of each run, after one that is not counted
"""
import argparse
import importlib.metadata
import json
import os
import re
import sys
import time

import numpy

import graphs
import losses

# BF16, which NumPy does not have, as the bits.
DTYPES = {"bf16": "uint16", "f16": "float16", "f32": "float32", "f64": "float64", "c64": "complex64", "c128": "complex128", "i32": "int32",
          "i64": "int64", "bool": "bool"}
# The dtypes that libraries write: 16-bit floats widened.
RESULT_DTYPES = dict(DTYPES, bf16="float32", f16="float32")


class NumPy:
    module = "numpy"

    def __init__(self, threads):
        from words import NumPyWords
        self.words = NumPyWords()

    # The array to compute with for 16-bit floats, BF16 as bits. NumPy multiplies them one by one.
    def half(self, array, dtype):
        raise NotImplementedError("no products of " + dtype)

    # Results in order, as whoever is sent them wants them: not as views over what was computed in another.
    def open(self, graph, inputs, state):
        return lambda: {name: numpy.asarray(value, order="C") for name, value in graph(self.words, **inputs).items()}

    # A run of a function's value together with its gradient with respect to inputs.
    def open_gradient(self, loss, inputs, wrt):
        raise NotImplementedError("no derivatives")

    def export(self, results):
        return {name: numpy.asarray(value) for name, value in results.items()}


class SciPy(NumPy):
    module = "scipy"

    def __init__(self, threads):
        from words_scipy import SciPyWords
        self.words = SciPyWords(threads)

    def open(self, graph, inputs, state):
        self.words.has_spoken = False
        graph(self.words, **inputs)
        if not self.words.has_spoken:
            raise NotImplementedError("SciPy has nothing of its own for it")
        return super().open(graph, inputs, state)


class OptEinsum(NumPy):
    """Over NumPy."""
    module = "opt_einsum"

    def __init__(self, threads):
        from words_opt_einsum import OptEinsumWords
        self.words = OptEinsumWords()


class Torch(NumPy):
    module = "torch"

    def __init__(self, threads):
        import torch
        from words_torch import TorchWords
        torch.set_num_threads(threads)
        self.torch, self.words = torch, TorchWords()

    def half(self, array, dtype):
        if dtype == "f16":
            return self.torch.from_numpy(array)
        return self.torch.from_numpy(array.view(numpy.int16)).view(self.torch.bfloat16)

    def prepared(self, graph):
        return lambda inputs: {name: value.contiguous() for name, value in graph(self.words, **inputs).items()}

    def open(self, graph, inputs, state):
        # A position is a number of the program that calls.
        def tensor_of(array):
            if isinstance(array, self.torch.Tensor):
                return array
            return int(array) if array.dtype == numpy.int32 and array.ndim == 0 else self.torch.from_numpy(array)

        tensors = {name: tensor_of(array) for name, array in inputs.items()}
        function = self.prepared(graph)

        def run():
            with self.torch.no_grad():
                return function(tensors)

        return run


    def open_gradient(self, loss, inputs, wrt):
        tensors = {name: self.torch.from_numpy(array).requires_grad_(name in wrt) for name, array in inputs.items()}
        function = self.prepared_loss(loss)
        slopes_of = [tensors[name] for name in wrt]

        def run():
            value = function(tensors)
            slopes = self.torch.autograd.grad(value, slopes_of)
            return {"loss": value.detach(), **dict(zip(wrt, slopes))}

        return run

    def prepared_loss(self, loss):
        return lambda inputs: loss(self.words, **inputs)

    def export(self, results):
        halves = (self.torch.float16, self.torch.bfloat16)
        return super().export({n: value.float() if value.dtype in halves else value for n, value in results.items()})


class TorchCompile(Torch):
    def prepared(self, graph):
        self.torch.compiler.reset()  # or graphs after the eighth run uncompiled
        return self.torch.compile(super().prepared(graph), dynamic=False)

    def prepared_loss(self, loss):
        self.torch.compiler.reset()
        return self.torch.compile(super().prepared_loss(loss), dynamic=False)


class OptEinsumTorch(Torch):
    module = "opt_einsum"

    def __init__(self, threads):
        super().__init__(threads)
        from words_opt_einsum import OptEinsumWords
        self.words = OptEinsumWords()


class Jax(NumPy):
    module = "jax"

    def __init__(self, threads):
        import jax
        jax.config.update("jax_enable_x64", True)
        from words_jax import JaxWords
        self.jax, self.words = jax, JaxWords()

    def half(self, array, dtype):
        return array if dtype == "f16" else self.jax.lax.bitcast_convert_type(array, self.jax.numpy.bfloat16)

    def open(self, graph, inputs, state):
        jax = self.jax
        kept = {name: jax.device_put(array) for name, array in inputs.items() if name not in state}
        changed = {name: jax.device_put(inputs[name]) for name in state}
        function = jax.jit(lambda kept, changed: graph(self.words, **kept, **changed), donate_argnums=1)

        def run():
            nonlocal changed
            results = jax.block_until_ready(function(kept, changed))
            changed = {name: results[name] for name in state}
            return results

        return run

    def open_gradient(self, loss, inputs, wrt):
        jax = self.jax
        kept = {name: jax.device_put(array) for name, array in inputs.items() if name not in wrt}
        varied = {name: jax.device_put(inputs[name]) for name in wrt}
        function = jax.jit(jax.value_and_grad(lambda varied, kept: loss(self.words, **varied, **kept)))

        def run():
            value, slopes = jax.block_until_ready(function(varied, kept))
            return {"loss": value, **slopes}

        return run


class NumExpr(NumPy):
    module = "numexpr"

    def __init__(self, threads):
        import numexpr
        from words_numexpr import NumExprWords
        numexpr.set_num_threads(threads)
        self.numexpr, self.words = numexpr, NumExprWords()

    def open(self, graph, inputs, state):
        from words_numexpr import Constants, Expression
        constants = Constants(next(iter(inputs.values())).dtype)
        texts = graph(self.words, **{name: Expression(name, constants) for name in inputs})
        evaluators = {}
        for name, expression in texts.items():
            arrays = {**inputs, **constants.values}
            # numexpr's name of 32 bits is Python's float.
            used = set(re.findall(r"[A-Za-z_]\w*", expression.text))
            types = [(n, float if a.dtype == numpy.float32 else a.dtype.type) for n, a in arrays.items() if n in used]
            compiled = self.numexpr.NumExpr(expression.text, types)
            evaluators[name] = (compiled, [arrays[n] for n in compiled.input_names])
        return lambda: {name: compiled(*arguments) for name, (compiled, arguments) in evaluators.items()}


class OnnxRuntime(NumPy):
    module = "onnxruntime"

    def __init__(self, threads):
        import onnxruntime
        from words_onnx import OnnxWords
        self.onnxruntime, self.words, self.threads = onnxruntime, OnnxWords(), threads

    def open(self, graph, inputs, state):
        from words_onnx import Recorder, Value
        recorder = Recorder()
        outputs = graph(self.words, **{name: Value(recorder, name, array.shape, array.dtype.name)
                                       for name, array in inputs.items()})
        options = self.onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.log_severity_level = 4
        session = self.onnxruntime.InferenceSession(recorder.model(inputs, outputs).SerializeToString(), options,
                                                    providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        for name in {i.name for i in session.get_inputs()}:
            binding.bind_ortvalue_input(name, self.onnxruntime.OrtValue.ortvalue_from_numpy(inputs[name]))
        for name, value in outputs.items():
            # Results stay where they are from run to run.
            binding.bind_ortvalue_output("out_" + name, self.onnxruntime.OrtValue.ortvalue_from_shape_and_type(
                list(value.shape), numpy.dtype(value.dtype).type))
        names = list(outputs)

        def run():
            session.run_with_iobinding(binding)
            return dict(zip(names, binding.get_outputs()))

        return run

    def export(self, results):
        return {name: value.numpy() for name, value in results.items()}


class OneDnn(NumPy):
    module = "onednn-cpu-gomp"

    def __init__(self, threads):
        from words_onednn import OneDnnWords
        self.words = OneDnnWords()

    def half(self, array, dtype):
        return self.words.half(array, dtype)

    def open(self, graph, inputs, state):
        return lambda: graph(self.words, **inputs)

    def export(self, results):
        return {name: self.words.widened(value) for name, value in results.items()}


class GraphBlas(NumPy):
    """SuiteSparse:GraphBLAS. Matrices are full."""
    module = "python-graphblas"

    def __init__(self, threads):
        from words_graphblas import GraphBlasWords
        self.words = GraphBlasWords(threads)

    def half(self, array, dtype):
        raise NotImplementedError("no elements of " + dtype)

    def open(self, graph, inputs, state):
        matrices = {name: self.words.matrix(array) for name, array in inputs.items()}
        return lambda: graph(self.words, **matrices)

    def export(self, results):
        return {name: self.words.array(value) for name, value in results.items()}


LIBRARIES = {"numpy": NumPy, "numexpr": NumExpr, "torch": Torch, "torch_compile": TorchCompile, "jax": Jax,
             "onnxruntime": OnnxRuntime, "onednn": OneDnn, "scipy": SciPy, "opt_einsum": OptEinsum, "opt_einsum_torch": OptEinsumTorch,
             "graphblas": GraphBlas}


def read_inputs(folder, tensors):
    inputs = {}
    for tensor in tensors:
        array = numpy.fromfile(os.path.join(folder, tensor["name"] + ".bin"), dtype=DTYPES[tensor["dtype"]])
        inputs[tensor["name"]] = array.reshape(tensor["shape"][::-1])
    return inputs


def widened(bits):
    """BF16 by its bits in F32."""
    return (bits.astype(numpy.uint32) << 16).view(numpy.float32)


def halves_of(peer, inputs, tensors):
    dtypes = {tensor["name"]: tensor["dtype"] for tensor in tensors}
    return {name: peer.half(array, dtypes[name]) if dtypes.get(name) in ("f16", "bf16") else array
            for name, array in inputs.items()}


def slopes_in(about):
    """The inputs of which the results have gradients."""
    return [tensor["name"].removesuffix(".cotangent") for tensor in about["outputs"][1:]]


def open_run(peer, workload, inputs, about):
    if not losses.is_loss(workload):
        return peer.open(graphs.graph_of(workload, about.get("network")), graphs.peer_inputs(workload, inputs), about["state"])
    loss, inputs = losses.loss_of(workload), losses.peer_inputs(workload, inputs)
    if losses.is_value(workload):
        return peer.open(lambda w, **inputs: {"loss": loss(w, **inputs)}, inputs, [])
    return peer.open_gradient(loss, inputs, [losses.peer_name(workload, name) for name in slopes_in(about)])


def named_as_ours(workload, results, about):
    slopes = {} if losses.is_value(workload) else {
        name + ".cotangent": losses.as_ours(workload, name, numpy.asarray(results[losses.peer_name(workload, name)]))
        for name in slopes_in(about)}
    return {about["outputs"][0]["name"]: results["loss"], **slopes}


def open_graph(peer, workload, folder, library):
    with open(os.path.join(folder, "about.json")) as f:
        about = json.load(f)
    inputs = halves_of(peer, read_inputs(folder, about["inputs"]), about["inputs"])
    start = time.perf_counter()
    run = open_run(peer, workload, inputs, about)
    results = run()
    took = (time.perf_counter() - start) * 1e3
    results = peer.export(results)
    if losses.is_loss(workload):
        results = named_as_ours(workload, results, about)
    with open(os.path.join(folder, library + "_result.bin"), "wb") as f:
        for tensor in about["outputs"]:
            numpy.ascontiguousarray(results[tensor["name"]], RESULT_DTYPES[tensor["dtype"]]).tofile(f)
    return run, took


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", choices=sorted(LIBRARIES))
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the library prints is no answer
    kind = LIBRARIES[options.library]
    try:
        peer = kind(options.threads)
    except ImportError as error:
        print(json.dumps({"error": str(error).splitlines()[0]}), file=answers)
        return
    print(json.dumps({"version": importlib.metadata.version(kind.module)}), file=answers)
    run = None
    for line in sys.stdin:
        words = line.split()
        try:
            if words[0] == "open":
                run = None
                run, answer = open_graph(peer, words[1], words[2], options.library)
            else:
                run()
                answer = []
                for _ in range(int(words[1])):
                    start = time.perf_counter()
                    run()
                    answer.append((time.perf_counter() - start) * 1e3)
        except Exception as error:  # pylint: disable=broad-except
            text = str(error).strip().splitlines()
            answer = {"error": ("%s: %s" % (type(error).__name__, text[0] if text else ""))[:200]}
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
