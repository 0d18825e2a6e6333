#!/usr/bin/env python3
"""The Python client in a page: evaluate a function, compile it once for every size, look at what the server did."""

import argparse

import checkout  # noqa: F401  (finds the package in this repository; with an installed one it does nothing)
import numpy as np
import tensord as td


def layer(x, weights, bias):
    """One dense layer. Written for NumPy; the same function is traced for the server."""
    return np.tanh(x @ weights + bias)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--target", default=td.default_target(), help="the server, unix:/path or host:port (%(default)s)"
    )
    arguments = parser.parse_args()
    random = np.random.default_rng(0)
    x = random.standard_normal((1000, 64), dtype=np.float32)
    weights = random.standard_normal((64, 8), dtype=np.float32)
    bias = np.zeros(8, np.float32)

    with td.connect(arguments.target):
        print("one call:       ", td.evaluate(layer, x, weights, bias).shape)

        # "n" is any number of rows: one program for all of them.
        rows = td.spec(("n", 64), "float32")
        program = td.compile(layer, rows, weights, bias)
        print("compiled:       ", program)
        for count in (1, 10, 1000):
            result = program(x[:count], weights, bias)
            error = np.abs(result - layer(x[:count], weights, bias)).max()
            print(f"{count:5} rows:      error {error:.1e}, {program.stats}")

        try:
            program(x.astype(np.float64), weights, bias)
        except TypeError as error:
            print("a wrong type:   ", error)
        try:
            td.compile(layer, rows, weights, bias, device="no-such-device")
        except td.Error as error:
            print("a refusal:      ", error)
        print()
        print(program.explain())


if __name__ == "__main__":
    try:
        main()
    except td.Unavailable as failure:
        raise SystemExit(f"{failure}")
