"""Functions of linear algebra, Fourier transforms and Einstein's notation, with what they mean in NumPy."""

import numpy as np

from function_cases import Case, both, booleans, complexes, integers, reals, same
import tensord as td

S = reals(3, 3) + 4 * np.eye(3)  # far from singular
SPD = S @ S.T
BATCH = reals(2, 4, 4) + 5 * np.eye(4)


def _h(x):
    return x.swapaxes(-1, -2).conj()


def _lstsq(a, b, rcond):
    x, residuals, rank, values = np.linalg.lstsq(a, b, rcond=rcond)
    residuals = residuals[0] if b.ndim == 1 and residuals.size else residuals
    return x, np.reshape(residuals, (1,) if b.ndim == 1 else residuals.shape), np.int64(rank), values


def _lstsq_by_pinv(a, b, rcond):
    x, values = np.linalg.pinv(a, rcond) @ b, np.linalg.svd(a, compute_uv=False)
    return x, (abs(b - a @ x) ** 2).sum(0), np.sum(values > rcond * values[0]), values


_LINALG = [
    same("cholesky", lambda a: np.linalg.cholesky(a), SPD, tolerance=1e-10),
    same("cholesky_batch", lambda a: np.linalg.cholesky(a @ _h(a)), BATCH + 1j * reals(2, 4, 4), tolerance=1e-10),
    same(
        "solve",
        lambda a, b, c: (np.linalg.solve(a, b), np.linalg.solve(a, c)),
        S,
        reals(3),
        reals(3, 2),
        tolerance=1e-10,
    ),
    same("solve_batch", lambda a, b: np.linalg.solve(a, b), BATCH, reals(2, 4, 3), tolerance=1e-10),
    same("inv_det", lambda a: (np.linalg.inv(a), np.linalg.det(a)), BATCH, tolerance=1e-10),
    same("slogdet", lambda a: tuple(np.linalg.slogdet(a)), BATCH, tolerance=1e-10),
    same("pinv", lambda a: np.linalg.pinv(a), reals(2, 5, 3), tolerance=1e-10),
    Case("svdvals", td.linalg.svdvals, lambda a: np.linalg.svd(a, compute_uv=False), reals(2, 3, 5), tolerance=1e-10),
    same("eigvalsh", lambda a: np.linalg.eigvalsh(a), SPD, tolerance=1e-10),
    Case(
        "qr",
        lambda a: (lambda q, r: (q @ r, _h(q) @ q, td.tril(r, -1)))(*td.linalg.qr(a)),
        lambda a: (a, np.broadcast_to(np.eye(3), (2, 3, 3)), np.zeros((2, 3, 3))),
        reals(2, 5, 3),
        tolerance=1e-10,
    ),
    Case(
        "qr_complete",
        lambda a: (lambda q, r: (q @ r, _h(q) @ q))(*td.linalg.qr(a, mode="complete")),
        lambda a: (a, np.eye(5)),
        reals(5, 3),
        tolerance=1e-10,
    ),
    Case(
        "svd",
        lambda a: (lambda u, s, vh: (u * s[..., None, :] @ vh, s))(*td.linalg.svd(a, full_matrices=False)),
        lambda a: (a, np.linalg.svd(a, compute_uv=False)),
        reals(2, 3, 5),
        tolerance=1e-10,
    ),
    Case(
        "svd_full",
        lambda a: (lambda u, s, vh: (_h(u) @ u, vh @ _h(vh)))(*td.linalg.svd(a)),
        lambda a: (np.eye(3), np.eye(5)),
        reals(3, 5),
        tolerance=1e-10,
    ),
    Case(
        "eigh",
        lambda a: (lambda w, v: (a @ v - v * w, w))(*td.linalg.eigh(a)),
        lambda a: (0 * a, np.linalg.eigvalsh(a)),
        SPD,
        tolerance=1e-9,
    ),
    Case(
        "eig",
        lambda a: (lambda w, v: a.astype("complex128") @ v - v * w)(*td.linalg.eig(a)),
        lambda a: 0j * a,
        S,
        tolerance=1e-9,
    ),
    Case("eigvals", lambda a: td.linalg.eigvals(a).sum(), lambda a: np.trace(a) + 0j, S, tolerance=1e-10),
    Case(
        "lu",
        lambda a: (lambda p, l, u: (p @ l @ u, td.triu(l, 1)))(*td.linalg.lu(a)),
        lambda a: (a, np.zeros((2, 4, 3))),
        reals(2, 4, 3),
        tolerance=1e-10,
    ),
    Case(
        "solve_triangular",
        lambda a, b: (
            td.linalg.solve_triangular(a, b),
            td.linalg.solve_triangular(a, b, "T", lower=True),
            td.linalg.solve_triangular(a, b, unit_diagonal=True),
        ),
        lambda a, b: (
            np.linalg.solve(np.triu(a), b),
            np.linalg.solve(np.tril(a).T, b),
            np.linalg.solve(np.triu(a, 1) + np.eye(3), b),
        ),
        S,
        reals(3),
        tolerance=1e-10,
    ),
    Case("cholesky_upper", lambda a: td.linalg.cholesky(td.triu(a), upper=True),
         lambda a: _h(np.linalg.cholesky(a)), SPD * (1 + 0j), tolerance=1e-10),  # fmt: skip
    *(
        same(f"qr_raw_{a.shape}_{a.dtype}", lambda a: tuple(np.linalg.qr(a, mode="raw")), a, tolerance=1e-10)
        for make in (reals, complexes) for a in (make(5, 3), make(3, 5), make(2, 4, 4), make(1, 1), make(2, 0, 3), make(0, 2, 2))
    ),  # fmt: skip
    same("qr_raw_float32", lambda a: tuple(np.linalg.qr(a, mode="raw")), reals(4, 2, dtype=np.float32), tolerance=1e-5),
    same("qr_r", lambda a: abs(np.linalg.qr(a, mode="r")), reals(5, 3), tolerance=1e-10),
    same("svd_hermitian", lambda a: np.linalg.svd(a, compute_uv=False, hermitian=True), SPD, tolerance=1e-10),
    same("eigvalsh_upper", lambda a: np.linalg.eigvalsh(a, UPLO="U"), S + 1j * reals(3, 3), tolerance=1e-10),
    Case(
        "eigh_upper",
        lambda a: (lambda w, v: (v * w[None, :] @ _h(v), w))(*td.linalg.eigh(td.triu(a), UPLO="U")),
        lambda a: (a, np.linalg.eigvalsh(a)),
        SPD,
        tolerance=1e-9,
    ),
    Case(
        "lstsq",
        lambda a, b, c: (*td.linalg.lstsq(a, b), *td.linalg.lstsq(a, c, rcond=-1)),
        lambda a, b, c: (*_lstsq(a, b, None), *_lstsq(a, c, -1)),
        reals(5, 3),
        reals(5, 2),
        reals(5),
        tolerance=1e-10,
    ),
    Case(
        "lstsq_wide",
        lambda a, b: td.linalg.lstsq(a, b, rcond=1e-8),
        lambda a, b: _lstsq(a, b, 1e-8),
        reals(3, 5),
        reals(3, 2),
        tolerance=1e-10,
    ),
    Case(
        "lstsq_of_stacks",
        lambda a, b: td.linalg.lstsq(a, b, rcond=0.3),
        lambda a, b: tuple(np.stack(part) for part in zip(*(_lstsq_by_pinv(*one, 0.3) for one in zip(a, b)))),
        complexes(2, 5, 3),
        reals(2, 5, 2),
        tolerance=1e-10,
    ),
    Case(
        "lstsq_float32",
        lambda a, b: (*td.linalg.lstsq(a, b)[:1], *td.linalg.lstsq(a, b)[2:]),
        lambda a, b: (lambda x, _, rank, values: (x, rank, values))(*_lstsq(a, b, 3 * np.finfo("f4").eps)),
        np.diag([1, 1, 1e-8]).astype("f4"),
        reals(3, 2, dtype="f4"),
    ),
    Case("lstsq_of_no_columns", lambda a, b: td.linalg.lstsq(a, b), lambda a, b: _lstsq(a, b, None),
         np.zeros((3, 0)), reals(3, 2)),  # fmt: skip
    both(
        "norms",
        lambda p, a: tuple(
            p.linalg.norm(a, *arguments, keepdims=keepdims)
            for keepdims in (False, True)
            for arguments in (
                (None,), (None, 0), (2, 1), (1, 0), (np.inf, 0), (-np.inf, 1), (0, 0), (3, 1), (-1.5, 0), (None, (0, 2)),
                ("fro", (0, 1)), (1, (0, 1)), (-1, (1, 2)), (np.inf, (2, 0)), (-np.inf, (0, 1)), (2, (0, 1)),
                (-2, (1, 0)), ("nuc", (0, -1)),
            )
        ),
        reals(3, 4, 2),
        tolerance=1e-10,
    ),  # fmt: skip
    both("norm", lambda p, a: (p.linalg.norm(a), p.linalg.norm(a, "fro"), p.linalg.norm(a[0], 2)), complexes(3, 4)),
    Case(
        "vector_and_matrix_norm",
        lambda a: (
            td.linalg.vector_norm(a), td.linalg.vector_norm(a, axis=(0, 2), ord=1, keepdims=True),
            td.linalg.matrix_norm(a), td.linalg.matrix_norm(a, ord=1, keepdims=True),
        ),
        lambda a: (
            np.sqrt((a * a).sum()), abs(a).sum((0, 2), keepdims=True),
            np.linalg.norm(a, axis=(1, 2)), np.linalg.norm(a, 1, (1, 2), keepdims=True),
        ),
        reals(3, 4, 2),
        tolerance=1e-10,
    ),  # fmt: skip
    both(
        "cond",
        lambda p, a: tuple(p.linalg.cond(a, order) for order in (None, 2, -2, 1, -1, np.inf, "fro", "nuc")),
        BATCH,
        tolerance=1e-9,
    ),
    both(
        "matrix_power",
        lambda p, a: tuple(p.linalg.matrix_power(a, n) for n in (0, 1, 2, 3, 7, -1, -2)),
        BATCH / 4,
        tolerance=1e-9,
    ),
    both(
        "multi_dot",
        lambda p, a, b, c, v, w: (
            p.linalg.multi_dot([a, b]), p.linalg.multi_dot([a, b, c]), p.linalg.multi_dot([v, a, b, c]),
            p.linalg.multi_dot([a, b, c, w]), p.linalg.multi_dot([v, a, b, c, w]), p.linalg.multi_dot([v, v]),
        ),
        reals(3, 4), reals(4, 5), reals(5, 2), reals(3), reals(2), tolerance=1e-10,
    ),  # fmt: skip
    both(
        "tensorsolve_and_inv",
        lambda p, a, b, c: (
            p.linalg.tensorsolve(a, b), p.linalg.tensorsolve(a.transpose(2, 0, 1, 3), b, axes=(0,)),
            p.linalg.tensorinv(a), p.linalg.tensorinv(c, ind=1),
        ),
        reals(3, 4, 2, 6) + 5 * np.eye(12).reshape(3, 4, 2, 6), reals(3, 4), reals(6, 2, 3), tolerance=1e-8,
    ),  # fmt: skip
    both(
        "matrix_rank",
        lambda p, a, b: (
            p.linalg.matrix_rank(a), p.linalg.matrix_rank(a, 1e-6), p.linalg.matrix_rank(a[0, 0]), p.linalg.matrix_rank(b),
        ),
        np.stack([np.outer(reals(4), reals(3)), reals(4, 3)]), np.zeros(3),
    ),  # fmt: skip
    Case("matrix_rank_rtol", lambda a: td.linalg.matrix_rank(a, rtol=0.5), lambda a: np.linalg.matrix_rank(a, 0.5),
         np.diag([1.0, 0.6, 0.4])),  # fmt: skip
    same("pinv_rcond", lambda a: np.linalg.pinv(a, 1e-3), np.diag([1.0, 1e-4, 2.0])),
    both(
        "pinv_rcond_of_each_matrix",
        lambda p, a, b: (
            p.linalg.pinv(a, np.array([0.3, 1e-9])), p.linalg.pinv(a, [0.9]), p.linalg.pinv(b, rcond=np.array([1e-9])),
            p.linalg.pinv(b[:, :0], np.array([0.1])),
        ),
        np.stack([reals(4, 3), reals(4, 3)]), complexes(1, 3, 5), tolerance=1e-10,
    ),  # fmt: skip
    Case("pinv_rcond_of_a_value", lambda a, c: td.linalg.pinv(a, c), lambda a, c: np.linalg.pinv(a, c),
         np.diag([1.0, 1e-4, 2.0]), np.float64(1e-3)),  # fmt: skip
    both(
        "matrix_rank_tol_of_each_matrix",
        lambda p, a: (p.linalg.matrix_rank(A=a, tol=np.array([0.5, 0.1])), p.linalg.matrix_rank(a, [0.5])),
        np.stack([np.diag([1.0, 0.6, 0.4]), np.diag([0.3, 0.2, 0.05])]),
    ),
    Case("matrix_rank_rtol_of_each_matrix", lambda a: td.linalg.matrix_rank(a, rtol=np.array([0.5, 0.1])),
         lambda a: np.array([2, 3]), np.stack([np.diag([2.0, 1.2, 0.8]), np.diag([0.3, 0.2, 0.05])])),  # fmt: skip
    Case(
        "diagonal_trace_cross_of_the_last_axes",
        lambda a, x, y: (
            td.linalg.diagonal(a), td.linalg.diagonal(a, offset=-1), td.linalg.trace(a), td.linalg.trace(a, offset=2),
            td.linalg.trace(a, dtype=np.float32), td.linalg.cross(x, y), td.linalg.cross(x.T, y.T, axis=0),
            td.linalg.cross(x, y[0]),
        ),
        lambda a, x, y: (
            np.diagonal(a, 0, 1, 2), np.diagonal(a, -1, 1, 2), np.trace(a, 0, 1, 2), np.trace(a, 2, 1, 2),
            np.trace(a, 0, 1, 2, np.float32), np.cross(x, y), np.cross(x.T, y.T, axis=0), np.cross(x, y[0]),
        ),
        reals(2, 3, 4), complexes(5, 3), reals(5, 3),
    ),  # fmt: skip
]


def _einsum_cases():
    """(subscripts, operands): the same in NumPy."""
    def of(*shapes, make=reals):
        return [make(*shape) for shape in shapes]

    for subscripts, operands in (
        ("ij,jk->ik", of((3, 4), (4, 2))),
        ("ij,jk", of((3, 4), (4, 2))),
        ("ba", of((3, 4))),
        ("ii", of((4, 4))),
        ("ii->i", of((4, 4))),
        ("iij->j", of((3, 3, 2))),
        ("i,i", of((5,), (5,))),
        ("i,j", of((3,), (4,))),
        (",ij", of((), (2, 3))),
        ("ij->", of((2, 3))),
        ("ij,ij->ij", of((2, 3), (2, 3))),
        ("bij,bjk->bik", of((5, 2, 3), (5, 3, 4))),
        ("...ij,...jk->...ik", of((2, 1, 2, 3), (5, 3, 4))),
        ("...i,i...", of((2, 3), (3, 2))),
        ("i...->...", of((3, 4, 2))),
        ("ij, jk , kl -> il", of((2, 3), (3, 4), (4, 5))),
        ("ab,bc,cd,de", of((2, 3), (3, 4), (4, 5), (5, 2))),
        ("ik,k,kj->ij", of((3, 4), (4,), (4, 2))),
        ("ij,ik,il->jkl", of((6, 2), (6, 3), (6, 4))),
        ("Zb,ab", of((2, 3), (4, 3))),
        ("ij,jk->ik", of((3, 1), (4, 2))),
        ("ij,jk->ik", of((3, 0), (0, 2))),
        ("ij,jk->ik", of((3, 4), (4, 2), make=complexes)),
        ("ij,jk->ik", of((3, 4), (4, 2), make=integers)),
        ("ij,jk->ik", of((3, 4), (4, 2), make=booleans)),
        ("ij,jk,k->i", [integers(3, 4), reals(4, 2), complexes(2)]),
    ):
        number = 1 if operands[0].dtype.kind == "f" else operands[0].dtype.name
        yield both(f"einsum {subscripts} [{number}, {len(operands)}, {operands[0].shape}]",
                   lambda p, *x, s=subscripts: p.einsum(s, *x), *operands, tolerance=1e-11)  # fmt: skip


_CHAIN = (reals(2, 6), reals(6, 3), reals(3, 5), reals(5, 4))
_EINSUM = [
    *_einsum_cases(),
    both(
        "einsum_lists",
        lambda p, x, y: (
            p.einsum(x, [0, 1], y, [1, 2]), p.einsum(x, [0, 1], y, [1, 2], [2, 0]), p.einsum(x, [7, 30]),
            p.einsum(x, [Ellipsis, 1], y, [1, 2], [2, Ellipsis]), p.einsum(x, [0, 1], []),
        ),
        reals(3, 4), reals(4, 2), tolerance=1e-11,
    ),  # fmt: skip
    *(
        both(f"einsum_optimize={optimize}", lambda p, *x, o=optimize: p.einsum("ab,bc,cd,de->ae", *x, optimize=o), *_CHAIN)
        for optimize in (False, True, "greedy", "optimal", ["einsum_path", (0, 1), (0, 1), (0, 1)], ("greedy", 100),
                         ["einsum_path", (1, 2), (0, 1, 2)])
    ),  # fmt: skip
    Case("einsum_path", lambda *x: td.einsum("ab,bc,cd,de->ae", *x, optimize=[(2, 3), (0, 1), (1, 0)]),
         lambda *x: np.linalg.multi_dot(x), *_CHAIN),  # fmt: skip
    Case("einsum_parentheses", lambda *x: td.einsum("(ab,bc),(cd,de)->ae", *x), lambda *x: np.linalg.multi_dot(x), *_CHAIN),
    Case("einsum_output_diagonal", lambda x: (td.einsum("i->ii", x), td.einsum("i,j->iji", x, x)),
         lambda x: (np.diag(x), np.eye(3)[:, None, :] * (x[:, None] * x)[:, :, None]), reals(3)),  # fmt: skip
    Case("einsum_many_labels", lambda x, y: td.einsum(x, [100, 200], y, [200, 300], [300, 100]),
         lambda x, y: (x @ y).T, reals(3, 4), reals(4, 2)),  # fmt: skip
    Case("einsum_60_labels",
         lambda *x: td.einsum(*[part for i, one in enumerate(x) for part in (one, [i, i + 1])], [60, 0]),
         lambda *x: np.linalg.multi_dot(x).T, *[reals(2, 2) for _ in range(60)], tolerance=1e-8),  # fmt: skip
    both("einsum_dtype", lambda p, x: p.einsum("ij->j", x, dtype=np.float64), integers(3, 4, dtype=np.int32)),
    both("einsum_many_trues", lambda p, x, y: (p.einsum("i,j,k->", x, x, x), p.einsum("i,i->", y, y)),
         np.ones(2048, bool), np.ones(1 << 20, bool)),  # fmt: skip
    same("einsum_of_numpy", lambda x: (np.einsum("ij,ij->i", x, np.ones((3, 4))), np.einsum("ij->ji", x)), reals(3, 4)),
]

_FFT = [
    same(
        "fft",
        lambda x: (np.fft.fft(x), np.fft.ifft(x, axis=0), np.fft.fft(x, 4), np.fft.fft(x, 9, norm="ortho")),
        complexes(3, 6),
    ),
    both(
        "fft_names_of_arguments",
        lambda p, x, y: (
            *(getattr(p.fft, name)(a=x, n=5, axis=0, norm="ortho") for name in ("fft", "ifft", "irfft", "hfft")),
            *(getattr(p.fft, name)(a=x, s=(5, 4), axes=(0, 1), norm="ortho")
              for name in ("fft2", "ifft2", "irfft2", "fftn", "ifftn", "irfftn")),
            *(getattr(p.fft, name)(a=y, n=np.int64(5)) for name in ("rfft", "ihfft")),
            *(getattr(p.fft, name)(a=y, s=(5, 4)) for name in ("rfft2", "rfftn")),
        ),
        complexes(3, 6), reals(3, 6),
    ),  # fmt: skip
    same("fft_real", lambda x: (np.fft.fft(x), np.fft.ifft(x, norm="forward")), reals(7)),
    same(
        "rfft",
        lambda x: (
            np.fft.rfft(x),
            np.fft.rfft(x, axis=0),
            np.fft.irfft(np.fft.rfft(x)),
            np.fft.irfft(np.fft.rfft(x), 5),
        ),
        reals(4, 6),
    ),
    same(
        "fftn",
        lambda x: (
            np.fft.fft2(x),
            np.fft.ifftn(x),
            np.fft.rfftn(x),
            np.fft.rfft2(x, s=(3, 8)),
            np.fft.fftn(x, axes=(0, 1)),
        ),
        reals(3, 4, 6),
    ),
    same(
        "fft_axes_named_twice",
        lambda x: (
            np.fft.fftn(x, axes=(0, 1, 0)),
            np.fft.fftn(x, s=(2, 7, 5), axes=(0, 1, 0)),
            np.fft.irfftn(x, s=(4, 6), axes=(1, 1)),
        ),
        complexes(3, 6),
    ),
    same("fft_real_axis_named_twice", lambda x: np.fft.rfftn(x, s=(4, 6), axes=(1, 1)), reals(3, 6)),
    same("fftshift", lambda x: (np.fft.fftshift(x), np.fft.ifftshift(x, axes=1)), reals(3, 5)),
    same(
        "hfft",
        lambda x, y: (
            np.fft.hfft(x), np.fft.hfft(x, 7, norm="ortho"), np.fft.hfft(x, axis=0, norm="forward"),
            np.fft.ihfft(y), np.fft.ihfft(y, 5, norm="forward"),
        ),
        complexes(3, 5),
        reals(8),
    ),  # fmt: skip
    both(
        "fftfreq",
        lambda p, x: tuple(
            getattr(p.fft, name)(n, d) * x for name in ("fftfreq", "rfftfreq") for n in (1, 6, 7) for d in (1, 0.1)
        ),
        np.float64(1),
    ),
    Case("fft_full_length", lambda x: (td.fft.fft2(x, s=(-1, 4)), td.fft.irfftn(x, s=(5, -1))),
         lambda x: (np.fft.fft2(x, s=(3, 4)), np.fft.irfftn(x, s=(5, 10))), complexes(3, 6)),  # fmt: skip
    Case(
        "fft_float32",
        td.fft.fft,
        lambda x: np.fft.fft(x).astype(np.complex64),
        reals(8, dtype=np.float32),
        tolerance=1e-5,
    ),
]

CASES = [*_LINALG, *_FFT, *_EINSUM]
