"""The demo's arrays. `write FOLDER` makes the inputs; `compare FOLDER` holds the server's results against NumPy's."""
import os
import sys

import numpy as np


def write(folder):
    random = np.random.default_rng(2024)
    arrays = {
        "a": np.float32(1.5),
        "x": np.linspace(-3, 3, 1_000_000, dtype=np.float32),
        "b": np.float32(-0.25),
        "features": random.standard_normal((64, 256), dtype=np.float32),
        "weights": random.standard_normal((256, 10), dtype=np.float32) / 16,
        "bias": random.standard_normal(10, dtype=np.float32),
    }
    for name, array in arrays.items():
        np.save(os.path.join(folder, name + ".npy"), array)


def softmax(logits):
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def compare(folder):
    def load(name):
        return np.load(os.path.join(folder, name + ".npy"))

    expected = {
        "y": np.tanh(load("a").astype("f8") * load("x") + load("b")),
        "p": softmax(load("features").astype("f8") @ load("weights") + load("bias")),
    }
    agree = True
    for name, wanted in expected.items():
        got = load(name)
        difference = np.abs(got - wanted).max() if got.shape == wanted.shape else np.inf
        agree = agree and difference < 1e-5
        print(f"  {name}: shape {got.shape}, {got.dtype}, largest difference to NumPy in double precision {difference:.1e}")
        print(f"     first values {np.array2string(got.ravel()[:4], precision=6)}")
    return 0 if agree else 1


if __name__ == "__main__":
    command, folder = sys.argv[1:]
    sys.exit({"write": write, "compare": compare}[command](folder))
