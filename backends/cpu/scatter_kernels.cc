#include "backends/cpu/scatter_kernels.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cpu/scatter_loops.h"
#include "backends/cpu/strided_copy.h"
#include "backends/cpu/thread_pool.h"
#include "backends/cpu/window_plan.h"
#include "engine/base/refusal.h"
#include "engine/ops/core_ops.h"
#include "engine/ops/index_windows.h"
#include "engine/ops/scattering.h"

namespace tensord::cpu {
namespace {

// Updates of fewer bytes are not worth a second thread.
constexpr int64_t kSerialBytes = int64_t{32} << 10;

// The result is cut into slabs along one axis of the operand. Whoever has a slab looks at every index vector, in index
// order, and applies what falls into the slab. So each element takes its updates in index order, and its bits do not
// depend on how many slabs there are.
class ScatterKernel final : public Kernel {
 public:
  ScatterKernel(WindowPlan plan, const ConcreteType& operand, ScatterLoops loops)
      : plan_(std::move(plan)),
        element_bytes_(SizeOf(operand.dtype)),
        loops_(loops),
        copy_({{{operand.num_elements(), 1, 1}}}, element_bytes_),
        whole_window_(MergeWindowAxes(plan_.window())) {
    if (plan_.num_windows() == 0) return;
    ChooseSlabAxis(operand.shape);
    cut_window_ = MergeWindowAxes(plan_.window(), slab_axis_);
    for (size_t k = 0; k < cut_window_.size(); ++k) {
      if (cut_window_[k].operand_axis == slab_axis_) cut_ = static_cast<int>(k);
    }
    picks_elements_ = PicksElements();
  }

  void Run(const KernelArgs& args) const override {
    const char* const operand = static_cast<const char*>(args.operands[0]);
    char* const result = static_cast<char*>(args.results[0]);
    args.pool->ParallelFor(copy_.num_tasks(), [&](int64_t task) { copy_.RunTask(task, operand, result); });
    if (plan_.num_windows() == 0) return;
    const char* const updates = static_cast<const char*>(args.operands[2]);
    const int64_t slabs = NumSlabs(args.pool->threads());
    if (slabs == 1) return Apply(args.operands[1], updates, result, -1, 0, slab_size_);
    args.pool->ParallelFor(slabs, [&](int64_t slab) {
      const auto edge = [&](int64_t k) { return slab_size_ / slabs * k + std::min(k, slab_size_ % slabs); };
      Apply(args.operands[1], updates, result, slab_axis_, edge(slab), edge(slab + 1));
    });
  }

 private:
  // The axis along which threads part the result: best one that is a batch axis or lies whole in every window, because
  // then nobody waits for the owner of an index that is named often.
  void ChooseSlabAxis(const Shape& operand) {
    int64_t indexed = -1, whole = -1, batching = -1;
    for (int64_t axis = 0; axis < static_cast<int64_t>(operand.size()); ++axis) {
      if (operand[static_cast<size_t>(axis)] < 2) continue;
      if (plan_.IsBatching(axis)) batching = axis;
      if (plan_.IsIndexed(axis)) indexed = axis;
    }
    for (const WindowAxis& axis : plan_.window()) {
      if (plan_.IsIndexed(axis.operand_axis)) continue;
      const int64_t run_bytes = axis.operand_stride == 1 ? axis.size * element_bytes_ : kWorthCuttingBytes;
      if (run_bytes >= kWorthCuttingBytes) whole = axis.operand_axis;
    }
    for (int64_t axis : {indexed, whole, batching}) {
      if (axis < 0) continue;
      slab_axis_ = axis;
      slab_size_ = operand[static_cast<size_t>(axis)];
      balanced_ = axis != indexed;
    }
  }

  // A row that is cut in two should have this much.
  static constexpr int64_t kWorthCuttingBytes = 512;

  // Elements of windows may be taken one after the other only where no two windows overlap in different elements.
  bool PicksElements() const {
    if (plan_.window_elements() == 1) return true;
    for (const WindowAxis& axis : plan_.window()) {
      if (plan_.IsIndexed(axis.operand_axis)) return false;
    }
    const int64_t step = plan_.windows_step();
    return step > 0 && step < plan_.window()[0].windows_stride;
  }

  int64_t NumSlabs(int threads) const {
    const int64_t bytes = plan_.num_windows() * plan_.window_elements() * element_bytes_;
    if (threads <= 1 || slab_axis_ < 0 || bytes < kSerialBytes) return 1;
    // Where looking at an index costs little beside its window, more slabs even out indices that are named often.
    const bool looks_are_cheap = balanced_ || plan_.window_elements() >= 16;
    return std::min<int64_t>(slab_size_, int64_t{threads} * (looks_are_cheap ? 4 : 1));
  }

  // Applies what falls into [low, high) along the axis; -1: everything.
  void Apply(const void* indices, const char* updates, char* result, int64_t axis, int64_t low, int64_t high) const {
    MergedWindow window = axis < 0 ? whole_window_ : cut_window_;
    const bool cuts_window = axis >= 0 && cut_ >= 0;
    WindowAxis* const cut = cuts_window ? &window[static_cast<size_t>(cut_)] : nullptr;
    const int64_t extent = cuts_window ? cut->size : 1;
    WindowPlan::Starts starts;
    for (int64_t first = 0; first < plan_.num_windows(); first += WindowPlan::kBlock) {
      const int64_t count = std::min(WindowPlan::kBlock, plan_.num_windows() - first);
      plan_.Locate(indices, first, count, axis, &starts);
      int64_t kept = 0;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t along = axis < 0 ? 0 : starts.along[i];
        starts.operand[kept] = starts.operand[i];
        starts.windows[kept] = starts.windows[i];
        starts.along[kept] = along;
        const bool inside = axis < 0 || ((along < high) & (along > low - extent));
        kept += (starts.operand[i] >= 0) & inside;
      }
      if (picks_elements_) {
        const int64_t begin = cuts_window ? low : 0;
        if (cuts_window) cut->size = std::min(high, extent) - low;
        if (cuts_window && cut->size <= 0) return;
        ApplyElements(window, begin, cut, starts, kept, updates, result);
        if (cuts_window) cut->size = extent;
        continue;
      }
      for (int64_t i = 0; i < kept; ++i) {
        int64_t into = starts.operand[i], from = starts.windows[i];
        if (cuts_window) {
          const int64_t begin = std::max<int64_t>(0, low - starts.along[i]);
          cut->size = std::min(extent, high - starts.along[i]) - begin;
          into += begin * cut->operand_stride;
          from += begin * cut->windows_stride;
        }
        ApplyRows(window, into, from, updates, result);
      }
      if (cuts_window) cut->size = extent;
    }
  }

  void ApplyElements(const MergedWindow& window, int64_t begin, const WindowAxis* cut, const WindowPlan::Starts& starts,
                     int64_t count, const char* updates, char* result) const {
    int64_t elements = 1;
    for (const WindowAxis& axis : window) elements *= axis.size;
    const int64_t into_begin = cut == nullptr ? 0 : begin * cut->operand_stride;
    const int64_t from_begin = cut == nullptr ? 0 : begin * cut->windows_stride;
    ForEachElement(window, 0, elements, [&](int64_t into, int64_t from) {
      loops_.each(result + (into_begin + into) * element_bytes_, updates + (from_begin + from) * element_bytes_,
                  starts.operand, starts.windows, count);
    });
  }

  void ApplyRows(const MergedWindow& window, int64_t into, int64_t from, const char* updates, char* result) const {
    const absl::Span<const WindowAxis> outer = absl::MakeConstSpan(window).subspan(1);
    int64_t rows = 1;
    for (const WindowAxis& axis : outer) rows *= axis.size;
    ForEachElement(outer, 0, rows, [&](int64_t row_into, int64_t row_from) {
      loops_.row(result + (into + row_into) * element_bytes_, updates + (from + row_from) * element_bytes_,
                 window[0].size, window[0].operand_stride, window[0].windows_stride);
    });
  }

  const WindowPlan plan_;
  const int64_t element_bytes_;
  const ScatterLoops loops_;
  const StridedCopy copy_;
  const MergedWindow whole_window_;
  MergedWindow cut_window_;  // with the slabs' axis by itself
  int64_t slab_axis_ = -1;
  int64_t slab_size_ = 0;
  bool balanced_ = false;
  int cut_ = -1;  // which axis of cut_window_ is the slabs', -1: windows have size 1 along it
  bool picks_elements_ = false;
};

// Whether the order of updates shows in no bit.
bool OrderIsFree(ScatterCombiner combiner, DType dtype) {
  return combiner != ScatterCombiner::kSet && (kIntegers | kBoolOnly).Contains(dtype);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeScatterKernel(const BoundInstruction& instruction) {
  if (!Is(*instruction.op, CoreOp::kScatter)) {
    return Refuse(Refusal::kUnsupportedOnDevice,
                  absl::StrCat("no scatter kernel on cpu for the op ", instruction.op->name));
  }
  const ConcreteType &operand = instruction.operands[0], &indices = instruction.operands[1];
  const WindowAxes axes = WindowAxes::Of(*instruction.attrs, kScatterNames);
  const auto combiner = static_cast<ScatterCombiner>(instruction.attrs->Int("combiner"));
  const std::vector<int64_t> order = OrderIsFree(combiner, operand.dtype)
                                         ? axes.IndicesBatchAxes(indices.rank())
                                         : ScatterIndexOrder(*instruction.attrs, indices.rank());
  return std::make_unique<ScatterKernel>(
      WindowPlan(axes, operand.shape, indices, instruction.operands[2].shape, order, WindowPlan::OutOfBounds::kSkip),
      operand, GetScatterLoops(combiner, operand.dtype));
}

}  // namespace tensord::cpu
