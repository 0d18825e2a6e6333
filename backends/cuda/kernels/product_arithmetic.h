#ifndef TENSORD_BACKENDS_CUDA_KERNELS_PRODUCT_ARITHMETIC_H_
#define TENSORD_BACKENDS_CUDA_KERNELS_PRODUCT_ARITHMETIC_H_

#include <string>

#include "backends/cuda/codegen/prelude.h"
#include "engine/ops/semiring.h"
#include "engine/tensor/dtype.h"

namespace tensord::cuda {

// The arithmetic of a sum of products as text, in any algebra. Factors and sums have one type, the accumulator's.
class ProductArithmetic {
 public:
  // `operands` and `result` are the dtypes of a dot_general in that algebra.
  ProductArithmetic(Algebra algebra, DType operands, DType result, CudaPrelude* prelude);

  const std::string& type() const { return type_; }
  int64_t type_bytes() const { return type_bytes_; }
  // Tells whether the order of the sum shows in its bits.
  bool rounds() const { return rounds_; }
  const std::string& zero() const { return zero_; }
  // An element of an operand's memory as a factor.
  std::string Factor(const std::string& element, bool conjugates);
  std::string Add(const std::string& a, const std::string& b);
  std::string Multiply(const std::string& a, const std::string& b);
  // A sum as an element of the result's memory.
  std::string Rounded(const std::string& sum);

  // Functions that stand before the kernel.
  static constexpr char kFunctions[] = R"(// Held between the least and the greatest integer; an algebra's zero absorbs.
template <typename T>
TENSORD_FN T SaturatedSum(T x, T y, T least, T most, T zero) {
  if (x == zero || y == zero) return zero;
  if (x < 0 && y < least - x) return least;
  if (x > 0 && y > most - x) return most;
  return x + y;
}
)";
  bool uses_functions() const { return saturates_; }

 private:
  const Algebra algebra_;
  const DType operands_;
  const DType result_;
  const DType accumulator_;
  CudaPrelude* const prelude_;
  bool rounds_ = false;
  bool saturates_ = false;
  int64_t type_bytes_ = 0;
  std::string type_;
  std::string zero_;
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNELS_PRODUCT_ARITHMETIC_H_
