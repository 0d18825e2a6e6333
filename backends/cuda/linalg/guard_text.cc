#include "backends/cuda/linalg/guard_text.h"

#include "backends/cuda/linalg/matrix_text.h"
#include "engine/base/rounding.h"

namespace tensord::cuda {
namespace {

constexpr int64_t kGuardPartElements = 4096;  // of a matrix, that a block looks through
constexpr char kGuardParameters[] = "const T* a, T* into, int* is_broken, u64* largest";

constexpr char kGuardClear[] = R"(    is_broken[i] = 0;
    largest[i] = 0;)";

// Numbers that are not negative are in the order of their bits, so that the order of the blocks does not matter.
constexpr char kGuardSurvey[] = R"(    const i64 b = i / kParts, begin = i % kParts * kGuardPartElements;
    const i64 end = begin + kGuardPartElements < kElements ? begin + kGuardPartElements : kElements;
    const T* from = a + b * kElements;
    R most = 0;
    int broken = 0;
    for (i64 e = begin + threadIdx.x; e < end; e += kThreads) {
      if (kOnlyLower && e % kRows < e / kRows) continue;
      if (!IsFinite(from[e])) broken = 1;
      most = fmax(most, Most(from[e]));
    }
    if (broken) atomicOr(is_broken + b, 1);
    if (kScales && !broken && most > 0) atomicMax(largest + b, (u64)__double_as_longlong((f64)most));)";

constexpr char kGuardLoad[] =
    R"(    const i64 b = i / kElements, e = i % kElements, row = e % kRows, column = e / kRows;
    T x = Number(0, 0);
    if (is_broken[b] && !kKeepsBroken) {
      if (row == column) x = Number(1, 0);
    } else if (!kOnlyLower || row >= column) {
      x = kScales ? Times(a[i], ScaleOf(largest[b])) : a[i];
    }
    into[kTurns ? b * kElements + column + row * kColumns : i] = kTurns ? Conj(x) : x;)";

}  // namespace

KernelText MatrixGuardText(const MatrixGuard& guard, int64_t most_blocks) {
  const int64_t elements = guard.rows * guard.columns, parts = CeilDiv(elements, kGuardPartElements);
  MatrixText text(guard.dtype, most_blocks);
  text.Constant("kRows", guard.rows);
  text.Constant("kColumns", guard.columns);
  text.Constant("kElements", elements);
  text.Constant("kGuardPartElements", kGuardPartElements);
  text.Constant("kParts", parts);
  text.Constant("kOnlyLower", guard.only_lower ? 1 : 0);
  text.Constant("kTurns", guard.turns ? 1 : 0);
  text.Constant("kScales", guard.scales ? 1 : 0);
  text.Constant("kKeepsBroken", guard.keeps_broken ? 1 : 0);
  text.Add(kScaleOfText);
  text.Each("guard_clear", kGuardParameters, guard.batch, kGuardClear);
  text.EachByBlock("guard_survey", kGuardParameters, guard.batch * parts, kGuardSurvey);
  text.Each("guard_load", kGuardParameters, guard.batch * elements, kGuardLoad);
  return text.Take();
}

}  // namespace tensord::cuda
