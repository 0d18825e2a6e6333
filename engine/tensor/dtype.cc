#include "engine/tensor/dtype.h"

namespace tensord {
namespace {

constexpr absl::string_view kNames[] = {"invalid", "bool", "i32", "i64", "f32", "f64", "c64", "c128", "f16", "bf16"};

}  // namespace

absl::string_view Name(DType dtype) { return kNames[static_cast<size_t>(dtype)]; }

std::optional<DType> DTypeFromName(absl::string_view name) {
  for (DType d : kAllDTypes) {
    if (Name(d) == name) return d;
  }
  return std::nullopt;
}

DType RealPartOf(DType dtype) {
  if (dtype == DType::kC64) return DType::kF32;
  if (dtype == DType::kC128) return DType::kF64;
  return dtype;
}

std::optional<DType> ComplexOf(DType dtype) {
  if (dtype == DType::kF32) return DType::kC64;
  if (dtype == DType::kF64) return DType::kC128;
  return std::nullopt;
}

}  // namespace tensord
