#!/usr/bin/env python3
"""Word vectors: rows looked up by number, and trained with updates of just those rows."""

import argparse

import checkout  # noqa: F401  (finds the package in this repository; with an installed one it does nothing)
import numpy as np
import tensord as td

WORDS, WIDTH = 1000, 16


def step(table, words, targets, rate):
    """One step of gradient descent on the distance from each word's vector to its target; a word may come several times."""
    difference = table[words] - targets
    loss = (difference**2).sum(axis=-1).mean()
    gradients = 2.0 * difference / words.shape[0]
    return table.at[words].add(-rate * gradients), loss


def histogram(words):
    return td.zeros(WORDS, np.int64).at[words].add(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--target", default=td.default_target(), help="the server, unix:/path or host:port (%(default)s)"
    )
    arguments = parser.parse_args()
    random = np.random.default_rng(0)
    table = random.standard_normal((WORDS, WIDTH))
    wanted = random.standard_normal((WORDS, WIDTH))

    with td.connect(arguments.target):
        # "n" is any number of words: one program for all batches.
        batch = td.spec("n", "int64"), td.spec(("n", WIDTH))
        train = td.compile(step, td.spec((WORDS, WIDTH)), *batch, td.spec(()))
        for number in range(200):
            words = random.integers(0, WORDS, random.integers(500, 2000))
            table, loss = train(table, words, wanted[words], 100.0)
            if number % 40 == 0:
                print(f"step {number:3}, {len(words):4} words: loss {float(loss):.4f}")
        counts = td.evaluate(histogram, words)
        print("as NumPy counts:", bool((counts == np.bincount(words, minlength=WORDS)).all()))
        print(f"at the end:     loss {float(loss):.1e}")


if __name__ == "__main__":
    main()
