#include "backends/cpu/indexing/kernels.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cpu/indexing/gather_loops.h"
#include "backends/cpu/indexing/window_plan.h"
#include "backends/cpu/layout/strided_copy.h"
#include "backends/cpu/machine/cache_line.h"
#include "backends/cpu/machine/streamed_stores.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/base/refusal.h"
#include "engine/base/rounding.h"
#include "engine/ops/core_ops.h"
#include "engine/ops/index_windows.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kGatherTaskBytes = int64_t{256} << 10;  // as of copies (layout/strided_copy.cc)
constexpr int64_t kLeastStreamedRunBytes = 256;           // shorter rows fill lines of the cache in pieces
// Windows of which an element is picked before the next one: their elements stay in the cache meanwhile.
constexpr int64_t kPickedGatherWindows = 8192;

class GatherKernel final : public Kernel {
 public:
  GatherKernel(WindowPlan plan, int64_t element_bytes)
      : plan_(std::move(plan)),
        element_bytes_(element_bytes),
        loops_(GetGatherLoops(element_bytes)),
        window_(MergeWindowAxes(plan_.window())) {
    if (plan_.num_windows() == 0) return;
    const int64_t elements = plan_.window_elements(), bytes = elements * element_bytes_;
    absl::InlinedVector<CopyAxis, 8> axes;
    for (const WindowAxis& axis : window_) axes.push_back({axis.size, axis.operand_stride, axis.windows_stride});
    copy_ = StridedCopy(axes, element_bytes_);
    windows_per_task_ = std::max<int64_t>(1, kGatherTaskBytes / bytes);
    const bool is_run = elements == 1 || (window_.size() == 1 && window_[0].operand_stride == 1 &&
                                          window_[0].windows_stride == 1 && copy_.num_tasks() == 1);
    if (is_run && plan_.is_lookup()) {
      road_ = Road::kLookups;
      const bool whole_lines = bytes % kLineBytes == 0 && plan_.windows_step() * element_bytes_ % kLineBytes == 0;
      streams_lookups_ =
          whole_lines && bytes >= kLeastStreamedRunBytes && bytes * plan_.num_windows() >= StreamedResultBytes();
    } else if (elements == 1) {
      road_ = Road::kElements;
    } else if (is_run) {
      road_ = Road::kRuns;
    } else if (PicksElements()) {
      road_ = Road::kPicks;
      windows_per_task_ = std::min(plan_.num_windows(), kPickedGatherWindows);
      elements_per_task_ = std::clamp(kGatherTaskBytes / element_bytes_ / windows_per_task_, int64_t{1}, elements);
    } else {
      road_ = Road::kCopies;
    }
  }

  void Run(const KernelArgs& args) const override {
    const char* const operand = static_cast<const char*>(args.operands[0]);
    const void* const indices = args.operands[1];
    char* const result = static_cast<char*>(args.results[0]);
    switch (road_) {
      case Road::kNone:
        return;
      case Road::kLookups:
        return RunLookups(operand, indices, result, args.pool);
      case Road::kPicks:
        return RunPicks(operand, indices, result, args);
      case Road::kElements:
        return OverBlocks(indices, args.pool, [&](const WindowPlan::Starts& starts, int64_t count) {
          loops_.pick_each(operand, result, starts.operand, starts.windows, count);
        });
      case Road::kRuns:
        return OverWindows(indices, args.pool, [&](int64_t from, int64_t into) {
          std::memcpy(result + into * element_bytes_, operand + from * element_bytes_,
                      static_cast<size_t>(plan_.window_elements() * element_bytes_));
        });
      case Road::kCopies:
        if (copy_.num_tasks() > 1) return RunLargeCopies(operand, indices, result, args.pool);
        return OverWindows(indices, args.pool, [&](int64_t from, int64_t into) {
          copy_.Run(operand + from * element_bytes_, result + into * element_bytes_);
        });
    }
  }

  int64_t scratch_bytes() const override { return road_ == Road::kPicks ? plan_.num_windows() * 8 : 0; }

 private:
  enum class Road : uint8_t {
    kNone,
    kLookups,   // windows that are one run of memory, each named by one index: rows of a table, elements
    kElements,  // other windows of one element
    kRuns,      // other windows that are one run
    kPicks,     // an element of many windows, which lie side by side in the result, then the next element
    kCopies,    // windows of any form
  };

  // Successive windows lie closer together in the result than the elements of one.
  bool PicksElements() const {
    return plan_.windows_step() == 1 && window_[0].windows_stride > 1 &&
           (plan_.num_windows() >= 16 || plan_.window_elements() < 16);
  }

  // Calls f(starts, count) for blocks of windows, in tasks.
  template <typename F>
  void OverBlocks(const void* indices, ThreadPool* pool, const F& f) const {
    const auto run = [&](int64_t begin, int64_t end) {
      WindowPlan::Starts starts;
      for (int64_t first = begin; first < end; first += WindowPlan::kBlock) {
        const int64_t count = std::min(WindowPlan::kBlock, end - first);
        plan_.Locate(indices, first, count, -1, &starts);
        f(starts, count);
      }
    };
    if (plan_.num_windows() <= windows_per_task_) return run(0, plan_.num_windows());
    pool->ParallelForBlocks(plan_.num_windows(), windows_per_task_, run);
  }

  // Calls f(start in the operand, start in the result) for each window, in tasks.
  template <typename F>
  void OverWindows(const void* indices, ThreadPool* pool, const F& f) const {
    OverBlocks(indices, pool, [&](const WindowPlan::Starts& starts, int64_t count) {
      for (int64_t i = 0; i < count; ++i) f(starts.operand[i], starts.windows[i]);
    });
  }

  void RunLookups(const char* operand, const void* indices, char* result, ThreadPool* pool) const {
    const WindowPlan::Lookup lookup = plan_.lookup();
    const int64_t index_bytes = SizeOf(plan_.index_dtype());
    const auto run = [&](int64_t begin, int64_t end) {
      CopyRuns({.src = operand,
                .dst = result + begin * plan_.windows_step() * element_bytes_,
                .indices = static_cast<const char*>(indices) + begin * lookup.index_step * index_bytes,
                .count = end - begin,
                .limit = lookup.limit,
                .index_step = lookup.index_step,
                .src_step = lookup.operand_step * element_bytes_,
                .dst_step = plan_.windows_step() * element_bytes_,
                .run_bytes = plan_.window_elements() * element_bytes_,
                .stream = streams_lookups_},
               plan_.index_dtype());
    };
    if (plan_.num_windows() <= windows_per_task_) return run(0, plan_.num_windows());
    pool->ParallelForBlocks(plan_.num_windows(), windows_per_task_, run);
  }

  void RunPicks(const char* operand, const void* indices, char* result, const KernelArgs& args) const {
    const int64_t windows = plan_.num_windows(), elements = plan_.window_elements();
    int64_t* const from = static_cast<int64_t*>(args.scratch);
    const auto locate = [&](int64_t begin, int64_t end) {
      WindowPlan::Starts starts;
      for (int64_t first = begin; first < end; first += WindowPlan::kBlock) {
        const int64_t count = std::min(WindowPlan::kBlock, end - first);
        plan_.Locate(indices, first, count, -1, &starts);
        std::copy_n(starts.operand, count, from + first);
      }
    };
    if (!args.pool->ParallelForBlocks(windows, kPickedGatherWindows, locate)) return;
    const int64_t parts = CeilDiv(elements, elements_per_task_);
    args.pool->ParallelFor(CeilDiv(windows, windows_per_task_) * parts, [&](int64_t task) {
      const int64_t first = task / parts * windows_per_task_, count = std::min(windows_per_task_, windows - first);
      const int64_t begin = task % parts * elements_per_task_, end = std::min(elements, begin + elements_per_task_);
      ForEachElement(window_, begin, end, [&](int64_t operand_at, int64_t result_at) {
        loops_.pick_run(operand + operand_at * element_bytes_, result + (result_at + first) * element_bytes_,
                        from + first, count);
      });
    });
  }

  void RunLargeCopies(const char* operand, const void* indices, char* result, ThreadPool* pool) const {
    pool->ParallelFor(plan_.num_windows() * copy_.num_tasks(), [&](int64_t task) {
      WindowPlan::Starts starts;
      plan_.Locate(indices, task / copy_.num_tasks(), 1, -1, &starts);
      copy_.RunTask(task % copy_.num_tasks(), operand + starts.operand[0] * element_bytes_,
                    result + starts.windows[0] * element_bytes_);
    });
  }

  const WindowPlan plan_;
  const int64_t element_bytes_;
  const GatherLoops& loops_;
  const MergedWindow window_;
  StridedCopy copy_;
  Road road_ = Road::kNone;
  int64_t windows_per_task_ = 1;
  bool streams_lookups_ = false;
  int64_t elements_per_task_ = 1;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeGatherKernel(const BoundInstruction& instruction) {
  if (!Is(*instruction.op, CoreOp::kGather) && !Is(*instruction.op, CoreOp::kGatherDynamicSliceSizes)) {
    return Refuse(Refusal::kUnsupportedOnDevice,
                  absl::StrCat("no gather kernel on cpu for the op ", instruction.op->name));
  }
  const ConcreteType &operand = instruction.operands[0], &indices = instruction.operands[1];
  const WindowAxes axes = WindowAxes::Of(*instruction.attrs, kGatherNames);
  return std::make_unique<GatherKernel>(
      WindowPlan(axes, operand.shape, indices, instruction.results[0].shape, axes.IndicesBatchAxes(indices.rank()),
                 WindowPlan::OutOfBounds::kClamp),
      SizeOf(operand.dtype));
}

}  // namespace tensord::cpu
