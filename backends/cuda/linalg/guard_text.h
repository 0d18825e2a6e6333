#ifndef TENSORD_BACKENDS_CUDA_LINALG_GUARD_TEXT_H_
#define TENSORD_BACKENDS_CUDA_LINALG_GUARD_TEXT_H_

#include <cstdint>

#include "backends/cuda/codegen/kernel_text.h"
#include "engine/tensor/dtype.h"

namespace tensord::cuda {

// The copies of matrices that a solver destroys. A matrix with a NaN or an infinity where it is read becomes the
// identity: solvers may not end on it; and its result is made NaN afterwards. One that is far from ordinary numbers is
// scaled by a power of two.
struct MatrixGuard {
  DType dtype = DType::kF64;
  int64_t rows = 0, columns = 0, batch = 0;
  bool only_lower = false;  // reads the lower triangle alone, and leaves zeros above
  bool turns = false;       // the copy is the conjugate transpose
  bool scales = false;
  bool keeps_broken = false;  // one that is not finite stays as it is
};

// Prints it, with pointers to the matrices, to the copies, to an int for each matrix, which becomes 1 where it is not
// finite, and to a u64 for each, which becomes the bits of its largest number.
KernelText MatrixGuardText(const MatrixGuard& guard, int64_t most_blocks);

// Text of the function R ScaleOf(u64 largest), for kernels that undo the scale.
inline constexpr char kScaleOfText[] = R"(// The power of two that takes the numbers to ordinary ones.
TENSORD_FN R ScaleOf(u64 bits) {
  const R largest = (R)__longlong_as_double((i64)bits);
  if (largest == 0 || !isfinite(largest)) return 1;
  if ((f64)largest >= (kIsSingle ? 1e-12 : 1e-100) && (f64)largest <= (kIsSingle ? 1e12 : 1e100)) return 1;
  const int most = kIsSingle ? 120 : 1000, exponent = -ilogb(largest);
  return ldexp((R)1, exponent > most ? most : exponent < -most ? -most : exponent);
}
)";

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_LINALG_GUARD_TEXT_H_
