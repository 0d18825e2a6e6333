"""Three jobs, written in plain NumPy: the same functions run in NumPy and are traced for tensord, as they stand."""

import math

import numpy as np
import tensord as td

# ---- An attention block of a transformer, F32 ----


def attention_block(x, scale, shift, w_query, w_key, w_value, w_output, heads=4):
    """x[batch, length, width] normalized, attended to over `heads` heads, projected, and added to x."""
    batch, length, width = x.shape
    centered = x - np.mean(x, axis=-1, keepdims=True)
    variance = np.mean(centered * centered, axis=-1, keepdims=True)
    normalized = centered / np.sqrt(variance + 1e-5) * scale + shift

    def split_into_heads(values):
        return values.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)

    query, key, value = (split_into_heads(normalized @ weights) for weights in (w_query, w_key, w_value))
    scores = query @ key.transpose(0, 1, 3, 2) * (1.0 / math.sqrt(width // heads))
    grown = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    attended = (grown / np.sum(grown, axis=-1, keepdims=True)) @ value
    return x + attended.transpose(0, 2, 1, 3).reshape(batch, length, width) @ w_output


def attention_arguments(random, batch, length, width):
    weights = [(random.standard_normal((width, width)) / math.sqrt(width)).astype(np.float32) for _ in range(4)]
    x = random.standard_normal((batch, length, width), dtype=np.float32)
    return x, np.ones(width, np.float32), np.zeros(width, np.float32), *weights


# ---- Black–Scholes prices of European options, F64 ----


def erf_of_numpy():
    """(erf for NumPy arrays, where it is from): NumPy has none of its own."""
    try:
        from scipy.special import erf
    except ImportError:
        return np.vectorize(math.erf, otypes=[np.float64]), "math.erf, element by element"
    return erf, "scipy.special.erf"


def black_scholes(spot, strike, years, volatility, rate=0.03, erf=td.erf):
    """Prices of calls and puts."""
    spread = volatility * np.sqrt(years)
    upper = (np.log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / spread
    lower = upper - spread
    discounted = strike * np.exp(-rate * years)

    def normal(z):
        return 0.5 + 0.5 * erf(z * math.sqrt(0.5))

    call = spot * normal(upper) - discounted * normal(lower)
    return {"call": call, "put": call - spot + discounted}


def option_arguments(random, count):
    return (random.uniform(50, 150, count), random.uniform(50, 150, count), random.uniform(0.1, 3, count),
            random.uniform(0.05, 0.6, count))  # fmt: skip


# ---- Poisson's equation on a square grid by conjugate gradients, F64 ----


def minus_laplacian(u):
    """The five-point stencil, zero outside of the grid."""
    wide = np.pad(u, 1)
    return 4.0 * u - wide[:-2, 1:-1] - wide[2:, 1:-1] - wide[1:-1, :-2] - wide[1:-1, 2:]


def gradient_steps(u, residual, direction, squared, steps=10):
    """Some steps of conjugate gradients on minus_laplacian(u) = f. squared is the residual's square."""
    for _ in range(steps):
        image = minus_laplacian(direction)
        length = squared / np.sum(direction * image)
        u = u + length * direction
        residual = residual - length * image
        squared_before, squared = squared, np.sum(residual * residual)
        direction = residual + (squared / squared_before) * direction
    return u, residual, direction, squared


def charges(size):
    """The right-hand side f: two smooth charges of opposite sign, neither on an axis of symmetry."""
    y, x = np.mgrid[0:size, 0:size] / (size - 1.0)
    return np.exp(-200 * ((x - 0.3) ** 2 + (y - 0.4) ** 2)) - 0.7 * np.exp(-300 * ((x - 0.75) ** 2 + (y - 0.6) ** 2))


def solve_poisson(advance, f, tolerance, most_calls):
    """u and the number of calls of advance(u, residual, direction, squared), which makes gradient_steps, until
    |residual| <= tolerance * |f|."""
    u, residual, direction, squared = np.zeros_like(f), f, f, np.sum(f * f)
    target = tolerance * tolerance * squared
    calls = 0
    while squared > target and calls < most_calls:
        u, residual, direction, squared = advance(u, residual, direction, squared)
        calls += 1
    return u, calls
