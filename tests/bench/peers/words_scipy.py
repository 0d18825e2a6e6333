"""SciPy's words: linear algebra and Fourier transforms, the rest is NumPy's. A graph without any of them is not SciPy's."""
import numpy
import scipy.fft
import scipy.linalg
import scipy.sparse.csgraph

from words import NumPyWords


class SciPyWords(NumPyWords):
    def __init__(self, threads):
        super().__init__()
        self.threads = threads
        self.has_spoken = False

    def spoken(self, result):
        self.has_spoken = True
        return result

    def cholesky(self, a):
        return self.spoken(scipy.linalg.cholesky(a, lower=True))

    def solve_lower(self, a, b):
        return self.spoken(scipy.linalg.solve_triangular(a, b, lower=True))

    def solve(self, a, b):
        return self.spoken(scipy.linalg.solve(a, b))

    def svd(self, a):
        return self.spoken(scipy.linalg.svd(a, full_matrices=False))

    def qr(self, a):
        return self.spoken(scipy.linalg.qr(a, mode="economic"))

    def eigh(self, a):
        return self.spoken(scipy.linalg.eigh(a))

    def log_determinant(self, a):
        factors, _ = scipy.linalg.lu_factor(a)
        return self.spoken(numpy.sum(numpy.log(numpy.abs(numpy.diagonal(factors, 0, -2, -1))), -1))

    def shortest_paths(self, weights):
        return self.spoken(scipy.sparse.csgraph.floyd_warshall(weights))

    def rfft(self, x, n):
        return self.spoken(scipy.fft.rfft(x, n, workers=self.threads))

    def irfft(self, x, n):
        return self.spoken(scipy.fft.irfft(x, n, workers=self.threads))

    def fft2(self, x):
        return self.spoken(scipy.fft.fft2(x, workers=self.threads))

    def ifft2(self, x):
        return self.spoken(scipy.fft.ifft2(x, workers=self.threads))
