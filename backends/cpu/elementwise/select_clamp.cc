#include "backends/cpu/elementwise/select_clamp.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/math/pragma.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/elementwise/select_clamp.cc"
#include "hwy/foreach_target.h"  // must stand before highway.h
#include "hwy/highway.h"

#include "backends/cpu/math/vector_math_order-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

template <typename T>
void SelectLoop(const uint8_t* pred, const void* on_true, const void* on_false, void* out, int64_t n) {
  using Word [[gnu::may_alias]] = T;  // of any dtype of that size
  const Word* a = static_cast<const Word*>(on_true);
  const Word* b = static_cast<const Word*>(on_false);
  Word* y = static_cast<Word*>(out);
  TENSORD_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < n; ++i) {
    const T yes = a[i], no = b[i];  // both are read: a choice of values, not of addresses, is vector code
    y[i] = pred[i] != 0 ? yes : no;
  }
}

// Elements of two words.
void SelectPairs(const uint8_t* pred, const void* on_true, const void* on_false, void* out, int64_t n) {
  using Word [[gnu::may_alias]] = uint64_t;
  const Word* a = static_cast<const Word*>(on_true);
  const Word* b = static_cast<const Word*>(on_false);
  Word* y = static_cast<Word*>(out);
  TENSORD_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t mask = pred[i] != 0 ? ~uint64_t{0} : 0;
    y[2 * i] = (a[2 * i] & mask) | (b[2 * i] & ~mask);
    y[2 * i + 1] = (a[2 * i + 1] & mask) | (b[2 * i + 1] & ~mask);
  }
}

SelectFunction Select(int64_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return &SelectLoop<uint8_t>;
    case 2:
      return &SelectLoop<uint16_t>;
    case 4:
      return &SelectLoop<uint32_t>;
    case 8:
      return &SelectLoop<uint64_t>;
    default:
      return &SelectPairs;
  }
}

// Returns the n elements that are left for the last vector.
template <class D>
HWY_INLINE hn::Vec<D> LoadSome(D d, const hn::TFromD<D>* from, int64_t n) {
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(D())] = {};
  std::memcpy(lanes, from, static_cast<size_t>(n) * sizeof(hn::TFromD<D>));
  return hn::Load(d, lanes);
}

template <typename T>
HWY_INLINE void ClampFloats(ClampBound low, const void* x, ClampBound high, void* out, int64_t n) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* lows = static_cast<const T*>(low.data);
  const T* highs = static_cast<const T*>(high.data);
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(out);
  const V single_low = low.single ? hn::Set(d, *lows) : hn::Zero(d);
  const V single_high = high.single ? hn::Set(d, *highs) : hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V lower = low.single ? single_low : hn::LoadU(d, lows + i);
    const V upper = high.single ? single_high : hn::LoadU(d, highs + i);
    hn::StoreU(Minimum(d, Maximum(d, hn::LoadU(d, from + i), lower), upper), d, to + i);
  }
  if (i == n) return;
  const V lower = low.single ? single_low : LoadSome(d, lows + i, n - i);
  const V upper = high.single ? single_high : LoadSome(d, highs + i, n - i);
  HWY_ALIGN T rest[hn::MaxLanes(hn::ScalableTag<T>())];
  hn::Store(Minimum(d, Maximum(d, LoadSome(d, from + i, n - i), lower), upper), d, rest);
  std::memcpy(to + i, rest, static_cast<size_t>(n - i) * sizeof(T));
}

void ClampF32(ClampBound low, const void* x, ClampBound high, void* out, int64_t n) {
  ClampFloats<float>(low, x, high, out, n);
}
void ClampF64(ClampBound low, const void* x, ClampBound high, void* out, int64_t n) {
  ClampFloats<double>(low, x, high, out, n);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {
namespace {

constexpr int64_t kBlockBytes = 4096;  // of three blocks on the stack, which stay in the nearest cache

template <typename T>
void SplatAs(const void* element, void* out, int64_t n) {
  using Word [[gnu::may_alias]] = T;
  T value;
  std::memcpy(&value, element, sizeof(T));
  std::fill_n(static_cast<Word*>(out), n, value);
}

// Returns the bound's elements for the block that starts at `offset` bytes.
const void* BoundAt(ClampBound bound, const void* splat, int64_t offset) {
  return bound.single ? splat : static_cast<const char*>(bound.data) + offset;
}

}  // namespace

HWY_EXPORT(Select);
HWY_EXPORT(ClampF32);
HWY_EXPORT(ClampF64);

SelectFunction FindSelect(int64_t element_bytes) { return HWY_DYNAMIC_DISPATCH(Select)(element_bytes); }

void Splat(const void* element, int64_t element_bytes, void* out, int64_t n) {
  switch (element_bytes) {
    case 1:
      return SplatAs<uint8_t>(element, out, n);
    case 2:
      return SplatAs<uint16_t>(element, out, n);
    case 4:
      return SplatAs<uint32_t>(element, out, n);
    case 8:
      return SplatAs<uint64_t>(element, out, n);
    default:
      break;
  }
  for (int64_t i = 0; i < n; ++i) std::memcpy(static_cast<char*>(out) + 16 * i, element, 16);
}

void Clamp(DType dtype, ClampBound low, const void* x, ClampBound high, void* out, int64_t n) {
  if (n <= 0) return;
  if (dtype == DType::kF32) return HWY_DYNAMIC_DISPATCH(ClampF32)(low, x, high, out, n);
  if (dtype == DType::kF64) return HWY_DYNAMIC_DISPATCH(ClampF64)(low, x, high, out, n);
  const ElementwiseFunction maximum = FindElementwise(CoreOp::kMaximum, dtype);
  const ElementwiseFunction minimum = FindElementwise(CoreOp::kMinimum, dtype);
  const int64_t element_bytes = SizeOf(dtype);
  const int64_t block = kBlockBytes / element_bytes;
  alignas(64) char low_splat[kBlockBytes];
  alignas(64) char high_splat[kBlockBytes];
  if (low.single) Splat(low.data, element_bytes, low_splat, std::min(n, block));
  if (high.single) Splat(high.data, element_bytes, high_splat, std::min(n, block));

  // Through a block of its own, because `out` may be the array of the upper bounds.
  alignas(64) char raised[kBlockBytes];
  for (int64_t i = 0; i < n; i += block) {
    const int64_t count = std::min(n - i, block);
    const int64_t offset = i * element_bytes;
    maximum(static_cast<const char*>(x) + offset, BoundAt(low, low_splat, offset), raised, count);
    minimum(raised, BoundAt(high, high_splat, offset), static_cast<char*>(out) + offset, count);
  }
}

}  // namespace tensord::cpu
#endif
