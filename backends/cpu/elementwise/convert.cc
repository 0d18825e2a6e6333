#include "backends/cpu/elementwise/convert.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "backends/cpu/elementwise/convert_loops.h"
#include "backends/cpu/math/half_conversion.h"
#include "engine/ops/scalar/scalar_math.h"

namespace tensord::cpu {
namespace {

// Elements between the two conversions, on the stack: 6 KiB in the nearest cache beside operand and result.
constexpr int64_t kConvertedAtOnce = 512;

// A block as the floats that the 16-bit result is rounded from, once.
template <typename From>
void FloatsToRound(const From* x, float* y, int64_t n) {
  const ConvertLoops& loops = GetConvertLoops();
  constexpr size_t kRow = static_cast<size_t>(kDTypeOf<From>);
  if constexpr (std::is_same_v<From, double>) {
    loops.round_to_odd(x, y, n);
  } else if constexpr (std::is_same_v<From, int32_t> || std::is_same_v<From, Complex128>) {
    alignas(64) double exact[kConvertedAtOnce];  // of an integer, or of the real part
    loops.pairs[kRow][static_cast<size_t>(DType::kF64)](x, exact, n);
    loops.round_to_odd(exact, y, n);
  } else {
    loops.pairs[kRow][static_cast<size_t>(DType::kF32)](x, y, n);
  }
}

template <typename From, HalfElement To>
void ToHalf(const void* x, void* out, int64_t n) {
  const From* from = static_cast<const From*>(x);
  uint16_t* to = static_cast<uint16_t*>(out);
  if constexpr (std::is_same_v<From, int64_t>) {
    for (int64_t i = 0; i < n; ++i) to[i] = scalar::ConvertElement<To>(from[i]).bits;
  } else {
    alignas(64) float floats[kConvertedAtOnce];
    for (int64_t i = 0; i < n; i += kConvertedAtOnce) {
      const int64_t count = std::min(n - i, kConvertedAtOnce);
      if constexpr (HalfElement<From>) {
        WidenHalf(kDTypeOf<From>, static_cast<const uint16_t*>(x) + i, floats, count);
      } else {
        FloatsToRound(from + i, floats, count);
      }
      NarrowToHalf(kDTypeOf<To>, floats, to + i, count);
    }
  }
}

template <HalfElement From, typename To>
void FromHalf(const void* x, void* out, int64_t n) {
  const ConvertFunction convert =
      GetConvertLoops().pairs[static_cast<size_t>(DType::kF32)][static_cast<size_t>(kDTypeOf<To>)];
  alignas(64) float floats[kConvertedAtOnce];
  for (int64_t i = 0; i < n; i += kConvertedAtOnce) {
    const int64_t count = std::min(n - i, kConvertedAtOnce);
    WidenHalf(kDTypeOf<From>, static_cast<const uint16_t*>(x) + i, floats, count);
    convert(floats, static_cast<To*>(out) + i, count);
  }
}

template <typename T>
void Copy(const void* x, void* out, int64_t n) {
  if (x != out && n > 0) std::memcpy(out, x, static_cast<size_t>(n) * sizeof(T));
}

template <typename From, typename To>
ConvertFunction Find() {
  if constexpr (std::is_same_v<From, To>) {
    return &Copy<From>;
  } else if constexpr (HalfElement<To>) {
    return &ToHalf<From, To>;
  } else if constexpr (HalfElement<From>) {
    return &FromHalf<From, To>;
  } else {
    return GetConvertLoops().pairs[static_cast<size_t>(kDTypeOf<From>)][static_cast<size_t>(kDTypeOf<To>)];
  }
}

}  // namespace

ConvertFunction FindConvert(DType from, DType to) {
  return VisitDType(from, [to]<typename From>(TypeTag<From>) {
    return VisitDType(to, []<typename To>(TypeTag<To>) { return Find<From, To>(); });
  });
}

}  // namespace tensord::cpu
