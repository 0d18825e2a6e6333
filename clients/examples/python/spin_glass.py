#!/usr/bin/env python3
"""The ground state of a spin glass on a grid: one tensor network in (max, +), which the server plans (Liu, Wang, Zhang, 2021).

Spins are +1 or -1; the energy to make greatest is the sum of J s t over neighbours s, t, and of h s over all spins. In
(max, +) the network's sum of products is the maximum of sums.
"""

import argparse
import itertools

import checkout  # noqa: F401  (finds the package in this repository; with an installed one it does nothing)
import numpy as np
import tensord as td

SPINS = np.array([1.0, -1.0])


def random_glass(random, side):
    """Fields by site, and couplings by pair of neighbours."""
    sites = list(itertools.product(range(side), repeat=2))
    pairs = [((r, c), other) for r, c in sites for other in ((r, c + 1), (r + 1, c)) if max(other) < side]
    return {site: random.normal() for site in sites}, {pair: random.choice([-1.0, 1.0]) for pair in pairs}


def network(fields, couplings):
    """Tensors and their labels, as td.einsum takes them."""
    number = {site: i for i, site in enumerate(fields)}
    operands = [(h * SPINS, [number[site]]) for site, h in fields.items()]
    operands += [(j * np.outer(SPINS, SPINS), [number[s], number[t]]) for (s, t), j in couplings.items()]
    return [part for operand in operands for part in operand]


def greatest_energy(fields, couplings):
    operands = network(fields, couplings)

    def contract(*tensors):
        return td.einsum(*(part for pair in zip(tensors, operands[1::2]) for part in pair), [], algebra="max_plus")

    return float(td.evaluate(contract, *operands[::2]))


def by_enumeration(fields, couplings):
    """The greatest energy of all states."""
    states = SPINS[np.array(list(itertools.product((0, 1), repeat=len(fields))))]
    number = {site: i for i, site in enumerate(fields)}
    energies = states @ np.array(list(fields.values()))
    for (s, t), j in couplings.items():
        energies = energies + j * states[:, number[s]] * states[:, number[t]]
    return energies.max()


def site_by_site(fields, couplings, side):
    """The greatest energy by dynamic programming: the best one for all spins of the last row that is known."""
    best = np.zeros((2,) * side)
    for (row, column), h in fields.items():
        axes = [1] * side
        axes[column] = 2
        if row:
            bond = couplings[(row - 1, column), (row, column)] * np.outer(SPINS, SPINS)
            above = np.moveaxis(best, column, 0)
            best = np.moveaxis(np.stack([(above.T + bond[:, new]).T.max(0) for new in (0, 1)]), 0, column)
        best = best + h * SPINS.reshape(axes)
        if column:
            axes[column - 1] = 2
            best = best + couplings[(row, column - 1), (row, column)] * np.outer(SPINS, SPINS).reshape(axes)
    return best.max()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--target", default=td.default_target(), help="the server, unix:/path or host:port (%(default)s)"
    )
    arguments = parser.parse_args()
    random = np.random.default_rng(0)
    with td.connect(arguments.target):
        small = random_glass(random, 4)
        print("as all states say:", bool(np.isclose(greatest_energy(*small), by_enumeration(*small))))
        glass = random_glass(random, 12)
        energy = greatest_energy(*glass)
    print(f"energy of 12 x 12 spins: {-energy:.4f}")
    print("as site by site:", bool(np.isclose(energy, site_by_site(*glass, 12))))


if __name__ == "__main__":
    main()
