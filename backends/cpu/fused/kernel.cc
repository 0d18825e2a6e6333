#include "backends/cpu/fused/kernel.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cpu/fused/make_plan.h"
#include "backends/cpu/fused/task.h"
#include "backends/cpu/machine/thread_pool.h"
#include "backends/cpu/reduce/first_extreme_kernel.h"
#include "engine/base/refusal.h"
#include "engine/base/rounding.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"

namespace tensord::cpu {
namespace {

class FusedKernel final : public Kernel {
 public:
  explicit FusedKernel(FusedPlan plan) : plan_(std::move(plan)) {}

  int64_t scratch_bytes() const override {
    const int64_t tasks = plan_.needs_scratch ? std::max<int64_t>(1, plan_.num_tasks()) : 0;
    return plan_.shared_bytes() + plan_.partials_bytes() + tasks * plan_.task_bytes;
  }

  std::string Describe() const override {
    std::string text = absl::StrCat("tiles of ", plan_.tile_elements, " elements");
    if (plan_.stages.size() > 1) absl::StrAppend(&text, ", ", plan_.stages.size(), " stages");
    if (plan_.rows) absl::StrAppend(&text, ", all stages of a row at once");
    if (plan_.is_split) absl::StrAppend(&text, ", ", plan_.num_parts, " parts a group");
    if (plan_.code != nullptr) absl::StrAppend(&text, ", ", plan_.code->code_bytes(), " bytes of code");
    if (plan_.num_tasks() > 1) absl::StrAppend(&text, ", ", plan_.num_tasks(), " tasks");
    return text;
  }

  void Run(const KernelArgs& args) const override {
    if (!plan_.uniform_stores.empty()) {
      WithTask(args, 0, [](FusedTask& task) { task.StoreUniform(); });
    }
    if (plan_.is_split) return RunSplit(args);
    ForEachTask(args, [&](FusedTask& task, int64_t begin, int64_t end) {
      if (plan_.space.is_map()) return task.RunTiles(plan_.stages[0].tile, begin, end);
      if (plan_.rows) return task.RunRows(begin, end);
      for (int64_t group = begin; group < end && !StopRequested(); ++group) {
        task.StartGroup(group);
        task.RunGroup();
      }
    });
  }

 private:
  template <typename Body>
  void WithTask(const KernelArgs& args, int64_t index, const Body& body) const {
    if (plan_.needs_scratch) {
      char* const tasks = static_cast<char*>(args.scratch) + plan_.shared_bytes() + plan_.partials_bytes();
      FusedTask task(plan_, args, tasks + index * plan_.task_bytes);
      return body(task);
    }
    alignas(64) char memory[kStackBytes];
    FusedTask task(plan_, args, memory);
    body(task);
  }

  // Calls body(task, begin, end) with the items of each task.
  template <typename Body>
  void ForEachTask(const KernelArgs& args, const Body& body) const {
    const auto run = [&](int64_t index) {
      const int64_t begin = index * plan_.items_per_task;
      const int64_t end = std::min(plan_.num_items, begin + plan_.items_per_task);
      WithTask(args, index, [&](FusedTask& task) { body(task, begin, end); });
    };
    const int64_t tasks = plan_.num_tasks();
    if (tasks == 1) {
      run(0);
    } else {
      // A task of one group is as long as the group.
      const bool is_short = plan_.space.is_map() || plan_.is_split || plan_.items_per_task > 1;
      args.pool->ParallelFor(tasks, run, is_short ? TaskCost::kShort : TaskCost::kUnknown);
    }
  }

  // Few groups with many points each: stage by stage, all parts of all groups.
  void RunSplit(const KernelArgs& args) const {
    char* const partials = static_cast<char*>(args.scratch) + plan_.shared_bytes();
    const int64_t last = static_cast<int64_t>(plan_.stages.size()) - 1;
    for (int64_t stage = 0; stage <= last; ++stage) {
      BeginStage(args, stage, partials);
      if (plan_.stages[static_cast<size_t>(stage)].tile.empty()) continue;
      ForEachTask(args, [&](FusedTask& task, int64_t begin, int64_t end) {
        for (int64_t item = begin; item < end && !StopRequested(); ++item) {
          const int64_t group = item / plan_.num_parts, part = item % plan_.num_parts;
          task.StartGroup(group);
          task.RunPart(stage, ShareBegin(plan_.space.num_tiles(), plan_.num_parts, part),
                       ShareBegin(plan_.space.num_tiles(), plan_.num_parts, part + 1),
                       partials + item * plan_.partial_bytes);
        }
      });
      if (StopRequested()) return;
    }
  }

  // Joins the folds of the stage before, and computes the kept values that follow from them.
  void BeginStage(const KernelArgs& args, int64_t index, const char* partials) const {
    const FusedStage& stage = plan_.stages[static_cast<size_t>(index)];
    if (stage.finishes.empty() && stage.kept.empty() && stage.stores.empty()) return;
    WithTask(args, 0, [&](FusedTask& task) {
      for (int64_t group = 0; group < plan_.space.num_groups(); ++group) {
        task.StartGroup(group);
        if (!stage.finishes.empty()) {
          task.JoinParts(index - 1, partials + group * plan_.num_parts * plan_.partial_bytes);
        }
        task.RunKept(index);
      }
    });
  }

  const FusedPlan plan_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeFusedKernel(const BoundInstruction& instruction, const JitOptions& jit) {
  if (instruction.micro == nullptr) {
    return Refuse(Refusal::kInternal, "a fused instruction reached the CPU without its micro program");
  }
  if (std::unique_ptr<Kernel> kernel = MakeFirstExtremeKernel(*instruction.micro)) return kernel;
  ASSIGN_OR_RETURN(FusedPlan plan, MakeFusedPlan(*instruction.micro, jit));
  return std::make_unique<FusedKernel>(std::move(plan));
}

}  // namespace tensord::cpu
