#include "backends/cpu/machine/streamed_stores.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/machine/cache_sizes.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/machine/streamed_stores.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"  // must stand before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

void Copy(const void* src, void* dst, int64_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const uint8_t* from = static_cast<const uint8_t*>(src);
  uint8_t* to = static_cast<uint8_t*>(dst);
  // Streamed stores must be aligned.
  const int64_t misaligned = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % static_cast<uintptr_t>(lanes));
  int64_t i = misaligned == 0 ? 0 : std::min(bytes, lanes - misaligned);
  std::memcpy(to, from, static_cast<size_t>(i));
  for (; i + lanes <= bytes; i += lanes) hn::Stream(hn::LoadU(d, from + i), d, to + i);
  std::memcpy(to + i, from + i, static_cast<size_t>(bytes - i));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(Copy);

int64_t StreamedResultBytes() {
  static const int64_t bytes = std::clamp(MachineCacheSizes().last_level / 2, int64_t{8} << 20, int64_t{64} << 20);
  return bytes;
}

bool FitsLastCache(int64_t touched_bytes) { return touched_bytes <= MachineCacheSizes().last_level / 8 * 9; }

void StreamCopy(const void* src, void* dst, int64_t bytes) { HWY_DYNAMIC_DISPATCH(Copy)(src, dst, bytes); }

void FlushStreamed() { hwy::FlushStream(); }

}  // namespace tensord::cpu
#endif
