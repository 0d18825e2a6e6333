#!/usr/bin/env python3
"""A Gaussian process whose length, height and noise are fitted by the gradient of the likelihood."""

import argparse

import checkout  # noqa: F401  (finds the package in this repository; with an installed one it does nothing)
import numpy as np
import tensord as td

POINTS, STEPS, RATE = 80, 60, 0.1
TRUE = {"length": 0.8, "height": 1.5, "noise": 0.2}


def kernel(x, y, length, height):
    return height**2 * np.exp(-0.5 * ((x[:, None] - y) / length) ** 2)


def covariance(logarithms, x):
    length, height, noise = (np.exp(logarithms[name]) for name in TRUE)
    return kernel(x, x, length, height) + noise**2 * np.eye(POINTS)


def cost(logarithms, x, y):
    """The negative logarithm of the likelihood for a point, without its constant."""
    factor = td.linalg.cholesky(covariance(logarithms, x))
    whitened = td.linalg.solve_triangular(factor, y[:, None], lower=True)
    return (0.5 * (whitened**2).sum() + np.log(td.diagonal(factor)).sum()) / POINTS


def fit(logarithms, x, y):
    """Some steps of gradient descent, all in one program."""
    for _ in range(5):
        slopes = td.grad(cost)(logarithms, x, y)
        logarithms = {name: one - RATE * slopes[name] for name, one in logarithms.items()}
    return logarithms, cost(logarithms, x, y)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--target", default=td.default_target(), help="the server, unix:/path or host:port (%(default)s)"
    )
    arguments = parser.parse_args()
    random = np.random.default_rng(1)
    x = np.sort(random.uniform(-5, 5, POINTS))
    exact = kernel(x, x, TRUE["length"], TRUE["height"]) + TRUE["noise"] ** 2 * np.eye(POINTS)
    y = np.linalg.cholesky(exact) @ random.standard_normal(POINTS)

    with td.connect(arguments.target):
        logarithms = {name: 0.0 for name in TRUE}
        program = td.compile(fit, logarithms, x, y)
        for number in range(STEPS):
            logarithms, value = program(logarithms, x, y)
            if number % 15 == 0:
                print(f"after {5 * number + 5:3} steps: cost {float(value):.4f}")
        slopes = td.evaluate(td.grad(cost), logarithms, x, y)
    print(f"at the end:      cost {float(value):.4f}, largest slope {max(abs(float(one)) for one in slopes.values()):.1e}")
    for name, true in TRUE.items():
        print(f"{name:7} {np.exp(float(logarithms[name])):.2f}, the data's {true:.2f}")


if __name__ == "__main__":
    main()
