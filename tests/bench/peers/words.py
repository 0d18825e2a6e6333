"""The words of the graphs in graphs.py. Words gives every word in terms of a namespace like NumPy's; a library replaces
words for which its users have a better form."""
import math
import string

import numpy


def one_after_the_other(count):
    """The order of contractions: the first operand with the second, what that gives with the third, and so on."""
    return [(0, 1)] + [(0, left - 1) for left in range(count - 1, 1, -1)]


def equation_of(terms, output):
    """With letters, of which there may be too few."""
    letters = string.ascii_letters
    if max((label for term in terms for label in term), default=0) >= len(letters):
        raise NotImplementedError("more labels than letters")
    return ",".join("".join(letters[label] for label in term) for term in terms) + "->" + "".join(
        letters[label] for label in output)


class Words:
    """The words of a library whose namespace `xp` has NumPy's functions."""

    def __init__(self, xp):
        self.xp = xp

    def __getattr__(self, name):
        # exp, log, sin, cos, tanh, expm1, log1p, sqrt, sign, abs, where, clip, reshape, argmax, floor_divide, remainder
        return getattr(self.xp, name)

    def total(self, x):
        return self.xp.sum(x)

    def erf(self, x):
        return self.xp.vectorize(math.erf, otypes=[float])(x)

    def cross_entropy(self, scores, wanted):
        shifted = scores - self.max(scores, -1, True)
        return -self.total(wanted * (shifted - self.xp.log(self.sum(self.xp.exp(shifted), -1, True)))) / len(scores)

    def recurrence(self, w, u, x, h):
        """h = tanh(h w + x_t u) for all x_t."""
        for now in x:
            h = self.xp.tanh(self.matmul(h, w) + self.matmul(now, u))
        return h

    def pow(self, x, y):
        return x ** y

    def rsqrt(self, x):
        return 1 / self.xp.sqrt(x)

    def relu(self, x):
        return self.xp.maximum(x, 0)

    def gelu(self, x):
        inner = x + x * x * x * 0.044715
        return x * 0.5 * (self.xp.tanh(inner * 0.7978845608) + 1)

    def adamw(self, p, m, v, g, step):
        new_m = m * 0.9 + g * (1 - 0.9)
        new_v = v * 0.999 + g * g * (1 - 0.999)
        ratio = new_m / (1 - 0.9 ** step) / (self.xp.sqrt(new_v / (1 - 0.999 ** step)) + 1e-8)
        return {"p": p - (ratio + p * 0.01) * 1e-3, "m": new_m, "v": new_v}

    def softmax(self, x):
        e = self.xp.exp(x - self.max(x, -1, True))
        return e / self.sum(e, -1, True)

    def layer_norm(self, x, scale, shift):
        centred = x - self.sum(x, -1, True) / x.shape[-1]
        variance = self.sum(centred * centred, -1, True) / x.shape[-1]
        return centred * self.rsqrt(variance + 1e-5) * scale + shift

    def sum(self, x, axes, keep=False):
        return self.xp.sum(x, axes, keepdims=keep)

    def max(self, x, axes, keep=False):
        return self.xp.max(x, axes, keepdims=keep)

    def min(self, x, axes):
        return self.xp.min(x, axes)

    def prod(self, x, axes):
        return self.xp.prod(x, axes)

    def sum_of_squares(self, x):
        return self.xp.vdot(x, x)

    def to_f64(self, x):
        return x.astype("float64")

    def norm(self, x):
        return self.xp.linalg.norm(x)

    def permute(self, x, axes):
        return self.xp.transpose(x, axes)

    def transpose(self, x, axes):
        """In memory, and not a view."""
        return self.permute(x, axes)

    def concat(self, parts, axis):
        return self.xp.concatenate(parts, axis)

    def pad_around(self, x):
        return self.xp.pad(x, 1)

    def pad_end(self, x, count):
        return self.xp.pad(x, (0, count))

    def flip(self, x):
        return self.xp.flip(x, 0)

    def matmul(self, a, b):
        return self.xp.matmul(a, b)

    def linear(self, x, weights, bias):
        return self.xp.matmul(x, weights) + bias

    def attention(self, q, k, v):
        scores = self.matmul(q, self.xp.swapaxes(k, -1, -2)) * (1 / math.sqrt(q.shape[-1]))
        return self.matmul(self.softmax(scores), v)

    def causal_attention(self, q, k, v):
        scores = self.matmul(q, self.xp.swapaxes(k, -1, -2)) * (1 / math.sqrt(q.shape[-1]))
        seen = self.xp.tril(self.xp.ones(scores.shape[-2:], dtype=bool))
        return self.matmul(self.softmax(self.xp.where(seen, scores, -1e9)), v)

    def conv3x3(self, x, kernel):
        side = x.shape[2]
        padded = self.xp.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        shifted = [padded[:, :, i:i + side, j:j + side] for i in range(3) for j in range(3)]
        patches = self.xp.concatenate(shifted, 1).reshape(x.shape[0], -1, side * side)
        weights = kernel.transpose(0, 2, 3, 1).reshape(kernel.shape[0], -1)
        return self.matmul(weights, patches).reshape(x.shape[0], -1, side, side)

    def apply_gate(self, gate, state):
        """Apply a gate [from, to] to a state [above, 4, below]."""
        if state.shape[2] == 1:
            return self.matmul(state[:, :, 0], gate)
        return self.matmul(self.permute(gate, (1, 0)), state)

    def inner_product(self, x):
        return self.xp.vdot(x, x)

    def einsum(self, equation, *operands):
        return self.xp.einsum(equation, *operands, optimize=one_after_the_other(len(operands)))

    def network(self, terms, output, path, tensors):
        return self.xp.einsum(equation_of(terms, output), *tensors, optimize=[tuple(step) for step in path])

    def semiring_product(self, algebra, a, b):
        """c[i, j]: the sum over k of a[i, k] times b[k, j], in another algebra."""
        if algebra == "or_and":
            return self.xp.matmul(a.astype("float32"), b.astype("float32")) > 0
        return self.xp.max(a[:, :, None] + b[None, :, :], 1)

    def shortest_paths(self, weights):
        """Floyd and Warshall's algorithm."""
        raise NotImplementedError("a loop")

    def spin_glass(self, side, *tensors):
        """The greatest energy, a site after the other: the state has an axis for the last spin of each column."""
        sites, bonds = tensors[: side * side], iter(tensors[side * side :])

        def bond(shape):
            return self.reshape(self.permute(next(bonds), (1, 0)), shape)

        state = sites[0]
        for site in range(1, side * side):
            column = site % side
            before, behind = 2**column, 1 if site < side else 2 ** (side - 1 - column)
            left = bond((1, 2, 2, 1)) if column else None
            if site < side:
                state = self.reshape(state, (before, 1, 1))
            else:
                state = self.max(self.reshape(state, (before, 2, 1, behind)) + bond((1, 2, 2, 1)), 1)
            state = state + self.reshape(sites[site], (1, 2, 1))
            if left is not None:
                state = self.reshape(state, (before // 2, 2, 2, behind)) + left
            state = self.reshape(state, (-1,))
        return self.max(state, 0)

    def eye(self, like):
        return self.xp.eye(like.shape[0])

    def diagonal(self, x):
        return self.xp.diagonal(x)

    def svd(self, a):
        return self.xp.linalg.svd(a, full_matrices=False)

    def qr(self, a):
        return self.xp.linalg.qr(a)

    def eigh(self, a):
        return self.xp.linalg.eigh(a)

    def cholesky(self, a):
        return self.xp.linalg.cholesky(a)

    def solve(self, a, b):
        return self.xp.linalg.solve(a, b)

    def solve_lower(self, a, b):
        return self.xp.linalg.solve(a, b)

    def log_determinant(self, a):
        return self.xp.linalg.slogdet(a)[1]

    def rfft(self, x, n):
        return self.xp.fft.rfft(x, n)

    def irfft(self, x, n):
        return self.xp.fft.irfft(x, n)

    def fft2(self, x):
        return self.xp.fft.fft2(x)

    def ifft2(self, x):
        return self.xp.fft.ifft2(x)


class NumPyWords(Words):
    def __init__(self):
        super().__init__(numpy)

    def einsum(self, equation, *operands):
        return numpy.einsum(equation, *operands, optimize=["einsum_path"] + one_after_the_other(len(operands)))

    def network(self, terms, output, path, tensors):
        return numpy.einsum(equation_of(terms, output), *tensors, optimize=["einsum_path"] + [tuple(s) for s in path])

    def semiring_product(self, algebra, a, b):
        if algebra == "or_and":
            return super().semiring_product(algebra, a, b)
        # Some rows at a time, which stay in the caches.
        result = numpy.empty((a.shape[0], b.shape[1]), a.dtype)
        for row in range(0, len(a), 32):
            part = a[row : row + 32]
            best = part[:, :1] + b[0]
            for k in range(1, len(b)):
                numpy.maximum(best, part[:, k : k + 1] + b[k], out=best)
            result[row : row + 32] = best
        return result

    def shortest_paths(self, weights):
        paths = weights.copy()
        numpy.fill_diagonal(paths, 0)
        for via in range(len(paths)):
            numpy.minimum(paths, paths[:, via : via + 1] + paths[via], out=paths)
        return paths

    def transpose(self, x, axes):
        return numpy.ascontiguousarray(x.transpose(axes))

    def take_rows(self, table, indices):
        return numpy.take(table, indices, 0)

    def add_rows(self, table, indices, update):
        result = table.copy()
        numpy.add.at(result, indices, update)
        return result

    def decode_step(self, q, k, v, K, V, position):
        K[:, position] = k[:, 0]
        V[:, position] = v[:, 0]
        known = slice(0, int(position) + 1)
        scores = numpy.matmul(K[:, known], q[:, :, None])[:, :, 0] * (1 / math.sqrt(q.shape[1]))
        attention = numpy.matmul(self.softmax(scores)[:, None, :], V[:, known])[:, 0]
        return {"attention": attention, "K": K, "V": V}
