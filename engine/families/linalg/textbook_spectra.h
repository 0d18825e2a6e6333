#ifndef TENSORD_ENGINE_FAMILIES_LINALG_TEXTBOOK_SPECTRA_H_
#define TENSORD_ENGINE_FAMILIES_LINALG_TEXTBOOK_SPECTRA_H_

#include <optional>
#include <vector>

#include "engine/families/linalg/host_matrix.h"

namespace tensord {

// Singular values and eigenvalues as textbooks have them (Golub and Van Loan, Matrix Computations, 4th edition), slow
// and obvious: the algorithms of the reference. Finite matrices only. Nothing if an iteration does not converge.

// A = U·diag(s)·Vh with square U and Vh and descending s, by Hestenes' one-sided Jacobi rotations (§8.6.3).
struct SingularValues {
  HostMatrix u;
  std::vector<double> s;
  HostMatrix vh;
};
std::optional<SingularValues> DecomposeSingular(const HostMatrix& a);

// The eigenvalues of the Hermitian matrix in A's lower triangle, ascending, and the vectors in columns. Jacobi's
// rotations (§8.5).
struct HermitianEigen {
  std::vector<double> values;
  HostMatrix vectors;
};
std::optional<HermitianEigen> DecomposeHermitian(const HostMatrix& a);

// Right vectors in columns, of length 1 and with a real largest entry. The shifted QR iteration on a Hessenberg matrix
// (§7.5), and back substitution (§7.6.4).
struct GeneralEigen {
  std::vector<Complex128> values;
  HostMatrix vectors;
};
std::optional<GeneralEigen> DecomposeGeneral(const HostMatrix& a);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_LINALG_TEXTBOOK_SPECTRA_H_
