#!/usr/bin/env python3
"""Another library running the graphs of tests/bench/fused, in turns with others: does what the lines of its standard
input say and answers each with one line of JSON, as bench_fused does.

  open NAME FOLDER   reads the inputs that bench_fused wrote; [] where the library cannot run that graph
  run COUNT          milliseconds of each run
"""
import argparse
import json
import os
import sys
import time

import numpy

import fused_graphs


class NumPy:
    def open(self, graph, inputs):
        return lambda: graph(numpy, **inputs)


class Torch:
    def __init__(self, threads):
        import torch
        torch.set_num_threads(threads)
        self.torch = torch

    def prepared(self, graph):
        return lambda **inputs: graph(self.torch, **inputs)

    def open(self, graph, inputs):
        tensors = {name: self.torch.from_numpy(numpy.array(array)) for name, array in inputs.items()}
        function = self.prepared(graph)

        def run():
            with self.torch.no_grad():
                return function(**tensors)

        return run


class TorchCompile(Torch):
    def prepared(self, graph):
        self.torch.compiler.reset()  # or graphs after the eighth run uncompiled
        return self.torch.compile(super().prepared(graph), dynamic=False)


class Jax:
    def __init__(self):
        import jax
        jax.config.update("jax_enable_x64", True)
        self.jax = jax

    def open(self, graph, inputs):
        import jax.numpy
        arrays = {name: jax.device_put(array) for name, array in inputs.items()}
        function = jax.jit(lambda **named: graph(jax.numpy, **named))
        return lambda: jax.block_until_ready(function(**arrays))


def library(name, threads):
    if name == "numpy":
        return NumPy()
    if name == "jax":
        return Jax()
    return TorchCompile(threads) if name == "torch_compile" else Torch(threads)


def read_inputs(folder, tensors):
    inputs = {}
    for tensor in tensors:
        array = numpy.fromfile(os.path.join(folder, tensor["name"] + ".bin"), dtype=tensor["dtype"].replace("f", "float"))
        inputs[tensor["name"]] = array.reshape(tensor["shape"][::-1])
    return inputs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", choices=["numpy", "torch", "torch_compile", "jax"])
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the library prints is no answer
    peer = library(options.library, options.threads)
    print(json.dumps("ready"), file=answers)
    run = None
    for line in sys.stdin:
        words = line.split()
        try:
            if words[0] == "open":
                with open(os.path.join(words[2], "about.json")) as f:
                    inputs = read_inputs(words[2], json.load(f)["inputs"])
                run = peer.open(fused_graphs.graph_of(words[1]), inputs)
                run()
                answer = "ready"
            else:
                answer = []
                for _ in range(int(words[1])):
                    start = time.perf_counter()
                    run()
                    answer.append((time.perf_counter() - start) * 1e3)
        except Exception as error:  # pylint: disable=broad-except
            answer = {"error": "%s: %s" % (type(error).__name__, str(error).splitlines()[0] if str(error) else "")}
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
