#include "clients/cli/programs/dtype_promotion.h"

#include <utility>

namespace tensord::cli {

using client::DType;

client::DType PromotedDType(DType a, DType b) {
  if (a == b || b == DType::kBool) return a;
  if (a == DType::kBool) return b;
  if (client::IsComplex(b)) std::swap(a, b);
  if (client::IsComplex(a)) {
    const bool is_single = a == DType::kC64 && (b == DType::kC64 || (client::IsFloat(b) && b != DType::kF64));
    return is_single ? DType::kC64 : DType::kC128;
  }
  if (client::IsInteger(a) != client::IsInteger(b)) return DType::kF64;
  if (client::SizeInBytes(a) == client::SizeInBytes(b)) return DType::kF32;  // F16 and BF16
  return client::SizeInBytes(a) > client::SizeInBytes(b) ? a : b;
}

}  // namespace tensord::cli
