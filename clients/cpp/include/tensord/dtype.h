#ifndef TENSORD_DTYPE_H_
#define TENSORD_DTYPE_H_

#include <complex>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "tensord/message_names.h"

namespace tensord::client {

// The two 16-bit floating-point element types are storage: C++20 has no arithmetic type for them.

// IEEE 754 binary16. Conversion from float rounds to nearest even; too large becomes infinity, NaN stays NaN.
struct Half {
  uint16_t bits = 0;

  static Half FromFloat(float value);
  float ToFloat() const;
};

// The upper half of an IEEE 754 binary32. Conversion as for Half.
struct BFloat16 {
  uint16_t bits = 0;

  static BFloat16 FromFloat(float value);
  float ToFloat() const;
};

// Element type of a tensor; the numbers are those of tensord.v1.DType.
enum class DType {
  kBool = 1,
  kI32 = 2,
  kI64 = 3,
  kF32 = 4,
  kF64 = 5,
  kC64 = 6,
  kC128 = 7,
  kF16 = 8,
  kBF16 = 9,
};

// Order of the elements in a buffer; the numbers are those of tensord.v1.MemoryOrder.
enum class MemoryOrder {
  kColumnMajor = 1,
  kRowMajor = 2,
};

inline v1::DType ToWire(DType dtype) { return static_cast<v1::DType>(dtype); }
inline v1::MemoryOrder ToWire(MemoryOrder order) { return static_cast<v1::MemoryOrder>(order); }

// Returns false for a number that is no dtype known here (a newer server's, or garbage).
bool IsKnownDType(int wire_value);

int64_t SizeInBytes(DType dtype);
// "f32", "c128", "bool", …
absl::string_view DTypeName(DType dtype);

bool IsComplex(DType dtype);
// F16, BF16, F32 and F64.
bool IsFloat(DType dtype);
// I32 and I64.
bool IsInteger(DType dtype);
// F32 for C64, F64 for C128, and any other dtype itself.
DType RealPart(DType dtype);

// The dtype whose elements are the C++ type T. Other types do not compile.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<bool> {
  static constexpr DType kValue = DType::kBool;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType kValue = DType::kI32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType kValue = DType::kI64;
};
template <>
struct DTypeOf<float> {
  static constexpr DType kValue = DType::kF32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType kValue = DType::kF64;
};
template <>
struct DTypeOf<std::complex<float>> {
  static constexpr DType kValue = DType::kC64;
};
template <>
struct DTypeOf<std::complex<double>> {
  static constexpr DType kValue = DType::kC128;
};
template <>
struct DTypeOf<Half> {
  static constexpr DType kValue = DType::kF16;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType kValue = DType::kBF16;
};

}  // namespace tensord::client

#endif  // TENSORD_DTYPE_H_
