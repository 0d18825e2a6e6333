#ifndef TENSORD_BACKENDS_CPU_LINALG_LAPACK_DTYPES_H_
#define TENSORD_BACKENDS_CPU_LINALG_LAPACK_DTYPES_H_

#include <memory>

#include "absl/strings/str_cat.h"
#include "backends/cpu/linalg/lapack/batch.h"

namespace tensord::cpu {

// Makes the kernel of a routine that exists for the four dtypes of linear algebra, from its instruction and `known`.
template <template <typename> typename Routine, typename... Known>
absl::StatusOr<std::unique_ptr<Kernel>> MakeMatrixKernel(const BoundInstruction& instruction, const Known&... known) {
  const auto make = [&]<typename T>(TypeTag<T>) -> std::unique_ptr<Kernel> {
    return std::make_unique<MatrixKernel<Routine<T>>>(instruction, Routine<T>(instruction, known...));
  };
  switch (instruction.operands[0].dtype) {
    case DType::kF32:
      return make(TypeTag<float>{});
    case DType::kF64:
      return make(TypeTag<double>{});
    case DType::kC64:
      return make(TypeTag<Complex64>{});
    case DType::kC128:
      return make(TypeTag<Complex128>{});
    default:
      return Refuse(Refusal::kUnsupportedOnDevice,
                    absl::StrCat("the CPU has no ", instruction.op->name, " of ", ToString(instruction.operands[0])));
  }
}

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LAPACK_DTYPES_H_
