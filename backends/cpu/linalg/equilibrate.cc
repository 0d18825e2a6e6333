#include "backends/cpu/linalg/equilibrate.h"

#include <algorithm>

#include "backends/cpu/kernel/kernel.h"
#include "backends/cpu/linalg/lapack/batch.h"
#include "backends/cpu/linalg/lapack/dtypes.h"
#include "engine/families/linalg/equilibration.h"

namespace tensord::cpu {
namespace {

template <typename T>
class EquilibrateRoutine {
 public:
  static constexpr Refusal kRefusal = Refusal::kInternal;

  explicit EquilibrateRoutine(const BoundInstruction& instruction) : n_(instruction.operands[0].shape[0]) {}

  int64_t scratch_bytes() const { return 0; }

  int64_t Run(const MatrixCall& call) const {
    using Real = decltype(std::real(T()));
    const T* const matrix = call.operand<T>(0);
    T* const divided = call.result<T>(0);
    const Equilibration<T> equilibration(matrix, n_);
    if (!equilibration.is_needed()) {
      std::copy_n(matrix, n_ * n_, divided);
    } else {
      for (int64_t j = 0; j < n_; ++j) {
        for (int64_t i = 0; i < n_; ++i) divided[i + j * n_] = equilibration.Divided(matrix[i + j * n_], i, j);
      }
    }
    *call.result<Real>(1) = static_cast<Real>(equilibration.exponent());
    return 0;
  }

 private:
  int64_t n_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeEquilibrate(const BoundInstruction& instruction,
                                                        const FamilyContext& /*context*/) {
  if (BatchSize(instruction.operands[0].shape) == 0) return std::make_unique<NothingToDo>();
  return MakeMatrixKernel<EquilibrateRoutine>(instruction);
}

}  // namespace tensord::cpu
