#include "backends/cpu/matmul/half_vector_loops.h"

#include <algorithm>
#include <type_traits>

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/matmul/half_vector_loops.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

// Without fused multiply-add and conversions of F16 BLAS is as fast with panels.
#if HWY_NATIVE_FMA

namespace hn = hwy::HWY_NAMESPACE;

constexpr int kLines = 8;  // of A that are read beside each other

using Floats = hn::ScalableTag<float>;
using FloatsVector = hn::Vec<Floats>;

constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Floats()));

template <typename Half>
HWY_INLINE FloatsVector Widen(const uint16_t* at) {
  const Floats d;
  if constexpr (std::is_same_v<Half, Float16>) {
    const hn::Rebind<hwy::float16_t, Floats> d16;
    return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(at)));
  } else {
    const hn::Rebind<uint16_t, Floats> d16;
    const hn::RebindToUnsigned<Floats> d32;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, hn::LoadU(d16, at))));
  }
}

// Sums stay where they are while kCount columns go by.
template <typename Half, int kCount>
HWY_INLINE void AddColumns(int64_t outputs, const uint16_t* a, int64_t step, const float* x, float* HWY_RESTRICT y) {
  const Floats d;
  FloatsVector factors[kCount];
  HWY_UNROLL(8)
  for (int j = 0; j < kCount; ++j) factors[j] = hn::Set(d, x[j]);
  int64_t i = 0;
  for (; i + kLanes <= outputs; i += kLanes) {
    FloatsVector sum = hn::LoadU(d, y + i);
    HWY_UNROLL(8)
    for (int j = 0; j < kCount; ++j) sum = hn::MulAdd(Widen<Half>(a + j * step + i), factors[j], sum);
    hn::StoreU(sum, d, y + i);
  }
  for (; i < outputs; ++i) {
    for (int j = 0; j < kCount; ++j) {
      y[i] = hn::GetLane(
          hn::MulAdd(hn::Set(d, static_cast<float>(Half::FromBits(a[j * step + i]))), factors[j], hn::Set(d, y[i])));
    }
  }
}

template <typename Half>
void MultiplyByColumns(int64_t outputs, int64_t terms, const uint16_t* a, int64_t step, const float* x, float* y) {
  int64_t j = 0;
  for (; j + kLines <= terms; j += kLines) AddColumns<Half, kLines>(outputs, a + j * step, step, x + j, y);
  for (; j < terms; ++j) AddColumns<Half, 1>(outputs, a + j * step, step, x + j, y);
}

// Sums a row in so many chains that additions do not wait for each other.
template <typename Half, int kCount, int kChains>
HWY_INLINE void AddRows(int64_t terms, const uint16_t* a, int64_t step, const float* x, float* y) {
  const Floats d;
  FloatsVector sums[kCount][kChains];
  HWY_UNROLL(8)
  for (int i = 0; i < kCount; ++i) {
    HWY_UNROLL(8)
    for (int chain = 0; chain < kChains; ++chain) sums[i][chain] = hn::Zero(d);
  }
  int64_t t = 0;
  for (; t + kChains * kLanes <= terms; t += kChains * kLanes) {
    HWY_UNROLL(8)
    for (int chain = 0; chain < kChains; ++chain) {
      const int64_t at = t + chain * kLanes;
      const FloatsVector factors = hn::LoadU(d, x + at);
      HWY_UNROLL(8)
      for (int i = 0; i < kCount; ++i) {
        sums[i][chain] = hn::MulAdd(Widen<Half>(a + i * step + at), factors, sums[i][chain]);
      }
    }
  }
  for (int i = 0; i < kCount; ++i) {
    int64_t rest = t;
    for (; rest + kLanes <= terms; rest += kLanes) {
      sums[i][0] = hn::MulAdd(Widen<Half>(a + i * step + rest), hn::LoadU(d, x + rest), sums[i][0]);
    }
    for (int half = kChains / 2; half > 0; half /= 2) {
      for (int chain = 0; chain < half; ++chain) {
        sums[i][chain] = hn::Add(sums[i][chain], sums[i][chain + half]);
      }
    }
    float sum = hn::GetLane(hn::SumOfLanes(d, sums[i][0]));
    for (; rest < terms; ++rest) sum += static_cast<float>(Half::FromBits(a[i * step + rest])) * x[rest];
    y[i] += sum;
  }
}

template <typename Half>
void MultiplyByRows(int64_t outputs, int64_t terms, const uint16_t* a, int64_t step, const float* x, float* y) {
  // Two sums of each hide the time of a multiply-add, and leave registers for the widened elements.
  constexpr int kTogether = HWY_TARGET == HWY_AVX3 ? 8 : 4;
  int64_t i = 0;
  for (; i + kTogether <= outputs; i += kTogether) AddRows<Half, kTogether, 2>(terms, a + i * step, step, x, y + i);
  for (; i < outputs; ++i) AddRows<Half, 1, 8>(terms, a + i * step, step, x, y + i);
}

template <typename Half>
constexpr HalfVectorLoops LoopsOf() {
  return {MultiplyByColumns<Half>, MultiplyByRows<Half>};
}

#else

template <typename Half>
constexpr HalfVectorLoops LoopsOf() {
  return {};
}

#endif

}  // namespace

HalfVectorLoops BestHalfVectorLoops(DType half) {
  return half == DType::kF16 ? LoopsOf<Float16>() : LoopsOf<BFloat16>();
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(BestHalfVectorLoops);

HalfVectorLoops GetHalfVectorLoops(DType half) { return HWY_DYNAMIC_DISPATCH(BestHalfVectorLoops)(half); }

}  // namespace tensord::cpu
#endif  // HWY_ONCE
