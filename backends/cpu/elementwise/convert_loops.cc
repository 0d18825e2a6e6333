#include "backends/cpu/elementwise/convert_loops.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "backends/cpu/math/pragma.h"
#include "engine/ops/scalar/scalar_math.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/elementwise/convert_loops.cc"
#include "hwy/foreach_target.h"  // must stand before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

// scalar::Truncate without branches, so that it becomes vector code: the value is brought into range first.
template <typename To, typename From>
HWY_INLINE To TruncateInRange(From x) {
  constexpr From kEnd = static_cast<From>(std::make_unsigned_t<To>(1) << (sizeof(To) * 8 - 1));
  const bool above = x >= kEnd;
  const bool below = !(x >= -kEnd);  // NaN too
  const To truncated = static_cast<To>(above || below ? From(0) : x);
  const To low = x == x ? std::numeric_limits<To>::min() : To(0);
  return above ? std::numeric_limits<To>::max() : below ? low : truncated;
}

template <typename To, typename From>
HWY_INLINE To ConvertOne(From x) {
  if constexpr (IntegerElement<To> && RealElement<From>) {
    return TruncateInRange<To>(x);
  } else if constexpr (IntegerElement<To> && ComplexElement<From>) {
    return TruncateInRange<To>(x.real());
  } else {
    return scalar::ConvertElement<To>(x);
  }
}

template <typename From, typename To>
void ConvertLoop(const void* x, void* out, int64_t n) {
  const From* from = static_cast<const From*>(x);
  To* to = static_cast<To*>(out);
  if constexpr (sizeof(From) == sizeof(To)) {
    TENSORD_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < n; ++i) to[i] = ConvertOne<To>(from[i]);
  } else {
    To* HWY_RESTRICT apart = to;
    for (int64_t i = 0; i < n; ++i) apart[i] = ConvertOne<To>(from[i]);
  }
}

void RoundToOdd(const double* x, float* HWY_RESTRICT y, int64_t n) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < n; ++i) {
    const float nearest = static_cast<float>(x[i]);
    const double back = nearest;
    const bool inexact = back != x[i] && std::abs(x[i]) < kInfinity;
    const bool away = inexact && std::abs(back) > std::abs(x[i]);
    // Goes back to the truncated value if it was rounded away from zero; the last bit then says that it is inexact.
    const uint32_t truncated = std::bit_cast<uint32_t>(nearest) - (away ? 1u : 0u);
    y[i] = std::bit_cast<float>(truncated | (inexact ? 1u : 0u));
  }
}

template <typename From>
constexpr std::array<ConvertFunction, kNumDTypes + 1> RowFrom() {
  return {nullptr,
          &ConvertLoop<From, Bool>,
          &ConvertLoop<From, int32_t>,
          &ConvertLoop<From, int64_t>,
          &ConvertLoop<From, float>,
          &ConvertLoop<From, double>,
          &ConvertLoop<From, Complex64>,
          &ConvertLoop<From, Complex128>,
          nullptr,
          nullptr};
}

constexpr ConvertLoops kLoops = {{{{},
                                   RowFrom<Bool>(),
                                   RowFrom<int32_t>(),
                                   RowFrom<int64_t>(),
                                   RowFrom<float>(),
                                   RowFrom<double>(),
                                   RowFrom<Complex64>(),
                                   RowFrom<Complex128>(),
                                   {},
                                   {}}},
                                 &RoundToOdd};

const ConvertLoops* Loops() { return &kLoops; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(Loops);

const ConvertLoops& GetConvertLoops() { return *HWY_DYNAMIC_DISPATCH(Loops)(); }

}  // namespace tensord::cpu
#endif
