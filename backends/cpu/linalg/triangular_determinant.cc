#include "backends/cpu/linalg/triangular_determinant.h"

#include <type_traits>

#include "backends/cpu/kernel/kernel.h"
#include "backends/cpu/linalg/lapack/batch.h"
#include "backends/cpu/linalg/lapack/dtypes.h"
#include "engine/families/linalg/scaled_product.h"

namespace tensord::cpu {
namespace {

template <typename T>
class TriangularDeterminantRoutine {
 public:
  static constexpr Refusal kRefusal = Refusal::kInternal;

  explicit TriangularDeterminantRoutine(const BoundInstruction& instruction)
      : n_(instruction.operands[0].shape[0]), has_exponents_(instruction.operands.size() > 1) {}

  int64_t scratch_bytes() const { return 0; }

  int64_t Run(const MatrixCall& call) const {
    using Wide = decltype(scalar::Wide(T()));
    using Real = decltype(std::real(T()));
    const T* const matrix = call.operand<T>(0);
    ScaledProduct<Wide> product;
    for (int64_t i = 0; i < n_; ++i) product.Multiply(scalar::Wide(matrix[i * (n_ + 1)]));
    if (has_exponents_) product.MultiplyByPowerOfTwo(static_cast<int64_t>(*call.operand<Real>(1)));
    *call.result<T>(0) = static_cast<T>(product.value());
    *call.result<T>(1) = static_cast<T>(product.sign());
    *call.result<Real>(2) = static_cast<Real>(product.log_modulus());
    return 0;
  }

 private:
  int64_t n_;
  bool has_exponents_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeTriangularDeterminant(const BoundInstruction& instruction,
                                                                  const FamilyContext& /*context*/) {
  if (BatchSize(instruction.operands[0].shape) == 0) return std::make_unique<NothingToDo>();
  return MakeMatrixKernel<TriangularDeterminantRoutine>(instruction);
}

}  // namespace tensord::cpu
