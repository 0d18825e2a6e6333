#include "backends/cpu/gather_kernels.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cpu/strided_copy.h"
#include "backends/cpu/thread_pool.h"
#include "backends/cpu/window_plan.h"
#include "engine/base/refusal.h"
#include "engine/ops/core_ops.h"
#include "engine/ops/index_windows.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kTaskBytes = int64_t{256} << 10;

// Unaligned and alias-free access to an element by its width.
template <int kLog2Bytes>
struct Width;
template <>
struct Width<0> {
  typedef uint8_t Word __attribute__((may_alias));
};
template <>
struct Width<1> {
  typedef uint16_t Word __attribute__((may_alias, aligned(1)));
};
template <>
struct Width<2> {
  typedef uint32_t Word __attribute__((may_alias, aligned(1)));
};
template <>
struct Width<3> {
  typedef uint64_t Word __attribute__((may_alias, aligned(1)));
};
template <>
struct Width<4> {
  typedef uint64_t Word __attribute__((vector_size(16), may_alias, aligned(1)));
};

// Elements at `from` of src to successive places of dst.
using PickRun = void (*)(const void* src, void* dst, const int64_t* from, int64_t count);
// Elements at `from` of src to the places `into` of dst.
using PickEach = void (*)(const void* src, void* dst, const int64_t* from, const int64_t* into, int64_t count);
// Elements clamp(indices[i], 0, limit) * stride of src to successive places of dst.
using Lookup = void (*)(const void* src, void* dst, const void* indices, int64_t count, int64_t limit, int64_t stride);

template <typename Word>
void PickRunOf(const void* src, void* dst, const int64_t* from, int64_t count) {
  const Word* const in = static_cast<const Word*>(src);
  Word* const out = static_cast<Word*>(dst);
  for (int64_t i = 0; i < count; ++i) out[i] = in[from[i]];
}

template <typename Word>
void PickEachOf(const void* src, void* dst, const int64_t* from, const int64_t* into, int64_t count) {
  const Word* const in = static_cast<const Word*>(src);
  Word* const out = static_cast<Word*>(dst);
  for (int64_t i = 0; i < count; ++i) out[into[i]] = in[from[i]];
}

template <typename Word, typename Index>
void LookupOf(const void* src, void* dst, const void* indices, int64_t count, int64_t limit, int64_t stride) {
  const Word* const in = static_cast<const Word*>(src);
  const Index* const at = static_cast<const Index*>(indices);
  Word* const out = static_cast<Word*>(dst);
  if (stride == 1) {
    for (int64_t i = 0; i < count; ++i) out[i] = in[std::clamp<int64_t>(at[i], 0, limit)];
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = in[std::clamp<int64_t>(at[i], 0, limit) * stride];
  }
}

struct Loops {
  PickRun pick_run;
  PickEach pick_each;
  Lookup lookup_i32;
  Lookup lookup_i64;
};
template <int kLog2Bytes>
constexpr Loops LoopsOf() {
  using Word = typename Width<kLog2Bytes>::Word;
  return {&PickRunOf<Word>, &PickEachOf<Word>, &LookupOf<Word, int32_t>, &LookupOf<Word, int64_t>};
}
constexpr Loops kLoops[] = {LoopsOf<0>(), LoopsOf<1>(), LoopsOf<2>(), LoopsOf<3>(), LoopsOf<4>()};

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

class GatherKernel final : public Kernel {
 public:
  GatherKernel(WindowPlan plan, int64_t element_bytes)
      : plan_(std::move(plan)),
        element_bytes_(element_bytes),
        loops_(kLoops[std::countr_zero(static_cast<uint64_t>(element_bytes))]),
        window_(MergeWindowAxes(plan_.window())) {
    const int64_t elements = plan_.window_elements(), bytes = elements * element_bytes_;
    if (plan_.num_windows() == 0) return;
    if (plan_.is_element_lookup()) {
      road_ = Road::kLookup;
      windows_per_task_ = kTaskBytes / element_bytes_;
    } else if (elements == 1 || PicksElements()) {
      road_ = Road::kElements;
      const int64_t block = std::min(plan_.num_windows(), WindowPlan::kBlock);
      elements_per_task_ = std::clamp(kTaskBytes / element_bytes_ / block, int64_t{1}, elements);
      windows_per_task_ = std::max(block, kTaskBytes / element_bytes_ / elements_per_task_);
    } else {
      absl::InlinedVector<CopyAxis, 8> axes;
      for (const WindowAxis& axis : window_) axes.push_back({axis.size, axis.operand_stride, axis.windows_stride});
      copy_ = StridedCopy(axes, element_bytes_);
      const bool is_run = window_.size() == 1 && window_[0].operand_stride == 1 && window_[0].windows_stride == 1;
      road_ = is_run && copy_.num_tasks() == 1 ? Road::kRuns : Road::kCopies;
      windows_per_task_ = std::max<int64_t>(1, kTaskBytes / bytes);
    }
  }

  void Run(const KernelArgs& args) const override {
    const char* const operand = static_cast<const char*>(args.operands[0]);
    const void* const indices = args.operands[1];
    char* const result = static_cast<char*>(args.results[0]);
    const auto over_windows = [&](const auto& run) {
      const int64_t windows = plan_.num_windows();
      if (windows <= windows_per_task_) return run(0, windows);
      args.pool->ParallelForBlocks(windows, windows_per_task_, run);
    };
    switch (road_) {
      case Road::kNone:
        return;
      case Road::kLookup:
        return over_windows(
            [&](int64_t begin, int64_t end) { RunLookup(operand, indices, result, begin, end - begin); });
      case Road::kElements:
        return RunElements(operand, indices, result, args.pool);
      case Road::kRuns:
        return over_windows([&](int64_t begin, int64_t end) {
          const size_t bytes = static_cast<size_t>(plan_.window_elements() * element_bytes_);
          ForEachWindow(indices, begin, end, [&](int64_t from, int64_t into) {
            std::memcpy(result + into * element_bytes_, operand + from * element_bytes_, bytes);
          });
        });
      case Road::kCopies:
        if (copy_.num_tasks() == 1) {
          return over_windows([&](int64_t begin, int64_t end) {
            ForEachWindow(indices, begin, end, [&](int64_t from, int64_t into) {
              copy_.Run(operand + from * element_bytes_, result + into * element_bytes_);
            });
          });
        }
        args.pool->ParallelFor(plan_.num_windows() * copy_.num_tasks(), [&](int64_t task) {
          const int64_t window = task / copy_.num_tasks();
          ForEachWindow(indices, window, window + 1, [&](int64_t from, int64_t into) {
            copy_.RunTask(task % copy_.num_tasks(), operand + from * element_bytes_, result + into * element_bytes_);
          });
        });
        return;
    }
  }

 private:
  enum class Road : uint8_t {
    kNone,
    kLookup,    // single elements, everything in one run
    kElements,  // an element of many windows at a time, then the next element
    kRuns,      // windows that are one run of memory
    kCopies,    // windows of any form
  };

  // Successive windows lie closer together in the result than the elements of one.
  bool PicksElements() const {
    const int64_t step = plan_.windows_step();
    return step > 0 && step < window_[0].windows_stride && (plan_.num_windows() >= 16 || plan_.window_elements() < 16);
  }

  template <typename F>
  void ForEachWindow(const void* indices, int64_t begin, int64_t end, const F& f) const {
    WindowPlan::Starts starts;
    for (int64_t first = begin; first < end; first += WindowPlan::kBlock) {
      const int64_t count = std::min(WindowPlan::kBlock, end - first);
      plan_.Locate(indices, first, count, -1, &starts);
      for (int64_t i = 0; i < count; ++i) f(starts.operand[i], starts.windows[i]);
    }
  }

  void RunLookup(const char* operand, const void* indices, char* result, int64_t begin, int64_t count) const {
    const bool is_i32 = plan_.index_dtype() == DType::kI32;
    (is_i32 ? loops_.lookup_i32 : loops_.lookup_i64)(operand, result + begin * element_bytes_,
                                                     static_cast<const char*>(indices) + begin * (is_i32 ? 4 : 8),
                                                     count, plan_.lookup_limit(), plan_.lookup_stride());
  }

  void RunElements(const char* operand, const void* indices, char* result, ThreadPool* pool) const {
    const int64_t windows = plan_.num_windows(), elements = plan_.window_elements();
    const int64_t parts = CeilDiv(elements, elements_per_task_), tasks = CeilDiv(windows, windows_per_task_) * parts;
    const auto run = [&](int64_t task) {
      const int64_t begin = task / parts * windows_per_task_, end = std::min(windows, begin + windows_per_task_);
      const int64_t first_element = task % parts * elements_per_task_;
      const int64_t end_element = std::min(elements, first_element + elements_per_task_);
      WindowPlan::Starts starts;
      for (int64_t first = begin; first < end; first += WindowPlan::kBlock) {
        const int64_t count = std::min(WindowPlan::kBlock, end - first);
        plan_.Locate(indices, first, count, -1, &starts);
        ForEachElement(window_, first_element, end_element, [&](int64_t from, int64_t into) {
          const char* const src = operand + from * element_bytes_;
          char* const dst = result + into * element_bytes_;
          if (plan_.windows_step() == 1) {
            loops_.pick_run(src, dst + starts.windows[0] * element_bytes_, starts.operand, count);
          } else {
            loops_.pick_each(src, dst, starts.operand, starts.windows, count);
          }
        });
      }
    };
    if (tasks == 1) return run(0);
    pool->ParallelFor(tasks, run);
  }

  const WindowPlan plan_;
  const int64_t element_bytes_;
  const Loops& loops_;
  const MergedWindow window_;
  Road road_ = Road::kNone;
  StridedCopy copy_;
  int64_t windows_per_task_ = 1;
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
