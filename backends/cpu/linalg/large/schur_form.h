#ifndef TENSORD_BACKENDS_CPU_LINALG_LARGE_SCHUR_FORM_H_
#define TENSORD_BACKENDS_CPU_LINALG_LARGE_SCHUR_FORM_H_

#include <cstdint>

#include "backends/cpu/linalg/lapack/batch.h"
#include "backends/cpu/linalg/lapack/general_steps.h"

namespace tensord::cpu {

// A Hessenberg matrix becomes upper triangular, or quasi-triangular if it is real, by QR sweeps of many shifts. The
// shifts are the eigenvalues of a window at its end; converged ones are taken off [Braman, Byers and Mathias, The
// multishift QR algorithm, parts I and II, 2002]. LAPACK's hseqr is such a loop. This loop is ours, around LAPACK's
// windows and sweeps, and stops between any two of them.
//
// Immutable after construction, so thread-safe. Run does not allocate.
template <typename T>
class SchurForm {
 public:
  explicit SchurForm(int64_t n);
  int64_t scratch_bytes() const { return layout_.bytes(); }
  // Makes the Schur form. `h` has zeros below its subdiagonal, and eigenvalues on its diagonal outside rows [first,
  // end). With `z`, h becomes the triangle, and z is multiplied with the transformations; without, h is undefined
  // afterwards. `values` and, for real matrices, `imaginary_parts` have n elements. Returns 0, or LAPACK hseqr's info
  // if it does not converge.
  int64_t Run(int64_t first, int64_t end, T* h, T* z, T* values, T* imaginary_parts, char* scratch) const;

 private:
  class Iteration;

  int64_t n_;
  int64_t shifts_ = 0;  // of a window
  int64_t sweep_ = 0;   // of those, how many a sweep takes
  int64_t block_ = 0;   // rows of LAPACK's workspaces
  int64_t work_size_ = 0;
  ScratchLayout layout_;
  int64_t vectors_ = 0, across_ = 0, along_ = 0, work_ = 0;
};

extern template class SchurForm<float>;
extern template class SchurForm<double>;
extern template class SchurForm<lapack::Complex64>;
extern template class SchurForm<lapack::Complex128>;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LARGE_SCHUR_FORM_H_
