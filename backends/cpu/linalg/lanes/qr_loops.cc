#include <algorithm>

#include "backends/cpu/linalg/lanes/loop_tables.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/linalg/lanes/qr_loops.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/linalg/lanes/dtypes-inl.h"
#include "backends/cpu/linalg/lanes/householder-inl.h"
#include "backends/cpu/linalg/lanes/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

// Entries near this power of two have normal numbers as squares, and so have all entries that matter beside them.
template <typename T>
constexpr int kQrScale = sizeof(T) == 4 ? 56 : 400;

template <class N, typename Element>
SmallMatrixFailure Qr(const SmallMatrixBatch& batch, void* scratch) {
  using T = typename N::Real;
  const int64_t m = batch.rows, n = batch.columns, k = std::min(m, n), side = batch.full ? m : k;
  LaneScratch<N> room(scratch);
  const LaneMatrix<N> a = room.Matrix(m, n), tau = room.Matrix(k, 1),
                      result = room.Matrix(m, batch.full ? std::max(m, n) : k);
  const LaneMatrix<N> r{result.data, side};
  constexpr int64_t kParts = N::kParts;
  const int64_t a_size = m * n * kParts, q_size = m * side * kParts, r_size = side * n * kParts;
  const Element* const from = static_cast<const Element*>(batch.operands[0]);
  for (int64_t begin = 0; begin < batch.count; begin += kLanes<T>) {
    const int64_t count = std::min(kLanes<T>, batch.count - begin);
    LoadLanes(from + begin * a_size, a_size, a_size, count, a.data);
    const LaneScaling<T> scaling = ScaleLanes<T, kQrScale<T>>(a_size, a.data);
    FactorQr<N>(a, n, tau, nullptr);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < side; ++i) r.Set(i, j, i <= j ? AddToParts(a(i, j), scaling.poison) : Constant<N>(0));
    }
    UnscaleLanes(scaling, r_size, r.data);
    StoreLanes(r.data, hn::Zero(Tag<T>()), r_size, r_size, count,
               static_cast<Element*>(batch.results[1]) + begin * r_size);
    SetIdentity(result, side);
    ApplyQ(a, k, tau, result, side, true);
    StoreLanes(result.data, scaling.poison, q_size, q_size, count,
               static_cast<Element*>(batch.results[0]) + begin * q_size);
  }
  return {};
}

SmallMatrixLoops Loops(DType dtype) {
  return LoopsOfDType<float>(dtype, []<class N, typename Element>() { return &Qr<N, Element>; });
}

#else

SmallMatrixLoops Loops(DType) { return {}; }

#endif

}  // namespace

SmallMatrixLoops BestQrLoops(DType dtype) { return Loops(dtype); }

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(BestQrLoops);

SmallMatrixLoops GetQrLoops(DType dtype) { return HWY_DYNAMIC_DISPATCH(BestQrLoops)(dtype); }

}  // namespace tensord::cpu
#endif  // HWY_ONCE
