// Linear algebra on the last two axes, with NumPy's meaning; further axes are batch. Takes F32, F64, C64 and C128, and
// converts nothing. R is the real dtype of the operand's, k is min(m, n). Shapes and dtypes are checked at once; a
// matrix that has no answer (a singular one in Solve) fails the run, which names it. Needs a server with the family
// linalg. Signs and phases of vectors are the server's LAPACK's.
#ifndef TENSORD_LINALG_H_
#define TENSORD_LINALG_H_

#include <cstdint>
#include <optional>

#include "tensord/axes.h"
#include "tensord/tensor.h"

namespace tensord::client {

// Returns x[…,n,r] with a x = b, for a[…,n,n] and b[…,n,r], whose batch axes broadcast; or x[n] for a vector b[n].
Tensor Solve(const TensorArg& a, const TensorArg& b);

struct TriangularOptions {
  enum class Transpose { kNone, kTranspose, kAdjoint };
  bool lower = false;
  bool unit_diagonal = false;  // reads ones in place of the diagonal
  Transpose transpose = Transpose::kNone;
};
// Returns x[…,n,r] with op(a) x = b for a triangular a[…,n,n], of which the other triangle is not read.
Tensor TriangularSolve(const TensorArg& a, const TensorArg& b, const TriangularOptions& options = {});

// Returns x[…,n,r] of least norm among those that minimize |b - a x|, for a[…,m,n] and b[…,m,r], or b[m]. Singular
// values up to `relative_cutoff` times the largest one count as zero, by default epsilon * max(m, n).
Tensor Lstsq(const TensorArg& a, const TensorArg& b, std::optional<double> relative_cutoff = std::nullopt);

// [n,n] to its inverse.
Tensor Inverse(const TensorArg& a);
// [m,n] to the pseudo-inverse [n,m]; the cutoff is that of Lstsq.
Tensor Pinv(const TensorArg& a, std::optional<double> relative_cutoff = std::nullopt);

// [n,n] to a determinant for each matrix, finite wherever it can be written.
Tensor Det(const TensorArg& a);
struct SlogDetResult {
  Tensor sign;    // […]; of a complex matrix a phase
  Tensor logabs;  // […] of R; -inf for a singular matrix, whose sign is 0
};
SlogDetResult SlogDet(const TensorArg& a);

// [n,n] to the lower triangular l[n,n] with a = l l^H; reads the lower triangle alone. An indefinite matrix fails the
// run.
Tensor Cholesky(const TensorArg& a);

struct LuResult {
  Tensor p;  // [m,m], a permutation matrix
  Tensor l;  // [m,k], unit lower
  Tensor u;  // [k,n]
};
// [m,n] to a = p l u.
LuResult Lu(const TensorArg& a);

// The sizes of factors: k columns or rows, or all of them.
enum class Factors { kReduced, kFull };

struct QrResult {
  Tensor q;  // [m,k]; full: [m,m]
  Tensor r;  // [k,n]; full: [m,n]
};
// [m,n] to a = q r.
QrResult Qr(const TensorArg& a, Factors factors = Factors::kReduced);

struct SvdResult {
  Tensor u;   // [m,k]; full: [m,m]
  Tensor s;   // [k] of R, descending
  Tensor vh;  // [k,n]; full: [n,n]
};
// [m,n] to a = u diag(s) vh. Unlike NumPy's the factors are reduced unless told otherwise.
SvdResult Svd(const TensorArg& a, Factors factors = Factors::kReduced);
// [m,n] to the singular values alone, [k] of R, descending.
Tensor SvdValues(const TensorArg& a);

struct EigenResult {
  Tensor values;   // [n]
  Tensor vectors;  // [n,n], in columns
};
// [n,n], Hermitian, to values of R, ascending, and vectors of the operand's dtype; reads the lower triangle alone.
EigenResult Eigh(const TensorArg& a);
Tensor EighValues(const TensorArg& a);
// [n,n] to values and right vectors, both complex.
EigenResult Eig(const TensorArg& a);
Tensor EigValues(const TensorArg& a);

// [m,n] to the number of singular values above the cutoff of Lstsq, an I64 for each matrix.
Tensor MatrixRank(const TensorArg& a, std::optional<double> relative_cutoff = std::nullopt);

// Returns the square root of the sum of |x|^2, of R: over all axes, or over those named, as vectors' length or
// matrices' Frobenius norm. Takes F16 and BF16 too. Squares may overflow where the norm would not.
Tensor Norm(const TensorArg& x);
Tensor Norm(const TensorArg& x, const Axes& axes, bool keep_dims = false);

}  // namespace tensord::client

#endif  // TENSORD_LINALG_H_
