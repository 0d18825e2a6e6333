#!/usr/bin/env python3
"""The most probable states of a hidden Markov model: steps in (max, +) beside log, and the way back to the states."""

import argparse
import itertools

import checkout  # noqa: F401  (finds the package in this repository; with an installed one it does nothing)
import numpy as np
import tensord as td

STATES, SYMBOLS = 4, 5


def decode(seen, start, step, emission):
    """The most probable states behind what was seen, and the logarithm of their probability (Viterbi, 1967).

    seen: I64 of known length. Probabilities: start[state], step[state, next], emission[state, symbol].
    """
    scores, log_step = td.log(emission)[:, seen], td.log(step)
    best, back = td.log(start) + scores[:, 0], []
    for time in range(1, seen.shape[0]):
        back.append(td.argmax(best[:, None] + log_step, axis=0))
        best = td.einsum("i,ij->j", best, log_step, algebra="max_plus") + scores[:, time]
    states = [td.argmax(best)]
    for choices in reversed(back):
        states.append(choices[states[-1]])
    return td.stack(states[::-1]), td.max(best)


def probability(states, seen, start, step, emission):
    """The logarithm of the probability of these states and of what was seen."""
    total = np.log(start[states[0]]) + np.log(emission[states[0], seen[0]])
    for before, state, symbol in zip(states, states[1:], seen[1:]):
        total += np.log(step[before, state]) + np.log(emission[state, symbol])
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--target", default=td.default_target(), help="the server, unix:/path or host:port (%(default)s)"
    )
    arguments = parser.parse_args()
    random = np.random.default_rng(0)
    model = [random.dirichlet(np.ones(n), shape) for n, shape in ((STATES, ()), (STATES, STATES), (SYMBOLS, STATES))]
    with td.connect(arguments.target):
        seen = random.integers(0, SYMBOLS, 60)
        states, score = td.evaluate(decode, seen, *model)
        print("states:", "".join(map(str, states)))
        print("their probability is the best one:", bool(np.isclose(probability(states, seen, *model), score)))

        seen = random.integers(0, SYMBOLS, 7)
        states, score = td.evaluate(decode, seen, *model)
    every = itertools.product(range(STATES), repeat=len(seen))
    wanted = max(every, key=lambda path: probability(path, seen, *model))
    print("as all paths say:", tuple(map(int, states)) == wanted)


if __name__ == "__main__":
    main()
