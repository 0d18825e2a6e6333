"""JAX's words."""
import jax
import jax.numpy
import jax.scipy.linalg
import jax.scipy.special

from words import Words


class JaxWords(Words):
    def __init__(self):
        super().__init__(jax.numpy)

    def erf(self, x):
        return jax.scipy.special.erf(x)

    def cross_entropy(self, scores, wanted):
        return -jax.numpy.sum(wanted * jax.nn.log_softmax(scores)) / scores.shape[0]

    def recurrence(self, w, u, x, h):
        return jax.lax.scan(lambda h, now: (jax.numpy.tanh(h @ w + now @ u), None), h, x)[0]

    def rsqrt(self, x):
        return jax.lax.rsqrt(x)

    def gelu(self, x):
        return jax.nn.gelu(x, approximate=True)

    def softmax(self, x):
        return jax.nn.softmax(x, -1)

    def take_rows(self, table, indices):
        return jax.numpy.take(table, indices, axis=0, mode="clip")

    def add_rows(self, table, indices, update):
        return table.at[indices].add(update, mode="promise_in_bounds")

    def decode_step(self, q, k, v, K, V, position):
        zero = position * 0
        K = jax.lax.dynamic_update_slice(K, k, (zero, position, zero))
        V = jax.lax.dynamic_update_slice(V, v, (zero, position, zero))
        scores = jax.numpy.einsum("hld,hd->hl", K, q) * (q.shape[1] ** -0.5)
        known = jax.numpy.arange(K.shape[1]) <= position
        weights = jax.nn.softmax(jax.numpy.where(known, scores, -1e9), -1)
        return {"attention": jax.numpy.einsum("hl,hld->hd", weights, V), "K": K, "V": V}

    def semiring_product(self, algebra, a, b):
        if algebra == "or_and":
            return super().semiring_product(algebra, a, b)

        def rows(part):  # some at a time, which stay in the caches
            def step(k, best):
                return jax.numpy.maximum(best, jax.lax.dynamic_slice_in_dim(part, k, 1, 1) + b[k])

            return jax.lax.fori_loop(1, b.shape[0], step, part[:, :1] + b[0])

        return jax.lax.map(rows, a.reshape(-1, 32, a.shape[1])).reshape(a.shape[0], -1)

    def shortest_paths(self, weights):
        paths = jax.numpy.fill_diagonal(weights, 0, inplace=False)

        def step(via, paths):
            return jax.numpy.minimum(paths, paths[:, via, None] + paths[via])

        return jax.lax.fori_loop(0, len(weights), step, paths)

    def conv3x3(self, x, kernel):
        return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME")

    def solve_lower(self, a, b):
        return jax.scipy.linalg.solve_triangular(a, b, lower=True)

    def network(self, terms, output, path, tensors):
        # Lists of labels: letters run out.
        pairs = [part for tensor, term in zip(tensors, terms) for part in (tensor, term)]
        return jax.numpy.einsum(*pairs, output, optimize=[tuple(step) for step in path])
