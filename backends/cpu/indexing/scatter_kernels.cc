#include "backends/cpu/indexing/kernels.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cpu/indexing/scatter_loops.h"
#include "backends/cpu/indexing/scatter_rows.h"
#include "backends/cpu/indexing/window_plan.h"
#include "backends/cpu/layout/strided_copy.h"
#include "backends/cpu/machine/cache_line.h"
#include "backends/cpu/machine/streamed_stores.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/base/refusal.h"
#include "engine/base/stop_signal.h"
#include "engine/ops/core_ops.h"
#include "engine/ops/index_windows.h"
#include "engine/ops/scattering.h"

namespace tensord::cpu {
namespace {

// Updates of fewer bytes are not worth a second thread.
constexpr int64_t kSerialBytes = int64_t{32} << 10;
// The least bytes that a slab should have of a cut run.
constexpr int64_t kLeastScatterRunBytes = 256;
// The rows of windows lie anywhere; asked for so many windows ahead they arrive in time.
constexpr int64_t kWindowsAhead = 8;
// Windows of which an element is taken before the next one: their places stay in the cache meanwhile.
constexpr int64_t kPickedScatterWindows = 4096;

// The result is cut into slabs along one axis of the operand. The owner of a slab looks at every index vector, in index
// order, and applies the updates that fall into the slab. So each element takes its updates in index order, and its
// bits do not depend on the number of slabs.
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
    if (copy_.dst_bytes() >= StreamedResultBytes()) {
      rows_ = ScatterRows::Create(plan_, operand.num_elements(), element_bytes_, loops_);
    }
  }

  void Run(const KernelArgs& args) const override {
    const char* const operand = static_cast<const char*>(args.operands[0]);
    char* const result = static_cast<char*>(args.results[0]);
    if (rows_.has_value() && result != operand &&
        rows_->Run({args.operands[1], operand, static_cast<const char*>(args.operands[2]), result}, args.scratch,
                   args.pool)) {
      return;
    }
    if (result != operand &&
        !args.pool->ParallelFor(copy_.num_tasks(), [&](int64_t task) { copy_.RunTask(task, operand, result); })) {
      return;
    }
    if (plan_.num_windows() == 0) return;
    const Call call = {args.operands[1], static_cast<const char*>(args.operands[2]), result};
    const int64_t slabs = NumSlabs(args.pool->threads());
    const auto edge = [&](int64_t k) { return slab_size_ / slabs * k + std::min(k, slab_size_ % slabs); };
    if (picks_elements_ && plan_.window_elements() > 1 && (slabs == 1 || cut_ >= 0)) {
      const Places places = FindPlaces(call, static_cast<int64_t*>(args.scratch));
      if (slabs == 1) return PickElements(call, whole_window_, places, 0, 0);
      args.pool->ParallelFor(slabs, [&](int64_t slab) { PickSlab(call, places, edge(slab), edge(slab + 1)); });
      return;
    }
    if (slabs == 1) return Apply(call, -1, 0, 0);
    args.pool->ParallelFor(slabs, [&](int64_t slab) { Apply(call, slab_axis_, edge(slab), edge(slab + 1)); });
  }

  int64_t scratch_bytes() const override {
    const int64_t picked = picks_elements_ && plan_.window_elements() > 1 ? 16 * plan_.num_windows() : 0;
    return std::max(picked, rows_.has_value() ? rows_->scratch_bytes() : 0);
  }

 private:
  // Chooses the axis along which threads part the result. Best is a batch axis, or one that lies whole in every window:
  // then nobody waits for the owner of an index that is named often.
  void ChooseSlabAxis(const Shape& operand) {
    const auto choose = [&](int64_t axis, bool balanced, int64_t least_size) {
      slab_axis_ = axis;
      slab_size_ = operand[static_cast<size_t>(axis)];
      max_slabs_ = slab_size_ / least_size;
      balanced_ = balanced;
    };
    const auto choose_last = [&](bool (WindowPlan::*is)(int64_t) const, bool balanced) {
      for (int64_t axis = static_cast<int64_t>(operand.size()) - 1; axis >= 0; --axis) {
        if (operand[static_cast<size_t>(axis)] > 1 && (plan_.*is)(axis)) return choose(axis, balanced, 1);
      }
    };
    choose_last(&WindowPlan::IsIndexed, false);
    for (const WindowAxis& axis : plan_.window()) {
      if (plan_.IsIndexed(axis.operand_axis)) continue;
      const int64_t least_size =
          axis.operand_stride == 1 ? std::max<int64_t>(1, kLeastScatterRunBytes / element_bytes_) : 1;
      if (axis.size >= 2 * least_size) choose(axis.operand_axis, true, least_size);
    }
    choose_last(&WindowPlan::IsBatching, true);
  }

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
    // If looking at an index costs little beside its window, more slabs even out indices that are named often.
    const bool evens_out = !balanced_ && plan_.window_elements() >= 64;
    return std::min<int64_t>(max_slabs_, int64_t{threads} * (evens_out ? 2 : 1));
  }

  struct Call {
    const void* indices;
    const char* updates;
    char* result;
  };

  // The starts of the windows that fit, in index order.
  struct Places {
    const int64_t* into;
    const int64_t* from;
    int64_t count;
  };

  Places FindPlaces(const Call& call, int64_t* scratch) const {
    int64_t* const into = scratch;
    int64_t* const from = scratch + plan_.num_windows();
    int64_t kept = 0;
    ForEachBlock(call.indices, -1, [&](const WindowPlan::Starts& starts, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        into[kept] = starts.operand[i];
        from[kept] = starts.windows[i];
        kept += starts.operand[i] >= 0;
      }
    });
    return {into, from, kept};
  }

  template <typename F>
  void ForEachBlock(const void* indices, int64_t along, const F& f) const {
    WindowPlan::Starts starts;
    for (int64_t first = 0; first < plan_.num_windows() && !StopRequested(); first += WindowPlan::kBlock) {
      const int64_t count = std::min(WindowPlan::kBlock, plan_.num_windows() - first);
      plan_.Locate(indices, first, count, along, &starts);
      f(starts, count);
    }
  }

  // Picks the part in [low, high) of windows that are whole along the slabs' axis.
  void PickSlab(const Call& call, const Places& places, int64_t low, int64_t high) const {
    MergedWindow window = cut_window_;
    WindowAxis& cut = window[static_cast<size_t>(cut_)];
    cut.size = std::min(high, cut.size) - low;
    if (cut.size > 0) PickElements(call, window, places, low * cut.operand_stride, low * cut.windows_stride);
  }

  // An element of many windows, then the next one.
  void PickElements(const Call& call, const MergedWindow& window, const Places& places, int64_t into,
                    int64_t from) const {
    int64_t elements = 1;
    for (const WindowAxis& axis : window) elements *= axis.size;
    for (int64_t first = 0; first < places.count && !StopRequested(); first += kPickedScatterWindows) {
      const int64_t count = std::min(kPickedScatterWindows, places.count - first);
      ForEachElement(window, 0, elements, [&](int64_t element_into, int64_t element_from) {
        loops_.each(call.result + (into + element_into) * element_bytes_,
                    call.updates + (from + element_from) * element_bytes_, places.into + first, places.from + first,
                    count);
      });
    }
  }

  // Applies the updates that fall into [low, high) along the axis; -1: all.
  void Apply(const Call& call, int64_t axis, int64_t low, int64_t high) const {
    if (plan_.window_elements() == 1 && plan_.is_lookup()) {
      return plan_.index_dtype() == DType::kI32 ? ApplyLookups<int32_t>(call, axis, low, high)
                                                : ApplyLookups<int64_t>(call, axis, low, high);
    }
    MergedWindow window = axis < 0 ? whole_window_ : cut_window_;
    WindowAxis* const cut = axis >= 0 && cut_ >= 0 ? &window[static_cast<size_t>(cut_)] : nullptr;
    const int64_t extent = cut != nullptr ? cut->size : 1;
    ForEachBlock(call.indices, axis, [&](WindowPlan::Starts& starts, int64_t count) {
      int64_t kept = 0;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t along = axis < 0 ? 0 : starts.along[i];
        starts.operand[kept] = starts.operand[i];
        starts.windows[kept] = starts.windows[i];
        starts.along[kept] = along;
        const bool inside = axis < 0 || ((along < high) & (along > low - extent));
        kept += (starts.operand[i] >= 0) & inside;
      }
      if (picks_elements_) return PickElements(call, window, {starts.operand, starts.windows, kept}, 0, 0);
      for (int64_t i = 0; i < kept; ++i) {
        int64_t into = starts.operand[i], from = starts.windows[i];
        if (cut != nullptr) {
          const int64_t begin = std::max<int64_t>(0, low - starts.along[i]);
          cut->size = std::min(extent, high - starts.along[i]) - begin;
          into += begin * cut->operand_stride;
          from += begin * cut->windows_stride;
        }
        if (i + kWindowsAhead < kept) {
          const int64_t next = i + kWindowsAhead;
          const int64_t skipped =
              cut != nullptr ? std::max<int64_t>(0, low - starts.along[next]) * cut->operand_stride : 0;
          Prefetch(window, starts.operand[next] + skipped, call.result);
        }
        ApplyRows(window, into, from, call.updates, call.result);
      }
    });
  }

  void Prefetch(const MergedWindow& window, int64_t into, const char* result) const {
    const WindowAxis& row = window[0];
    const int64_t bytes = row.operand_stride == 1 ? std::min(row.size * element_bytes_, kPrefetchedBytes) : 1;
    const char* const first = result + into * element_bytes_;
    for (int64_t line = 0; line < bytes; line += kLineBytes) __builtin_prefetch(first + line, 1);
  }

  // Windows of one element, each named by one index.
  template <typename Index>
  void ApplyLookups(const Call& call, int64_t axis, int64_t low, int64_t high) const {
    const WindowPlan::Lookup lookup = plan_.lookup();
    const int64_t begin = axis < 0 ? 0 : low, end = axis < 0 ? lookup.limit + 1 : high;
    const Index* const indices = static_cast<const Index*>(call.indices);
    int64_t into[WindowPlan::kBlock], from[WindowPlan::kBlock];
    for (int64_t first = 0; first < plan_.num_windows() && !StopRequested(); first += WindowPlan::kBlock) {
      const int64_t count = std::min(WindowPlan::kBlock, plan_.num_windows() - first);
      int64_t kept = 0;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t index = indices[(first + i) * lookup.index_step];
        into[kept] = static_cast<int64_t>(static_cast<uint64_t>(index) * static_cast<uint64_t>(lookup.operand_step));
        from[kept] = (first + i) * plan_.windows_step();
        kept += (index >= begin) & (index < end);
      }
      loops_.each(call.result, call.updates, into, from, kept);
    }
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
  int64_t max_slabs_ = 1;
  bool balanced_ = false;
  int cut_ = -1;  // which axis of cut_window_ is the slabs', -1: windows have size 1 along it
  bool picks_elements_ = false;
  std::optional<ScatterRows> rows_;  // a way for large results
};

// Tells whether the order of updates changes no bit.
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
