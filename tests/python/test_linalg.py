"""The refusals of td.linalg and td.fft before anything is sent; their results are among the function cases."""

import pickle
import unittest

import checkout  # noqa: F401
import numpy as np
import tensord as td
from tensord import contract, errors

SQUARE, TALL = td.spec((3, 3)), td.spec((4, 3))


class Mistakes(unittest.TestCase):
    def test_linalg(self):
        linalg = td.linalg
        for error, call in (
            (ValueError, lambda a, b: linalg.cholesky(b)),
            (ValueError, lambda a, b: linalg.qr(a, mode="full")),
            (ValueError, lambda a, b: linalg.eigh(a, UPLO="X")),
            (ValueError, lambda a, b: linalg.eigvalsh(b, "U")),
            (ValueError, lambda a, b: linalg.svd(a[0])),
            (ValueError, lambda a, b: linalg.solve(a, b)),
            (ValueError, lambda a, b: linalg.lstsq(b, a)),
            (TypeError, lambda a, b: linalg.lstsq(a, a, rcond=a[0, 0])),
            (ValueError, lambda a, b: linalg.pinv(a, np.ones(2), rtol=1e-3)),
            (ValueError, lambda a, b: linalg.pinv(a, 1e-3, rtol=1e-3)),
            (ValueError, lambda a, b: linalg.matrix_rank(a, 1e-3, rtol=1e-3)),
            (TypeError, lambda a, b: linalg.matrix_power(a, 2.0)),
            (TypeError, lambda a, b: linalg.matrix_power(a, True)),
            (ValueError, lambda a, b: linalg.matrix_power(b, 2)),
            (ValueError, lambda a, b: linalg.multi_dot([a])),
            (ValueError, lambda a, b: linalg.multi_dot([a, a[0], a])),
            (ValueError, lambda a, b: linalg.multi_dot([a, b])),
            (ValueError, lambda a, b: linalg.tensorsolve(b, a)),
            (ValueError, lambda a, b: linalg.tensorinv(b, ind=1)),
            (ValueError, lambda a, b: linalg.tensorinv(b, ind=0)),
            (ValueError, lambda a, b: linalg.norm(a, ord=3)),
            (ValueError, lambda a, b: linalg.norm(a[0], ord="fro")),
            (ValueError, lambda a, b: linalg.norm(a[None], axis=(0, 1, 2))),
            (ValueError, lambda a, b: linalg.matrix_norm(a[0])),
            (ValueError, lambda a, b: linalg.cond(a, "max")),
            (ValueError, lambda a, b: linalg.trace(a[0])),
            (ValueError, lambda a, b: linalg.diagonal(a[0])),
            (ValueError, lambda a, b: linalg.cross(a, b[:, :2])),
            (TypeError, lambda a, b: linalg.cross(x1=a, x2=a)),
        ):  # fmt: skip
            with self.subTest(call.__code__.co_firstlineno), self.assertRaises(error) as context:
                td.make_graph(call, SQUARE, TALL)
            self.assertTrue(str(context.exception))

    def test_fft(self):
        for error, call in (
            (ValueError, lambda x: td.fft.fft(x, 0)),
            (ValueError, lambda x: td.fft.fft(x, -1)),
            (ValueError, lambda x: td.fft.irfft(x, -1)),
            (ValueError, lambda x: td.fft.ihfft(x, -1)),
            (ValueError, lambda x: td.fft.hfft(x, -1)),
            (TypeError, lambda x: td.fft.fft(x, 5.0)),
            (TypeError, lambda x: td.fft.fft(x, x[0, 0])),
            (TypeError, lambda x: td.fft.fftn(x, (5.0, 4))),
            (IndexError, lambda x: td.fft.rfftn(x, axes=())),
            (IndexError, lambda x: td.fft.irfftn(x, axes=())),
            (IndexError, lambda x: td.fft.irfft2(x, axes=())),
            (IndexError, lambda x: td.fft.rfftn(x[0, 0])),
            (IndexError, lambda x: td.fft.irfftn(x[0, 0])),
            (ValueError, lambda x: td.fft.fft2(x, s=(3,))),
            (ValueError, lambda x: td.fft.fft(x, norm="both")),
            (ValueError, lambda x: td.fft.fft(x, axis=2)),
            (TypeError, lambda x: td.fft.rfft(x * 1j)),
            (TypeError, lambda x: td.fft.ihfft(x * 1j)),
            (ValueError, lambda x: td.fft.hfft(x, norm="both")),
        ):
            with self.subTest(call.__code__.co_firstlineno), self.assertRaises(error):
                td.make_graph(call, TALL)
        with self.assertRaises(ValueError):
            td.make_graph(lambda x: td.fft.fft(x, -1), td.spec("n"))

    def test_results_have_numpys_names(self):
        names = []

        def function(a):
            for result in (td.linalg.svd(a), td.linalg.qr(a), td.linalg.eigh(a), td.linalg.eig(a), td.linalg.slogdet(a)):
                names.append(type(result).__name__ + str(result._fields))
            return a

        td.make_graph(function, SQUARE)
        self.assertEqual(
            names,
            ["SVDResult('U', 'S', 'Vh')", "QRResult('Q', 'R')", "EighResult('eigenvalues', 'eigenvectors')",
             "EigResult('eigenvalues', 'eigenvectors')", "SlogdetResult('sign', 'logabsdet')"],
        )  # fmt: skip

    def test_results_can_be_pickled(self):
        for name in ("EighResult", "EigResult", "LUResult", "QRResult", "SVDResult", "SlogdetResult"):
            kind = getattr(td.linalg, name)
            self.assertEqual(kind.__module__, "tensord.linalg", name)
            result = kind(*range(len(kind._fields)))
            self.assertEqual(pickle.loads(pickle.dumps(result)), result, name)

    def test_what_matrices_refuse_is_one_class(self):
        for reason in ("MATRIX_SINGULAR", "MATRIX_NOT_POSITIVE_DEFINITE", "NO_CONVERGENCE"):
            error = errors.make_error("FAILED_PRECONDITION", "why", contract.ErrorDetail(reason=reason))
            self.assertIsInstance(error, td.linalg.LinAlgError)
            self.assertEqual((error.code, error.reason), ("FAILED_PRECONDITION", reason))
        other = errors.make_error("FAILED_PRECONDITION", "why", contract.ErrorDetail(reason="UNKNOWN_PROGRAM"))
        self.assertIs(type(other), td.FailedPrecondition)

    def test_lstsq_decomposes_once(self):
        graph = td.make_graph(td.linalg.lstsq, TALL, td.spec(4)).graph
        operations = [node.extension.op.type_url.rpartition(".")[2] for node in graph.nodes if node.HasField("extension")]
        self.assertEqual(operations, ["Svd"])

    def test_frequencies_of_a_symbolic_size(self):
        traced = td.make_graph(lambda x: (td.fft.fftfreq(x.shape[0]), td.fft.rfftfreq(x.shape[0], 0.5)), td.spec("n"))
        self.assertEqual(len(traced.output_specs[0].shape), 1)
        self.assertEqual(str(traced.output_specs[1].shape[0]), "(n)//(2) + 1")
        self.assertEqual(np.dtype(traced.output_specs[0].dtype.numpy), np.float64)


if __name__ == "__main__":
    unittest.main()
