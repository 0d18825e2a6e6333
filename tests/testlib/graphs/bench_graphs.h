#ifndef TENSORD_TESTS_TESTLIB_GRAPHS_BENCH_GRAPHS_H_
#define TENSORD_TESTS_TESTLIB_GRAPHS_BENCH_GRAPHS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/ir/graph.h"
#include "engine/ops/core_ops.h"
#include "engine/tensor/dtype.h"

namespace tensord {

// The graphs that the benchmarks run and whose memory the tests look at. Axis 0 is the fastest in memory, as for a
// row-major client whose axes are reversed: "rows" are axis 0 here.

// 16 elementwise ops on f64[elements], 4 of them transcendental (G01).
Graph ElementwiseChainGraph(int64_t elements);
// One unary or binary op on vectors of that length (G01b).
Graph OneOpGraph(CoreOp op, DType dtype, int64_t elements);
// Tanh GELU of f32[columns, rows].
Graph GeluGraph(int64_t columns, int64_t rows);
// A quotient of two polynomials in salinity, temperature and pressure, as equations of state of sea water are: f64[nx,
// ny, nz] twice and the pressure [1, 1, nz] in, some 360 ops an element (G02). The coefficients are made up.
Graph EquationOfStateGraph(int64_t nx, int64_t ny, int64_t nz);
// One AdamW step on f32[elements]: parameters, moments, gradient and step in; parameters and moments out, in the order
// of the inputs p, m, v (G03).
Graph AdamWGraph(int64_t elements);
// One Lion step on f32[elements]: parameters, momentum and gradient in; parameters and momentum out (G03).
Graph LionGraph(int64_t elements);
// Softmax of f32[columns, rows] along axis 0 (G04).
Graph SoftmaxGraph(int64_t columns, int64_t rows);
// LayerNorm of f32[columns, rows] along axis 0 with scale and shift (G05).
Graph LayerNormGraph(int64_t columns, int64_t rows);
// Five reductions of f64[n, n, n] over different axes (G06).
Graph FiveReductionsGraph(int64_t n);
// Three reductions of f64 numbers made of f32[n, n, n], the product over the first 64 of axis 1 among them (G06b).
Graph ConvertedReductionsGraph(int64_t n);
// One transpose, f64 (G07).
Graph TransposeGraph(const std::vector<int64_t>& shape, const std::vector<int64_t>& permutation);
// Horizontal diffusion with a limiter on f64[levels, columns, rows] (G08).
Graph HorizontalDiffusionGraph(int64_t levels, int64_t columns, int64_t rows);

// Gather of `count` rows and scatter-add of their multiples, f32[columns, rows] (G09).
Graph EmbeddingGraph(int64_t columns, int64_t rows, int64_t count);
// Its halves: `count` rows of a table, and the sum of a table and of rows at indices that may repeat.
Graph GatherRowsGraph(int64_t columns, int64_t rows, int64_t count);
Graph ScatterAddRowsGraph(int64_t columns, int64_t rows, int64_t count);
// One decoding step over caches [depth, length, heads], which are updated: q, k, v, K, V, position in; attention, K,
// V out; the softmax in F32 whatever the dtype (G10).
Graph KvCacheStepGraph(int64_t depth, int64_t length, int64_t heads, DType dtype = DType::kF32);
// 784-512-512-10 with relu and softmax, f32 (G13).
Graph MlpGraph(int64_t batch);
// One layer with a tanh GELU, f32[in, batch] to f32[out, batch] (G13_wide: short sums, a large result).
Graph LayerGraph(int64_t in, int64_t out, int64_t batch);
// Causal attention, f32[depth, sequence, heads] (G14).
Graph AttentionGraph(int64_t depth, int64_t sequence, int64_t heads);
// Pre-norm encoder layer with rotary positions and tanh GELU, f32[width, sequence] (G15).
Graph EncoderLayerGraph(int64_t width, int64_t sequence, int64_t heads, int64_t hidden);
// 3×3 convolution of f32[side, side, in, batch] as one product of nine shifted slices (G16).
Graph ConvolutionGraph(int64_t side, int64_t in, int64_t out, int64_t batch);

// The work beside the transforms of a convolution by Fourier transforms: f64[n] with as many zeros behind it, twice,
// the second reversed; the product of two spectra c128[n]; and c128[n, n] divided by eigenvalues f64[n] of both axes
// (G21).
Graph PaddedOperandsGraph(int64_t n);
Graph SpectrumProductGraph(int64_t n);
Graph PoissonFactorGraph(int64_t n);
// Steps of conjugate gradients on Poisson's equation by the five-point stencil, f64[n, n]: u, residual, direction and
// the residual's square in and out (G26).
Graph ConjugateGradientsGraph(int64_t n, int64_t steps);
// The common questions to a vector: the index of its first maximum, or of its first NaN; whole numbers divided by a
// positive constant and rounded down, and their remainders; its length (G27).
Graph FirstMaximumGraph(DType dtype, int64_t elements);
Graph FloorQuotientGraph(DType dtype, int64_t divisor, int64_t elements);
Graph FloorRemainderGraph(DType dtype, int64_t divisor, int64_t elements);
Graph NormGraph(DType dtype, int64_t elements);
// Two-qubit gates on neighbours one after the other, c128[2^qubits], and the norm of the state (G22).
Graph CircuitGraph(int64_t qubits, int64_t gates);
// The two-site effective Hamiltonian of DMRG applied to a tensor, f64 (G23).
Graph DmrgGraph(int64_t bond, int64_t operator_bond, int64_t physical);
// One product of [size, size], `batch` of them (G11, G12).
Graph MatrixProductGraph(int64_t size, int64_t batch, DType dtype = DType::kF64);
// One contraction as TCCG writes it, "abcde-efbad-cf" for C-A-B, axis 0 first, f64; sizes by label, "a24b16" (G25).
Graph ContractionGraph(absl::string_view labels, absl::string_view sizes);
// One product of [size, size] in another algebra (G28).
Graph AlgebraProductGraph(Algebra algebra, DType dtype, int64_t size);
// Shortest distances between all pairs of nodes, f64[nodes, nodes], by squaring in min_plus until paths may have all
// nodes; the distance of a node to itself is 0 (G29).
Graph ShortestPathsGraph(int64_t nodes);
// The greatest energy of spins on a grid of side × side, as one einsum in max_plus of f32 tensors t0, t1, …: [2] a
// site, then [2, 2] for the bonds of each site to the left and upwards (G29).
Graph SpinGlassGraph(int64_t side);
// The product of `count` matrices f64 with sizes up to `largest`, in the cheapest order (G24a).
Graph MatrixChainGraph(int64_t count, int64_t largest);
// The inner product of two matrix product states, f64 (G24b).
Graph MpsInnerProductGraph(int64_t sites, int64_t bond, int64_t physical);

// Linear algebra and Fourier transforms, f64 or c128. Matrices are [rows, columns, batch].
// The log-likelihood of a Gaussian process with the kernel exp(-|x - x'|²/2) and variance 0.1 of the noise: x
// f64[count, features] and y in (G17).
Graph GaussianProcessGraph(int64_t count, int64_t features);
// A gate applied to two sites of a matrix product state f64[bond, physical, bond], the singular values cut to `bond`
// and made of length one again: left, values, right (G18).
Graph TwoSiteUpdateGraph(int64_t bond, int64_t physical);
// One factorization or solution of `batch` matrices: svd, qr, eigh, cholesky, solve (`right_sides` of them), lu, of
// which the logarithm of the determinant's size is kept (G19, G20).
Graph MatrixOpGraph(absl::string_view op, int64_t size, int64_t batch, int64_t right_sides, DType dtype = DType::kF64);
// The convolution of f64[n] twice, by transforms of twice the length, the second one reversed: a correlation (G21).
Graph TransformedConvolutionGraph(int64_t n);
// A Poisson equation c128[n, n] by transforms of both axes (G21).
Graph PoissonSolverGraph(int64_t n);

// A sum of products of tensors f64 of which the labels of each axis are known.
struct TensorNetwork {
  std::vector<std::vector<int64_t>> operands;  // labels
  std::vector<std::vector<int64_t>> shapes;
  std::vector<int64_t> output;
  std::vector<std::vector<int64_t>> path = {};  // empty: the planner's
};
Graph EinsumGraph(const TensorNetwork& network);  // t0, t1, … in, y out (G24)

// The scratch that the kernel of an op must have besides its operands and results, whoever writes it, and the reason.
struct NeededScratch {
  std::string op;
  int64_t bytes = 0;
  std::string reason;
};

struct BenchGraph {
  std::string name;                       // "G03 AdamW"
  std::function<Graph(double)> build;     // sizes times that; 1: as the benchmark has them
  std::vector<NeededScratch> needs = {};  // at the benchmark's sizes
};
std::vector<BenchGraph> AllBenchGraphs();

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_GRAPHS_BENCH_GRAPHS_H_
