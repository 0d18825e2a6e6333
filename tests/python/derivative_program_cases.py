"""Functions of the package that JAX has too: contractions, transforms, linear algebra, and programs made of many."""

import numpy as np

import checkout  # noqa: F401
from derivative_case import any_of, case, positive, within

ALL = "fdcz"
LABELS = np.array([2, 0, 1, 1, 3])


# Constants are in single precision, since others would make all that they meet double.
def constant(values):
    return np.array(values, np.float32)


def eye(rows, columns=None):
    return np.eye(rows, columns, dtype=np.float32)


def shifted(x, shift=0.0):
    """A regular square matrix near x."""
    return x + (x.shape[-1] + shift) * eye(x.shape[-1])


def hermitian(p, x):
    """Hermitian with distinct eigenvalues, whichever triangle is read."""
    h = x + p.conj(p.matrix_transpose(x))
    return h + np.diag(constant(4 * np.arange(x.shape[-1])))


def definite(p, x):
    """Hermitian and positive definite."""
    return x @ p.conj(p.matrix_transpose(x)) + x.shape[-1] * eye(x.shape[-1])


def _contractions():
    shapes = [((3, 4), (4, 5)), ((4,), (4,)), ((4,), (4, 5)), ((3, 4), (4,)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)),
              ((2, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (6, 4, 5)), ((4,), (2, 4, 5)), ((2, 3, 4), (4,))]  # fmt: skip
    for left, right in shapes:
        yield case(f"matmul {left} {right}", lambda p, x, y: p.matmul(x, y), any_of(*left), any_of(*right), kinds=ALL)
    yield case("a matrix with itself", lambda p, x: x @ x.T + x.T @ x, any_of(3, 3), kinds=ALL)
    yield case("dot", lambda p, x, y: (p.dot(x, y), p.dot(x[0, 0], y[0, :, 0])), any_of(2, 3, 4), any_of(5, 4, 2), kinds=ALL)
    yield case("vdot", lambda p, x, y: p.vdot(x, y), any_of(2, 3), any_of(2, 3), kinds=ALL)
    yield case("vecdot", lambda p, x, y: p.vecdot(x, y), any_of(3, 4), any_of(3, 4), kinds=ALL)
    yield case("inner", lambda p, x, y: p.inner(x, y), any_of(2, 4), any_of(3, 4), kinds=ALL)
    yield case("outer", lambda p, x, y: p.outer(x, y), any_of(4), any_of(3), kinds=ALL)
    yield case("tensordot", lambda p, x, y: (p.tensordot(x, y), p.tensordot(x, y, axes=([0, 2], [2, 1]))),
               any_of(2, 3, 4), any_of(3, 4, 2), kinds=ALL)  # fmt: skip
    yield case("tensordot of nothing", lambda p, x, y: p.tensordot(x, y, axes=0), any_of(2), any_of(3), kinds=ALL)


_EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,kj->ik", (2, 3), (4, 3)), ("ij,jk", (2, 3), (3, 4)), ("ii->i", (3, 3)),
    ("ii", (3, 3)), ("iij->j", (2, 2, 3)), ("ij->ji", (2, 3)), ("ij->", (2, 3)), ("i,j->ij", (2,), (3,)),
    ("i,i->i", (3,), (3,)), ("ij,ij->", (2, 3), (2, 3)), ("bij,bjk->bik", (2, 2, 3), (2, 3, 2)), ("...ij,...jk->...ik", (2, 2, 3), (3, 2)),
    ("...i,...i", (2, 3), (3,)), ("...,...->...", (2, 1), (3,)), ("i...->...", (2, 3)), ("abc,cd,db->a", (2, 3, 4), (4, 2), (2, 3)),
    ("ab,bc,cd,de->ae", (2, 3), (3, 2), (2, 4), (4, 2)), ("ai,bi,ci->abc", (2, 3), (2, 3), (2, 3)), ("i,i,i,i->", (3,), (3,), (3,), (3,)),
    ("ij,jk,ki->", (2, 3), (3, 4), (4, 2)), ("aij,bjk,cki->abc", (2, 2, 3), (2, 3, 2), (2, 2, 2)), ("ab,cd->", (2, 2), (2, 2)),
    ("abij,cj->abic", (2, 2, 2, 3), (2, 3)), ("ij,j->i", (3, 3), (3,)), ("bhqd,bhkd->bhqk", (2, 2, 3, 2), (2, 2, 4, 2)),
    ("aab,b->a", (2, 2, 3), (3,)), ("ab,ab,b->b", (2, 3), (2, 3), (3,)), ("a,b,c->cab", (2,), (2,), (3,)), ("abcd,dcba->", (2, 1, 2, 3), (3, 2, 1, 2)),
]  # fmt: skip


def _einsums():
    for equation, *shapes in _EINSUMS:
        yield case(f"einsum {equation}", lambda p, *x, e=equation: p.einsum(e, *x), *[any_of(*s) for s in shapes], kinds=ALL)


def _transforms():
    for name in ("fft", "ifft", "hfft", "ihfft", "rfft", "irfft"):
        of_real = name in ("ihfft", "rfft")
        kinds = "fd" if of_real else "cz" if name in ("hfft", "irfft") else ALL
        for title, options in {"": {}, " cut": {"n": 4}, " padded": {"n": 9}, " ortho": {"norm": "ortho"}, " axis 0": {"axis": 0}}.items():
            yield case(f"{name}{title}", lambda p, x, name=name, options=options: getattr(p.fft, name)(x, **options),
                       any_of(3, 6), kinds=kinds)  # fmt: skip
    for name in ("fft2", "ifft2", "fftn", "ifftn"):
        yield case(name, lambda p, x, name=name: getattr(p.fft, name)(x), any_of(2, 3, 4), kinds=ALL)
    for name in ("rfft2", "rfftn"):
        yield case(name, lambda p, x, name=name: getattr(p.fft, name)(x), any_of(2, 3, 4), kinds="fd")
    for name in ("irfft2", "irfftn"):
        yield case(name, lambda p, x, name=name: getattr(p.fft, name)(x), any_of(2, 3, 4), kinds="cz")
    yield case("fft2 of other sizes", lambda p, x: p.fft.fft2(x, s=(4, 3), norm="forward"), any_of(3, 4), kinds=ALL)
    yield case("fftn along some axes", lambda p, x: p.fft.fftn(x, axes=(0, 2)), any_of(2, 3, 4), kinds=ALL)
    yield case("fftshift", lambda p, x: p.fft.fftshift(x) * p.fft.ifftshift(x, axes=1), any_of(3, 5), kinds=ALL)
    yield case("convolution by transforms", lambda p, x, y: p.fft.irfft(p.fft.rfft(x, 15) * p.fft.rfft(y, 15), 15), any_of(8), any_of(8))
    yield case("power spectrum", lambda p, x: p.abs(p.fft.rfft(x)) ** 2, any_of(9))


_LINALG = [
    case("det", lambda p, x: p.linalg.det(shifted(x)), any_of(2, 3, 3), kinds=ALL),
    case("slogdet", lambda p, x: p.linalg.slogdet(shifted(x))[1], any_of(2, 3, 3), kinds=ALL),
    case("sign of slogdet", lambda p, x: p.linalg.slogdet(shifted(x))[0], any_of(3, 3), kinds="cz", order=1),
    case("inv", lambda p, x: p.linalg.inv(shifted(x)), any_of(2, 3, 3), kinds=ALL),
    case("solve", lambda p, x, y: p.linalg.solve(shifted(x), y), any_of(3, 3), any_of(3, 2), kinds=ALL),
    case("solve a vector", lambda p, x, y: p.linalg.solve(shifted(x), y), any_of(3, 3), any_of(3), kinds=ALL),
    case("solve stacks", lambda p, x, y: p.linalg.solve(shifted(x), y), any_of(2, 3, 3), any_of(2, 3, 2), kinds=ALL),
    case("tensorsolve", lambda p, x, y: p.linalg.tensorsolve(p.reshape(shifted(x), (2, 2, 4)), y), any_of(4, 4), any_of(2, 2)),
    case("tensorinv", lambda p, x: p.linalg.tensorinv(p.reshape(shifted(x), (2, 2, 4))), any_of(4, 4)),
    case("matrix_power", lambda p, x: p.linalg.matrix_power(x, 3), any_of(3, 3), kinds=ALL),
    case("matrix_power -2", lambda p, x: p.linalg.matrix_power(shifted(x), -2), any_of(3, 3), kinds=ALL),
    case("multi_dot", lambda p, x, y, z: p.linalg.multi_dot([x, y, z]), any_of(2, 3), any_of(3, 4), any_of(4, 2), kinds=ALL),
    case("cross", lambda p, x, y: p.linalg.cross(x, y), any_of(4, 3), any_of(4, 3), kinds=ALL),
    case("linalg.outer", lambda p, x, y: p.linalg.outer(x, y), any_of(4), any_of(3), kinds=ALL),
    case("linalg.trace", lambda p, x: p.linalg.trace(x, offset=1) ** 2, any_of(2, 3, 3), kinds=ALL),
    case("linalg.diagonal", lambda p, x: p.linalg.diagonal(x, offset=-1) ** 2, any_of(2, 3, 3), kinds=ALL),
    case("cholesky", lambda p, x: p.linalg.cholesky(definite(p, x)), any_of(2, 3, 3), kinds=ALL),
    case("cholesky upper", lambda p, x: p.linalg.cholesky(definite(p, x), upper=True), any_of(3, 3), kinds=ALL),
    case("log determinant by cholesky", lambda p, x: p.log(p.real(p.diagonal(p.linalg.cholesky(definite(p, x))))).sum(), any_of(4, 4), kinds=ALL),
    case("triangular solve", lambda p, x, y: p.linalg.solve_triangular(shifted(x), y, lower=True), any_of(3, 3), any_of(3, 2), kinds=ALL),
    case("triangular solve, upper, transposed", lambda p, x, y: p.linalg.solve_triangular(shifted(x), y, trans=1),
         any_of(3, 3), any_of(3, 2), kinds=ALL),
    case("triangular solve, adjoint, unit", lambda p, x, y: p.linalg.solve_triangular(x, y, trans=2, unit_diagonal=True),
         any_of(3, 3), any_of(3, 2), kinds=ALL),
    case("qr", lambda p, x: tuple(p.abs(part) ** 2 for part in p.linalg.qr(x)), any_of(4, 3), kinds=ALL, order=1),
    case("qr of a square", lambda p, x: p.linalg.qr(shifted(x))[1] ** 2, any_of(3, 3), kinds="fd"),
    case("r of qr", lambda p, x: p.abs(p.linalg.qr(x, mode="r")) ** 2, any_of(4, 3), kinds=ALL, order=1),
    case("eigvalsh", lambda p, x: p.linalg.eigvalsh(hermitian(p, x)), any_of(3, 3), kinds=ALL),
    case("eigh: a function of a matrix", lambda p, x: _function_of(p, *p.linalg.eigh(hermitian(p, x))), any_of(3, 3), kinds=ALL),
    case("eigh: projectors", lambda p, x: p.abs(p.linalg.eigh(hermitian(p, x))[1]) ** 2, any_of(3, 3), kinds=ALL, order=1),
    case("eigvals", lambda p, x: p.abs(p.linalg.eigvals(x + np.diag(constant([8, 4, 0])))).sum(), any_of(3, 3), kinds=ALL, order=1),
    case("svdvals", lambda p, x: p.linalg.svdvals(x + eye(4, 3) * constant([8, 4, 0])), any_of(4, 3), kinds=ALL),
    case("svd: a low rank", lambda p, x: _low_rank(p, x + eye(4, 3) * constant([9, 6, 0])), any_of(4, 3), kinds="fd", order=1),
    case("svd of a wide matrix", lambda p, x: p.abs(p.linalg.svd(x + eye(3, 4) * constant([0, 7, 14])[:, None], full_matrices=False)[2]),
         within(3, 4), kinds="fd", order=1),
    case("pinv", lambda p, x: p.linalg.pinv(x), positive(4, 3), kinds="fd", order=1),
    case("pinv of a wide matrix", lambda p, x: p.linalg.pinv(x), positive(2, 4), kinds=ALL, order=1),
    case("lstsq", lambda p, x, y: p.linalg.lstsq(x, y)[0], any_of(5, 3), any_of(5, 2), kinds="fd", order=1),
    case("condition number", lambda p, x: p.linalg.cond(shifted(x)), any_of(3, 3), order=1),
]  # fmt: skip


def _function_of(p, values, vectors):
    return (vectors * p.exp(-values / 4)) @ p.conj(p.matrix_transpose(vectors))


def _low_rank(p, x):
    u, s, vh = p.linalg.svd(x, full_matrices=False)
    return (u[:, :2] * p.tanh(s[:2])) @ vh[:2]


def layer_norm(p, x, scale, shift):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * p.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * scale + shift


def attention(p, q, k, v):
    return p.softmax(q @ p.swapaxes(k, -1, -2) / float(np.sqrt(q.shape[-1])), axis=-1) @ v


def recurrence(p, h, w, x):
    for now in range(x.shape[0]):
        h = p.tanh(h @ w + x[now])
    return h


def lstm(p, x, w, u):
    h = c = p.zeros_like(x[0, :2])
    for now in range(x.shape[0]):
        i, f, o, g = p.split(x[now] @ w + h @ u, 4)
        c = p.sigmoid(f) * c + p.sigmoid(i) * p.tanh(g)
        h = p.sigmoid(o) * p.tanh(c)
    return h


def gaussian_process(p, x, y, scale):
    k = p.exp(-(((x[:, None] - x[None]) / scale) ** 2).sum(-1)) + 0.1 * eye(x.shape[0])
    lower = p.linalg.cholesky(k)
    rest = p.linalg.solve_triangular(lower, y, lower=True)
    return 0.5 * rest @ rest + p.log(p.diagonal(lower)).sum()


def kalman_step(p, mean, factor, a, y):
    covariance = a @ definite(p, factor) @ a.T + eye(3)
    gain = p.linalg.solve(covariance + eye(3), covariance).T
    return a @ mean + gain @ (y - a @ mean), covariance - gain @ covariance


def black_scholes(p, spot, strike, volatility, time):
    spread = volatility * p.sqrt(time)
    above = (p.log(spot / strike) + 0.5 * spread**2) / spread

    def normal(z):
        return 0.5 * (1 + p.erf(z / float(np.sqrt(2))))

    return spot * normal(above) - strike * normal(above - spread)


def gram_schmidt(p, x):
    columns = []
    for j in range(x.shape[1]):
        v = x[:, j]
        for q in columns:
            v = v - p.vdot(q, v) * q
        columns.append(v / p.sqrt(p.real(p.vdot(v, v))))
    return p.stack(columns, axis=1)


def circuit(p, angles):
    state = p.zeros((2, 2, 2), np.float32).at[0, 0, 0].set(1.0)
    for layer in range(angles.shape[0]):
        for qubit in range(3):
            c, s = p.cos(angles[layer, qubit]), p.sin(angles[layer, qubit])
            gate = p.stack([p.stack([c, -s]), p.stack([s, c])])
            state = p.moveaxis(p.tensordot(gate, state, axes=(1, qubit)), 0, qubit)
        state = state * constant([1, 1, 1, -1]).reshape(2, 2, 1)
    return (state[0] ** 2).sum() - (state[1] ** 2).sum()


def matrix_product_states(p, a, b):
    left = p.einsum("ia,ib->ab", p.conj(a[0, :, 0]), b[0, :, 0])
    for site in range(1, a.shape[0]):
        left = p.einsum("ab,iac,ibd->cd", left, p.conj(a[site]), b[site])
    return p.real(left.sum())


def sinkhorn(p, cost, steps=4):
    f, g = p.zeros_like(cost[:, 0]), p.zeros_like(cost[0])
    for _ in range(steps):
        f = -p.logsumexp(g[None] - cost, axis=1)
        g = -p.logsumexp(f[:, None] - cost, axis=0)
    return (p.exp(f[:, None] + g[None] - cost) * cost).sum()


def convolution(p, x, kernel):
    windows = p.stack([x[:, i : i + 4] for i in range(3)], axis=-1)
    return p.relu(p.einsum("ctk,ock->ot", windows, kernel))


def runge_kutta(p, y, theta):
    def slope(z):
        return p.stack([theta[0] * z[0] - theta[1] * z[0] * z[1], theta[2] * z[0] * z[1] - theta[3] * z[1]])

    for _ in range(3):
        k1 = slope(y)
        k2 = slope(y + 0.05 * k1)
        k3 = slope(y + 0.05 * k2)
        y = y + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + slope(y + 0.1 * k3))
    return y


_PROGRAMS = [
    case("linear regression", lambda p, w, x, y: ((x @ w - y) ** 2).mean(), any_of(3), any_of(5, 3), any_of(5)),
    case("logistic regression", lambda p, w, x: p.softplus(-(x @ w)).mean() + 0.1 * (w**2).sum(), any_of(3), any_of(5, 3)),
    case("cross-entropy", lambda p, x: -p.take_along_axis(p.log_softmax(x), LABELS[:, None], 1).mean(), any_of(5, 4)),
    case("a perceptron", lambda p, x, w, v: (p.tanh(p.tanh(x @ w) @ w) @ v).sum(), any_of(5, 3), any_of(3, 3), any_of(3)),
    case("a classifier", lambda p, x, w, v: p.logsumexp(p.gelu(x @ w) @ v, axis=1).mean(), any_of(5, 3), any_of(3, 6), any_of(6, 4)),
    case("LayerNorm", lambda p, x, a, b: layer_norm(p, x, a, b), any_of(4, 6), any_of(6), any_of(6)),
    case("RMSNorm", lambda p, x, a: x * p.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * a, any_of(4, 6), any_of(6)),
    case("batch norm", lambda p, x: (x - x.mean(0)) / p.sqrt(x.var(0) + 1e-5), any_of(5, 3)),
    case("attention", lambda p, q, k, v: attention(p, q, k, v), any_of(2, 4, 3), any_of(2, 5, 3), any_of(2, 5, 3)),
    case("causal attention", lambda p, q, k: p.softmax(p.where(np.tri(4, dtype=bool), q @ k.T, -1e9), axis=-1), any_of(4, 3), any_of(4, 3)),
    case("swiglu", lambda p, x, w, v: p.silu(x @ w) * (x @ v), any_of(4, 3), any_of(3, 5), any_of(3, 5)),
    case("an encoder layer", lambda p, x, w, a, b: layer_norm(p, x + attention(p, x, x, x @ w), a, b), any_of(4, 3), any_of(3, 3), any_of(3), any_of(3)),
    case("a recurrence", recurrence, any_of(3), any_of(3, 3), any_of(6, 3)),
    case("an LSTM", lstm, any_of(4, 3), any_of(3, 8), any_of(2, 8)),
    case("a convolution", convolution, any_of(2, 6), any_of(3, 2, 3), order=1),
    case("a Gaussian process", gaussian_process, any_of(5, 2), any_of(5), positive()),
    case("a Kalman filter's step", kalman_step, any_of(3), any_of(3, 3), any_of(3, 3), any_of(3)),
    case("Black–Scholes", black_scholes, positive(6), positive(6), positive(6), positive(6)),
    case("Gram–Schmidt", gram_schmidt, any_of(4, 3), kinds=ALL),
    case("a quantum circuit", circuit, any_of(2, 3)),
    case("a quantum state", lambda p, z: p.abs(p.vdot(z, p.conj(z))) / p.real(p.vdot(z, z)), any_of(4), kinds="cz"),
    case("matrix product states", matrix_product_states, any_of(5, 2, 3, 3), any_of(5, 2, 3, 3), kinds=ALL),
    case("Sinkhorn", sinkhorn, positive(3, 4)),
    case("Runge–Kutta", runge_kutta, positive(2), positive(4)),
    case("power iteration", lambda p, x: _power_iteration(p, definite(p, x)), any_of(3, 3)),
    case("Newton's steps", lambda p, x, a: _newton(p, x, a), positive(4), positive(4)),
    case("pairwise distances", lambda p, x, y: p.sqrt(((x[:, None] - y[None]) ** 2).sum(-1) + 1e-3), any_of(4, 2), any_of(3, 2)),
    case("Huber", lambda p, x: p.where(p.abs(x) < 1, 0.5 * x**2, p.abs(x) - 0.5).sum(), any_of(8)),
    case("cosine similarity", lambda p, x, y: (x * y).sum(-1) / (p.linalg.norm(x, axis=-1) * p.linalg.norm(y, axis=-1)), any_of(4, 3), any_of(4, 3)),
    case("a mixture of Gaussians", lambda p, x, m, s: p.logsumexp(-(((x[:, None] - m) / s) ** 2) / 2 - p.log(s), axis=1).sum(), any_of(5), any_of(3), positive(3)),
    case("Rosenbrock", lambda p, x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum(), any_of(5)),
    case("Ising energy", lambda p, s, j: -p.einsum("i,ij,j->", p.tanh(s), j, p.tanh(s)), any_of(5), any_of(5, 5)),
    case("tucker", lambda p, g, a, b, c: p.einsum("xyz,ix,jy,kz->ijk", g, a, b, c), any_of(2, 2, 2), any_of(3, 2), any_of(3, 2), any_of(2, 2), kinds=ALL),
    case("a rotation", lambda p, z, t: p.fft.ifft(p.fft.fft(z) * p.exp(1j * p.real(t))), any_of(6), any_of(6), kinds="cz"),
    case("a matrix exponential by series", lambda p, x: _exponential(p, x / 4), any_of(3, 3), kinds=ALL),
    case("least squares with a ridge", lambda p, x, y: p.linalg.solve(x.T @ x + eye(3), x.T @ y), any_of(5, 3), any_of(5)),
    case("Mahalanobis", lambda p, x, a: p.sqrt(x @ p.linalg.inv(definite(p, a)) @ x), positive(3), any_of(3, 3)),
    case("polynomial", lambda p, x, c: ((c[3] * x + c[2]) * x + c[1]) * x + c[0], any_of(6), any_of(4), kinds=ALL),
    case("entropy of softmax", lambda p, x: -(p.softmax(x) * p.log_softmax(x)).sum(), any_of(3, 5)),
    case("KL divergence", lambda p, x, y: (p.softmax(x) * (p.log_softmax(x) - p.log_softmax(y))).sum(-1), any_of(3, 5), any_of(3, 5)),
]  # fmt: skip


def _power_iteration(p, a):
    v = constant(np.ones(a.shape[0]))
    for _ in range(4):
        v = a @ v
        v = v / p.linalg.norm(v)
    return v @ a @ v


def _newton(p, x, a):
    for _ in range(3):
        x = x - (x * x - a) / (2 * x)
    return x


def _exponential(p, x):
    total = term = eye(x.shape[0]) + 0 * x
    for n in range(1, 9):
        term = term @ x / n
        total = total + term
    return total


CASES = [*_contractions(), *_einsums(), *_transforms(), *_LINALG, *_PROGRAMS]
