#include "tensord/dtype.h"

#include "tensord/v1/tensor.pb.h"

namespace tensord::client {
namespace {

constexpr bool IsSame(DType here, v1::DType wire) { return static_cast<int>(here) == wire; }

static_assert(IsSame(DType::kBool, v1::DTYPE_BOOL) && IsSame(DType::kI32, v1::DTYPE_I32) &&
              IsSame(DType::kI64, v1::DTYPE_I64) && IsSame(DType::kF32, v1::DTYPE_F32) &&
              IsSame(DType::kF64, v1::DTYPE_F64) && IsSame(DType::kC64, v1::DTYPE_C64) &&
              IsSame(DType::kC128, v1::DTYPE_C128) && IsSame(DType::kF16, v1::DTYPE_F16) &&
              IsSame(DType::kBF16, v1::DTYPE_BF16));
static_assert(static_cast<int>(MemoryOrder::kColumnMajor) == v1::MEMORY_ORDER_COLUMN_MAJOR &&
              static_cast<int>(MemoryOrder::kRowMajor) == v1::MEMORY_ORDER_ROW_MAJOR);

}  // namespace

bool IsKnownDType(int wire_value) { return v1::DType_IsValid(wire_value) && wire_value != v1::DTYPE_UNSPECIFIED; }

int64_t SizeInBytes(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return 1;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kI32:
    case DType::kF32:
      return 4;
    case DType::kI64:
    case DType::kF64:
    case DType::kC64:
      return 8;
    case DType::kC128:
      return 16;
  }
  return 1;
}

absl::string_view DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "bool";
    case DType::kI32:
      return "i32";
    case DType::kI64:
      return "i64";
    case DType::kF32:
      return "f32";
    case DType::kF64:
      return "f64";
    case DType::kC64:
      return "c64";
    case DType::kC128:
      return "c128";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
  }
  return "unknown";
}

bool IsComplex(DType dtype) { return dtype == DType::kC64 || dtype == DType::kC128; }

bool IsFloat(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF32 || dtype == DType::kF64;
}

bool IsInteger(DType dtype) { return dtype == DType::kI32 || dtype == DType::kI64; }

DType RealPart(DType dtype) {
  if (dtype == DType::kC64) return DType::kF32;
  if (dtype == DType::kC128) return DType::kF64;
  return dtype;
}

}  // namespace tensord::client
