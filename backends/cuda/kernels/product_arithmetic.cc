#include "backends/cuda/kernels/product_arithmetic.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cuda/codegen/values.h"

namespace tensord::cuda {
namespace {

std::string ZeroText(Algebra algebra, DType accumulator, CudaPrelude* prelude) {
  return VisitDType(accumulator, [&]<typename T>(TypeTag<T>) {
    const T zero = algebra == Algebra::kStandard ? T() : SemiringZero<T>(algebra);
    return CudaConstant(Literal::Scalar<T>(zero), prelude);
  });
}

std::pair<std::string, std::string> LimitsText(DType integer) {
  if (integer == DType::kI32) return {"(-2147483647 - 1)", "2147483647"};
  return {"(-9223372036854775807ll - 1)", "9223372036854775807ll"};
}

}  // namespace

ProductArithmetic::ProductArithmetic(Algebra algebra, DType operands, DType result, CudaPrelude* prelude)
    : algebra_(algebra),
      operands_(operands),
      result_(result),
      accumulator_(CudaAccumulator(result)),
      prelude_(prelude),
      type_bytes_(SizeOf(accumulator_)),
      type_(CudaType(accumulator_)) {
  for (const DType dtype : {operands, result, accumulator_}) UseCudaType(dtype, prelude);
  const bool is_exact = (kIntegers | kBoolOnly).Contains(accumulator_);
  rounds_ = algebra == Algebra::kStandard && !is_exact;
  saturates_ = kIntegers.Contains(accumulator_) && (algebra == Algebra::kMaxPlus || algebra == Algebra::kMinPlus);
  zero_ = ZeroText(algebra, accumulator_, prelude);
}

std::string ProductArithmetic::Factor(const std::string& element, bool conjugates) {
  const std::string factor = CudaConvert(operands_, accumulator_, CudaLoaded(operands_, element), prelude_);
  if (!conjugates || !kComplexes.Contains(accumulator_)) return factor;
  prelude_->Use("ConjComplex");
  return absl::StrCat("ConjComplex(", factor, ")");
}

std::string ProductArithmetic::Add(const std::string& a, const std::string& b) {
  const CoreOp op = algebra_ == Algebra::kStandard  ? CoreOp::kAdd
                    : algebra_ == Algebra::kMinPlus ? CoreOp::kMinimum
                                                    : CoreOp::kMaximum;
  return CudaBinary(op, accumulator_, a, b, prelude_);
}

std::string ProductArithmetic::Multiply(const std::string& a, const std::string& b) {
  if (saturates_) {
    const auto [least, most] = LimitsText(accumulator_);
    return absl::StrCat("SaturatedSum<", type_, ">(", a, ", ", b, ", ", least, ", ", most, ", ", zero_, ")");
  }
  const bool adds = algebra_ == Algebra::kMaxPlus || algebra_ == Algebra::kMinPlus;
  return CudaBinary(adds ? CoreOp::kAdd : CoreOp::kMultiply, accumulator_, a, b, prelude_);
}

std::string ProductArithmetic::Rounded(const std::string& sum) {
  return CudaStored(result_, CudaConvert(accumulator_, result_, sum, prelude_));
}

}  // namespace tensord::cuda
