#ifndef TENSORD_ENGINE_FAMILIES_LINALG_TEXTBOOK_FACTORIZATIONS_H_
#define TENSORD_ENGINE_FAMILIES_LINALG_TEXTBOOK_FACTORIZATIONS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/families/linalg/host_matrix.h"

namespace tensord {

// Direct factorizations as textbooks have them (Golub and Van Loan, Matrix Computations, 4th edition), slow and
// obvious: the algorithms of the reference. Finite matrices only, but for the Cholesky factor.

// The lower triangle's Cholesky factor; `pivot` is the place where it is not positive.
struct CholeskyFactor {
  HostMatrix lower;
  std::optional<int64_t> pivot;  // 0-based
};
CholeskyFactor FactorCholesky(const HostMatrix& a);

// Row i of L·U is row order[i] of A; partial pivoting by |re| + |im|, as LAPACK's.
struct LuFactors {
  HostMatrix packed;  // U, and L without its diagonal of ones
  std::vector<int64_t> order;
  int parity = 1;

  // Returns the first pivot that is zero, of a square matrix.
  std::optional<int64_t> ZeroPivot() const;
};
LuFactors FactorLu(const HostMatrix& a);
// Needs a square matrix without a zero pivot.
HostMatrix SolveLu(const LuFactors& lu, const HostMatrix& b);

// Householder's reflections that make A upper triangular: R, and below its diagonal the vectors without their leading
// one. The signs of R's diagonal are LAPACK's.
struct Reflectors {
  HostMatrix packed;
  std::vector<Complex128> tau;
};
Reflectors FactorReflectors(const HostMatrix& a);

// A = Q·R with a square Q, by these.
struct QrFactors {
  HostMatrix q;
  HostMatrix r;
};
QrFactors FactorQr(const HostMatrix& a);

// Returns the solution of T·X = B for one triangle of T; the other one is not read, nor is the diagonal where it is
// taken as ones.
HostMatrix SolveTriangle(const HostMatrix& t, bool lower, bool unit_diagonal, HostMatrix b);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_LINALG_TEXTBOOK_FACTORIZATIONS_H_
