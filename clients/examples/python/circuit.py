#!/usr/bin/env python3
"""A quantum circuit whose angles minimize the energy of an Ising chain in a field: gradients through complex numbers."""

import argparse

import checkout  # noqa: F401  (finds the package in this repository; with an installed one it does nothing)
import numpy as np
import tensord as td

QUBITS, LAYERS, FIELD = 4, 3, 0.8
STEPS, RATE = 300, 0.1
SIGNS = np.array([1.0, -1.0])  # of the Pauli matrix Z
SHAPE = (2,) * QUBITS


def z(qubit):
    """The diagonal of Z on a qubit, which broadcasts over a state."""
    return SIGNS.reshape([2 if axis == qubit else 1 for axis in range(QUBITS)])


def rotated_x(state, qubit, angle):
    """exp(-i angle/2 X) of a qubit."""
    return np.cos(angle / 2) * state - 1j * np.sin(angle / 2) * np.flip(state, qubit)


def rotated_zz(state, qubit, angle):
    """exp(-i angle/2 Z Z) of a qubit and the next one."""
    return (np.cos(angle / 2) - 1j * np.sin(angle / 2) * z(qubit) * z(qubit + 1)) * state


def energy(angles):
    """The mean energy of the state that the circuit makes, and its norm. angles: (LAYERS, 2, QUBITS)."""
    state = np.full(SHAPE, 2.0 ** (-QUBITS / 2), complex)
    for layer in range(LAYERS):
        for qubit in range(QUBITS - 1):
            state = rotated_zz(state, qubit, angles[layer, 0, qubit])
        for qubit in range(QUBITS):
            state = rotated_x(state, qubit, angles[layer, 1, qubit])
    return np.real(np.conj(state) * applied_hamiltonian(state)).sum(), (abs(state) ** 2).sum()


def applied_hamiltonian(state):
    """The energy's operator: minus Z Z of neighbours, minus FIELD times X of each."""
    bonds = sum(z(qubit) * z(qubit + 1) for qubit in range(QUBITS - 1))
    return -bonds * state - FIELD * sum(np.flip(state, qubit) for qubit in range(QUBITS))


def ground_energy():
    states = np.eye(2**QUBITS).reshape(-1, *SHAPE)
    return np.linalg.eigvalsh(np.stack([applied_hamiltonian(state).ravel() for state in states])).min()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--target", default=td.default_target(), help="the server, unix:/path or host:port (%(default)s)"
    )
    arguments = parser.parse_args()
    angles = 0.5 * np.random.default_rng(0).standard_normal((LAYERS, 2, QUBITS))
    with td.connect(arguments.target):
        program = td.compile(td.value_and_grad(energy, has_aux=True), angles)
        for number in range(STEPS):
            (value, norm), slopes = program(angles)
            angles = angles - RATE * slopes
            if number % 60 == 0:
                print(f"step {number:3}: energy {float(value):8.5f}, norm {float(norm):.12f}")
    print(f"at the end {float(value):.5f}, the least possible {ground_energy():.5f}")


if __name__ == "__main__":
    main()
