#include "backends/cpu/math/half_conversion.h"

#include <algorithm>
#include <cstddef>

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/math/half_conversion.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

void WidenF16(const uint16_t* src, float* dst, int64_t count) {
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<float> d32;
  const hn::Rebind<hwy::float16_t, decltype(d32)> d16;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d32));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::PromoteTo(d32, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(src) + i)), d32, dst + i);
  }
#else
  int64_t i = 0;
#endif
  for (; i < count; ++i) dst[i] = static_cast<float>(Float16::FromBits(src[i]));
}

void NarrowToF16(const float* src, uint16_t* dst, int64_t count) {
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<float> d32;
  const hn::Rebind<hwy::float16_t, decltype(d32)> d16;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d32));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::DemoteTo(d16, hn::LoadU(d32, src + i)), d16, reinterpret_cast<hwy::float16_t*>(dst) + i);
  }
#else
  int64_t i = 0;
#endif
  for (; i < count; ++i) dst[i] = Float16(src[i]).bits;
}

void WidenBF16(const uint16_t* src, float* HWY_RESTRICT dst, int64_t count) {
  for (int64_t i = 0; i < count; ++i) dst[i] = static_cast<float>(BFloat16::FromBits(src[i]));
}

template <auto kWiden>
void WidenToPanels(const uint16_t* src, int64_t count, int64_t width, int64_t panel_step, float* panels) {
  for (; count >= width; count -= width) {
    kWiden(src, panels, width);
    src += width;
    panels += panel_step;
  }
  if (count == 0) return;
  kWiden(src, panels, count);
  std::fill(panels + count, panels + width, 0.0F);
}

void WidenF16ToPanels(const uint16_t* src, int64_t count, int64_t width, int64_t panel_step, float* panels) {
  WidenToPanels<WidenF16>(src, count, width, panel_step, panels);
}

void WidenBF16ToPanels(const uint16_t* src, int64_t count, int64_t width, int64_t panel_step, float* panels) {
  WidenToPanels<WidenBF16>(src, count, width, panel_step, panels);
}

void NarrowToBF16(const float* src, uint16_t* HWY_RESTRICT dst, int64_t count) {
  for (int64_t i = 0; i < count; ++i) dst[i] = BFloat16(src[i]).bits;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(WidenF16);
HWY_EXPORT(WidenBF16);
HWY_EXPORT(WidenF16ToPanels);
HWY_EXPORT(WidenBF16ToPanels);
HWY_EXPORT(NarrowToF16);
HWY_EXPORT(NarrowToBF16);

void WidenHalf(DType half, const uint16_t* src, float* dst, int64_t count) {
  if (half == DType::kF16) {
    HWY_DYNAMIC_DISPATCH(WidenF16)(src, dst, count);
  } else {
    HWY_DYNAMIC_DISPATCH(WidenBF16)(src, dst, count);
  }
}

void WidenHalfToPanels(DType half, const uint16_t* src, int64_t count, int64_t width, int64_t panel_step,
                       float* panels) {
  if (half == DType::kF16) {
    HWY_DYNAMIC_DISPATCH(WidenF16ToPanels)(src, count, width, panel_step, panels);
  } else {
    HWY_DYNAMIC_DISPATCH(WidenBF16ToPanels)(src, count, width, panel_step, panels);
  }
}

void NarrowToHalf(DType half, const float* src, uint16_t* dst, int64_t count) {
  if (half == DType::kF16) {
    HWY_DYNAMIC_DISPATCH(NarrowToF16)(src, dst, count);
  } else {
    HWY_DYNAMIC_DISPATCH(NarrowToBF16)(src, dst, count);
  }
}

}  // namespace tensord::cpu
#endif  // HWY_ONCE
