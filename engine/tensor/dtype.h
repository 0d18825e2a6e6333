#ifndef TENSORD_ENGINE_TENSOR_DTYPE_H_
#define TENSORD_ENGINE_TENSOR_DTYPE_H_

#include <array>
#include <complex>
#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "engine/tensor/half_types.h"

namespace tensord {

// Element type of a tensor. The values are those of tensord.v1.DType.
enum class DType : uint8_t {
  kInvalid = 0,
  kBool = 1,
  kI32 = 2,
  kI64 = 3,
  kF32 = 4,
  kF64 = 5,
  kC64 = 6,   // two F32
  kC128 = 7,  // two F64
  kF16 = 8,
  kBF16 = 9,
};

inline constexpr int kNumDTypes = 9;
inline constexpr std::array<DType, kNumDTypes> kAllDTypes = {DType::kBool, DType::kI32, DType::kI64,
                                                             DType::kF32,  DType::kF64, DType::kC64,
                                                             DType::kC128, DType::kF16, DType::kBF16};

// An element of dtype BOOL: one byte, 0 or 1. A type of its own, so that it never mixes with integers.
struct Bool {
  uint8_t value = 0;

  Bool() = default;
  constexpr explicit Bool(bool b) : value(b ? 1 : 0) {}
  constexpr explicit operator bool() const { return value != 0; }
  friend constexpr bool operator==(Bool a, Bool b) { return (a.value != 0) == (b.value != 0); }
};

using Complex64 = std::complex<float>;
using Complex128 = std::complex<double>;

template <typename T>
inline constexpr DType kDTypeOf = DType::kInvalid;
template <>
inline constexpr DType kDTypeOf<Bool> = DType::kBool;
template <>
inline constexpr DType kDTypeOf<int32_t> = DType::kI32;
template <>
inline constexpr DType kDTypeOf<int64_t> = DType::kI64;
template <>
inline constexpr DType kDTypeOf<float> = DType::kF32;
template <>
inline constexpr DType kDTypeOf<double> = DType::kF64;
template <>
inline constexpr DType kDTypeOf<Complex64> = DType::kC64;
template <>
inline constexpr DType kDTypeOf<Complex128> = DType::kC128;
template <>
inline constexpr DType kDTypeOf<Float16> = DType::kF16;
template <>
inline constexpr DType kDTypeOf<BFloat16> = DType::kBF16;

template <typename T>
concept Element = kDTypeOf<T>
!= DType::kInvalid;
template <typename T>
concept IntegerElement = std::same_as<T, int32_t> || std::same_as<T, int64_t>;
template <typename T>
concept HalfElement = std::same_as<T, Float16> || std::same_as<T, BFloat16>;
// True for float and double: the types of real arithmetic.
template <typename T>
concept RealElement = std::same_as<T, float> || std::same_as<T, double>;
template <typename T>
concept ComplexElement = std::same_as<T, Complex64> || std::same_as<T, Complex128>;

// A set of dtypes, as an op declares which ones it takes.
class DTypeSet {
 public:
  constexpr DTypeSet() = default;
  constexpr DTypeSet(std::initializer_list<DType> dtypes) {
    for (DType d : dtypes) bits_ |= Bit(d);
  }
  constexpr bool Contains(DType d) const { return (bits_ & Bit(d)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  friend constexpr DTypeSet operator|(DTypeSet a, DTypeSet b) {
    DTypeSet r;
    r.bits_ = a.bits_ | b.bits_;
    return r;
  }
  friend constexpr bool operator==(DTypeSet, DTypeSet) = default;

 private:
  static constexpr uint16_t Bit(DType d) { return static_cast<uint16_t>(1u << static_cast<unsigned>(d)); }
  uint16_t bits_ = 0;
};

inline constexpr DTypeSet kBoolOnly = {DType::kBool};
inline constexpr DTypeSet kIntegers = {DType::kI32, DType::kI64};
inline constexpr DTypeSet kIntegral = kIntegers | kBoolOnly;
inline constexpr DTypeSet kFloats = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16};
inline constexpr DTypeSet kHalves = {DType::kF16, DType::kBF16};
inline constexpr DTypeSet kComplexes = {DType::kC64, DType::kC128};
inline constexpr DTypeSet kInexact = kFloats | kComplexes;
inline constexpr DTypeSet kNumbers = kIntegers | kInexact;
inline constexpr DTypeSet kAnyDType = kNumbers | kBoolOnly;

// Bytes of one element; 0 for kInvalid.
constexpr int64_t SizeOf(DType dtype) {
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
    case DType::kInvalid:
      break;
  }
  return 0;
}

// "bool", "i32", …, "c128": the names of the text form.
absl::string_view Name(DType dtype);
std::optional<DType> DTypeFromName(absl::string_view name);

// C64 → F32, C128 → F64; any other dtype is its own.
DType RealPartOf(DType dtype);
// F32 → C64, F64 → C128; nothing for the others.
std::optional<DType> ComplexOf(DType dtype);

template <typename T>
struct TypeTag {
  using type = T;
};

// Calls visitor(TypeTag<T>{}) with the C++ type of `dtype`, which must not be kInvalid.
template <typename Visitor>
decltype(auto) VisitDType(DType dtype, Visitor&& visitor) {
  switch (dtype) {
    case DType::kBool:
      return visitor(TypeTag<Bool>{});
    case DType::kI32:
      return visitor(TypeTag<int32_t>{});
    case DType::kI64:
      return visitor(TypeTag<int64_t>{});
    case DType::kF32:
      return visitor(TypeTag<float>{});
    case DType::kF64:
      return visitor(TypeTag<double>{});
    case DType::kC64:
      return visitor(TypeTag<Complex64>{});
    case DType::kC128:
      return visitor(TypeTag<Complex128>{});
    case DType::kF16:
      return visitor(TypeTag<Float16>{});
    case DType::kBF16:
    case DType::kInvalid:
      break;
  }
  return visitor(TypeTag<BFloat16>{});
}

}  // namespace tensord

#endif  // TENSORD_ENGINE_TENSOR_DTYPE_H_
