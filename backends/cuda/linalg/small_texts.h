#ifndef TENSORD_BACKENDS_CUDA_LINALG_SMALL_TEXTS_H_
#define TENSORD_BACKENDS_CUDA_LINALG_SMALL_TEXTS_H_

#include <algorithm>
#include <bit>
#include <cstdint>

#include "backends/cuda/codegen/kernel_text.h"
#include "engine/tensor/dtype.h"

namespace tensord::cuda {

// Batches of small matrices, which a few lanes of a warp decompose in shared memory: one launch with the guard, the
// scale, the decomposition, the order of its values and the verdict in it. Matrices have up to kMostSmallSize rows and
// columns, and at least one of each. Each matrix has the bits that it has alone.
struct SmallMatrices {
  DType dtype = DType::kF64;
  int64_t rows = 0, columns = 0, batch = 0;
  int64_t most_blocks = 0;

  // Returns the lanes of a matrix: at least one for each row and column.
  int group() const { return static_cast<int>(std::max<uint64_t>(std::bit_ceil(static_cast<uint64_t>(longer())), 4)); }
  int64_t longer() const { return std::max(rows, columns); }
  int64_t shorter() const { return std::min(rows, columns); }
};

// Prints LAPACK's geqrf by single reflectors, with pointers to the matrices, to reflectors under R, and to their
// factors (G. Golub, C. Van Loan: Matrix Computations, 4th ed., 5.2.2). A column is scaled while its length is taken.
KernelText SmallReflectorsText(const SmallMatrices& of);
// Prints the same with the reflectors multiplied, as LAPACK's orgqr does: pointers to the matrices, to Q with
// `q_columns` columns, and to R.
KernelText SmallQrText(const SmallMatrices& of, int64_t q_columns);

// Prints eigenvalues, ascending, of Hermitian matrices by their lower triangles: Jacobi's rotations of all pairs of a
// round of a tournament at once (R. Brent, F. Luk: The solution of singular-value and symmetric eigenvalue problems on
// multiprocessor arrays, 1985). Takes pointers to the matrices, to the values, to vectors if there are any, and to the
// verdict. Ends when no entry beside the diagonal is above an n-th of half an epsilon of the norm; a matrix that does
// not after `most_sweeps` is the verdict, with the rotations of the last sweep.
KernelText SmallEighText(const SmallMatrices& of, bool has_vectors, int most_sweeps);

// Sizes of singular vectors; 0: only the values.
struct SmallSvdVectors {
  int64_t u_columns = 0, vh_rows = 0;
};
// Prints singular values, descending, by one-sided rotations of pairs of columns (M. Hestenes, 1958; the tournament is
// the same), of a wide matrix those of its conjugate transpose. The longer column of a pair goes first (P. de Rijk,
// 1989). Columns of length zero, and those that U or V lack, are the unit vectors that the others leave most of, made
// orthogonal to them twice. Takes pointers to the matrices, to U, the values and V^H, or to the values alone, and to
// the verdict. Ends when all pairs are orthogonal up to sqrt(rows) epsilon of their lengths; else as SmallEighText.
KernelText SmallSvdText(const SmallMatrices& of, const SmallSvdVectors& vectors, int most_sweeps);

// Twice what LAPACK's gesvj takes at most. Matrices of 32 columns take about ten; one-sided rotations took up to 43
// where rows are many powers of ten apart.
inline constexpr int kMostSweeps = 60;

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_LINALG_SMALL_TEXTS_H_
