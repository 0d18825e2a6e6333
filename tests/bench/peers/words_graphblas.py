"""The words of SuiteSparse:GraphBLAS: products and paths of full matrices, nothing else."""
import math

import graphblas
import numpy

SEMIRINGS = {"max_plus": "max_plus", "min_plus": "min_plus", "or_and": "lor_land"}


class GraphBlasWords:
    def __init__(self, threads):
        graphblas.init("suitesparse", blocking=True)
        graphblas.ss.config["nthreads"] = threads

    def __getattr__(self, name):
        raise NotImplementedError("GraphBLAS has nothing for " + name)

    def matrix(self, array):
        if array.ndim != 2:
            raise NotImplementedError("no matrix")
        if array.dtype == bool:
            return graphblas.Matrix.from_coo(*numpy.nonzero(array), True, nrows=array.shape[0], ncols=array.shape[1],
                                             dtype=bool)
        return graphblas.Matrix.from_dense(array)

    def array(self, matrix):
        return matrix.to_dense(fill_value=False) if matrix.dtype == bool else matrix.to_dense()

    def semiring_product(self, algebra, a, b):
        return a.mxm(b, getattr(graphblas.semiring, SEMIRINGS[algebra])).new()

    def shortest_paths(self, weights):
        paths = weights.dup()
        for node in range(paths.nrows):
            paths[node, node] = 0
        for _ in range(math.ceil(math.log2(paths.nrows - 1))):
            paths = self.semiring_product("min_plus", paths, paths)
        return paths
