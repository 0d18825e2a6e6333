#!/usr/bin/env python3
"""A network that is trained where its weights are: each step donates them and keeps the next ones on the server."""

import argparse

import checkout  # noqa: F401  (finds the package in this repository; with an installed one it does nothing)
import numpy as np
import tensord as td

INPUTS, HIDDEN, CLASSES, BATCH = 16, 64, 3, 256
BETA, RATE = 0.9, 0.05


def logits(weights, x):
    return np.tanh(x @ weights["in"] + weights["bias"]) @ weights["out"]


def loss(weights, x, labels):
    """The mean cross-entropy, and how many of the batch are right."""
    scores = logits(weights, x)
    chosen = td.take_along_axis(td.log_softmax(scores, 1), labels[:, None], 1)
    return -chosen.mean(), (scores.argmax(1) == labels).sum()


def step(weights, momentum, x, labels):
    (value, right), slopes = td.value_and_grad(loss, has_aux=True)(weights, x, labels)
    momentum = {name: BETA * one + slopes[name] for name, one in momentum.items()}
    return {name: one - RATE * momentum[name] for name, one in weights.items()}, momentum, value, right


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--target", default=td.default_target(), help="the server, unix:/path or host:port (%(default)s)"
    )
    arguments = parser.parse_args()
    random = np.random.default_rng(0)
    centers = 0.6 * random.standard_normal((CLASSES, INPUTS))

    def batch(count):
        labels = random.integers(0, CLASSES, count)
        return (centers[labels] + random.standard_normal((count, INPUTS))).astype(np.float32), labels

    shapes = {"in": (INPUTS, HIDDEN), "bias": (HIDDEN,), "out": (HIDDEN, CLASSES)}
    start = {name: (0.3 * random.standard_normal(shape)).astype(np.float32) for name, shape in shapes.items()}
    kept = {name: True for name in shapes}
    with td.connect(arguments.target) as client, client.session() as session:
        weights = {name: session.put(one) for name, one in start.items()}
        momentum = {name: session.put(np.zeros_like(one)) for name, one in start.items()}
        train = td.compile(step, weights, momentum, *batch(BATCH))
        for number in range(101):
            donated = [{name: one.donate() for name, one in state.items()} for state in (weights, momentum)]
            weights, momentum, value, right = train(*donated, *batch(BATCH), keep=(kept, kept, False, False))
            if number % 20 == 0:
                print(f"step {number:3}: loss {float(value):.4f}, {int(right) / BATCH:4.0%} of the batch right")
        x, labels = batch(2000)
        final = {name: one.fetch() for name, one in weights.items()}
    right = (logits(final, x).argmax(1) == labels).mean()
    best = (((x[:, None] - centers) ** 2).sum(2).argmin(1) == labels).mean()
    print(f"at the end {right:.1%} of others right, where knowing the centers gives {best:.1%}")


if __name__ == "__main__":
    main()
