// The loops of an algorithm for matrices of each dtype.
#if defined(TENSORD_BACKENDS_CPU_LINALG_LANES_DTYPES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_LINALG_LANES_DTYPES_INL_H_
#undef TENSORD_BACKENDS_CPU_LINALG_LANES_DTYPES_INL_H_
#else
#define TENSORD_BACKENDS_CPU_LINALG_LANES_DTYPES_INL_H_
#endif

#include <cstdint>

#include "backends/cpu/linalg/lanes/lanes-inl.h"
#include "backends/cpu/linalg/lanes/loops.h"
#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {

// `run_of` gives the function for lanes N and the elements of memory. F32 and C64 are computed in Single.
template <typename Single, class RunOf>
SmallMatrixLoops LoopsOfDType(DType dtype, const RunOf& run_of) {
  const auto loops = [&]<class N, typename Element>() -> SmallMatrixLoops {
    using T = typename N::Real;
    return {run_of.template operator()<N, Element>(), kLanes<T>, N::kStep * static_cast<int64_t>(sizeof(T))};
  };
  switch (dtype) {
    case DType::kF32:
      return loops.template operator()<RealLanes<Single>, float>();
    case DType::kF64:
      return loops.template operator()<RealLanes<double>, double>();
    case DType::kC64:
      return loops.template operator()<ComplexLanes<Single>, float>();
    case DType::kC128:
      return loops.template operator()<ComplexLanes<double>, double>();
    default:
      return {};
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

#endif  // TENSORD_BACKENDS_CPU_LINALG_LANES_DTYPES_INL_H_
