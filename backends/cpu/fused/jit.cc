#include "backends/cpu/fused/jit.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "backends/cpu/fused/translation.h"
#include "backends/cpu/jit/compiler.h"

namespace tensord::cpu {
namespace {

// A run takes a few milliseconds to compile, and has far more than registers hold anyway.
constexpr size_t kMaxRunNodes = 1000;
constexpr size_t kMaxArrays = 48;

bool SaysOnlyWhere(const FusedStep& step) {
  return step.kind == FusedStepKind::kLoad || step.kind == FusedStepKind::kNumbers ||
         step.kind == FusedStepKind::kSaved || step.kind == FusedStepKind::kOpen;
}

// Returns true for steps that only read, and may as well do so later.
bool CanWait(const FusedStep& step) { return step.kind == FusedStepKind::kClose || step.kind == FusedStepKind::kFold; }

class RunFormer {
 public:
  RunFormer(JitIsa isa, JitOptions::Use use, FusedPlan* plan) : use_(use), plan_(*plan), nodes_(isa, *plan) {
    nodes_.AddRepeats(plan_.repeats);
    for (const FusedStage& stage : plan_.stages) nodes_.AddRepeats(stage.repeats);
  }

  void Form(std::vector<FusedStep>* steps) {
    opened_.clear();
    for (const FusedStep& step : *steps) {
      if (step.kind == FusedStepKind::kLoad) loads_[step.out] = step.access;
      if (step.kind == FusedStepKind::kOpen) opened_[step.out] = step.access;
    }
    std::vector<FusedStep> formed;
    for (size_t i = 0; i < steps->size();) i = FormOne(*steps, i, &formed);
    for (FusedStep& step : formed) {
      if (step.kind == FusedStepKind::kClose && direct_.contains(step.a)) step.buffer = {};
    }
    *steps = std::move(formed);
  }

  // Drops repetitions that nothing reads any more.
  void DropRepeats() {
    absl::flat_hash_set<PlaceId> read;
    const auto add = [&](const std::vector<FusedStep>& steps) {
      for (const FusedStep& step : steps) {
        if (step.kind != FusedStepKind::kRun) read.insert({step.a, step.b, step.c});
      }
    };
    for (const FusedRun& run : plan_.runs) read.insert(run.reads.begin(), run.reads.end());
    add(plan_.uniform);
    add(plan_.uniform_stores);
    for (const FusedStage& stage : plan_.stages) {
      for (const auto* steps : {&stage.kept, &stage.stores, &stage.tile}) add(*steps);
    }
    const auto drop = [&](std::vector<FusedStep>* repeats) {
      const auto end = std::remove_if(repeats->begin(), repeats->end(), [&](const FusedStep& step) {
        if (!step.over_tile || !step.single_a || read.contains(step.out)) return false;
        plan_.places[step.out].bytes = 0;
        return true;
      });
      repeats->erase(end, repeats->end());
    };
    drop(&plan_.repeats);
    for (FusedStage& stage : plan_.stages) drop(&stage.repeats);
  }

 private:
  // From steps[begin] on; returns where the next run may begin.
  size_t FormOne(const std::vector<FusedStep>& steps, size_t begin, std::vector<FusedStep>* formed) {
    nodes_.Start(FusedTranslation::Values::kArrays);
    std::vector<size_t> members;
    std::vector<FusedStep> waiting;
    std::vector<FusedStep> kept;  // as they were, in case the run does not pay
    size_t end = begin;
    for (; end < steps.size(); ++end) {
      const FusedStep& step = steps[end];
      if (SaysOnlyWhere(step)) {
        formed->push_back(step);
      } else if (CanWait(step)) {
        waiting.push_back(step);
        kept.push_back(step);
      } else if (nodes_.program().nodes.size() < kMaxRunNodes && nodes_.num_arrays() < kMaxArrays && nodes_.Add(step)) {
        members.push_back(end);
        kept.push_back(step);
      } else {
        break;
      }
    }
    const bool is_one = end == begin || members.empty() || !Pays(members.size());
    if (is_one) {
      formed->insert(formed->end(), kept.begin(), kept.end());
    } else {
      Finish(steps, begin, end, members, formed);
      formed->insert(formed->end(), waiting.begin(), waiting.end());
    }
    if (end < steps.size() && members.empty()) formed->push_back(steps[end++]);
    return end;
  }

  // Calls of functions a vector at a time cost about as much as two values between steps; past the cache, only storing
  // at once counts.
  bool Pays(size_t members) const {
    if (use_ == JitOptions::Use::kAlways) return true;
    const auto is_call = [](const JitNode& node) { return node.call != nullptr; };
    const auto streams = [](const FusedAccess& access) { return access.may_stream; };
    const JitNodes& nodes = nodes_.program().nodes;
    const size_t calls = static_cast<size_t>(std::count_if(nodes.begin(), nodes.end(), is_call));
    const bool is_big = std::any_of(plan_.accesses.begin(), plan_.accesses.end(), streams);
    if (is_big && plan_.space.is_map()) return members > 1;
    if (is_big && calls == 0) return members > 0;
    return members > 1 + 2 * calls;
  }

  void Finish(const std::vector<FusedStep>& steps, size_t begin, size_t end, const std::vector<size_t>& members,
              std::vector<FusedStep>* formed) {
    absl::flat_hash_set<PlaceId> read_outside;
    size_t member = 0;
    for (size_t i = begin; i < steps.size(); ++i) {
      if (i < end && member < members.size() && members[member] == i) {
        ++member;
        continue;
      }
      read_outside.insert({steps[i].a, steps[i].b, steps[i].c});
    }
    JitNodes& nodes = nodes_.program().nodes;
    FusedRun run;
    for (JitNode& node : nodes) {
      if (node.kind != JitNode::Kind::kStore) continue;
      Stream(&node, steps, formed, &run);
      const bool is_register = plan_.places[node.place].kind == FusedPlace::Kind::kRegister;
      if (is_register && !read_outside.contains(node.place)) {
        node.kind = JitNode::Kind::kOp;  // of which nothing is read
        node.operands.fill({});
      }
    }
    SimplifyJitProgram(&nodes_.program());
    for (const JitNode& node : nodes) {
      if (node.kind == JitNode::Kind::kStore) run.writes.push_back(node.place);
      if (node.kind == JitNode::Kind::kInput || node.kind == JitNode::Kind::kSingle) run.reads.push_back(node.place);
      if (node.kind == JitNode::Kind::kInput && plan_.space.is_map()) LeaveToTheMachine(node.place);
    }
    run.program = std::move(nodes_.program());
    formed->push_back({.kind = FusedStepKind::kRun, .run = plan_.runs.Add(std::move(run))});
  }

  // A result that only this store writes, and nothing reads, is streamed by it and needs no buffer.
  void Stream(JitNode* store, const std::vector<FusedStep>& steps, std::vector<FusedStep>* formed, FusedRun* run) {
    const auto opened = opened_.find(store->place);
    if (opened == opened_.end()) return;
    const FusedAccess& access = plan_.accesses[opened->second];
    if (!access.may_stream || !access.is_linear || SizeOf(store->dtype) < 4) return;
    // Tiles begin at multiples of 64 bytes then, if the result does.
    const int64_t group_points = plan_.space.scan_points() * plan_.space.width(false);
    if (!plan_.space.is_map() && group_points % 16 != 0) return;
    const auto reads = [&](const FusedStep& step) {
      if (step.kind == FusedStepKind::kClose) return false;
      return step.a == store->place || step.b == store->place || step.c == store->place;
    };
    for (const FusedStep& step : steps) {
      const bool is_inside = nodes_.Has(step.out) && step.kind != FusedStepKind::kOpen;
      if (!is_inside && reads(step)) return;
    }
    store->streams = true;
    run->streamed.push_back(opened->second);
    for (FusedStep& step : *formed) {
      if (step.kind == FusedStepKind::kOpen && step.out == store->place) step.buffer = {};
    }
    direct_.insert(store->place);
  }

  // Long tiles read memory as the machine's own prefetchers like it.
  void LeaveToTheMachine(PlaceId place) {
    const auto load = loads_.find(place);
    if (load == loads_.end()) return;
    FusedAccess& access = plan_.accesses[load->second];
    if (access.is_fetched) plan_.fetched_bytes -= SizeOf(access.dtype);
    access.is_fetched = false;
  }

  const JitOptions::Use use_;
  FusedPlan& plan_;
  FusedTranslation nodes_;  // of the run that is being formed
  absl::flat_hash_map<PlaceId, AccessId> loads_;
  absl::flat_hash_map<PlaceId, AccessId> opened_;
  absl::flat_hash_set<PlaceId> direct_;  // opened places without a buffer
};

}  // namespace

void FormRuns(JitIsa isa, JitOptions::Use use, FusedPlan* plan) {
  if (isa == JitIsa::kNone) return;
  RunFormer former(isa, use, plan);
  for (FusedStage& stage : plan->stages) former.Form(&stage.tile);
  former.DropRepeats();
}

bool CompileFused(JitIsa isa, ProtectCode protect, FusedPlan* plan) {
  std::vector<std::string> parts;
  for (const FusedRun& run : plan->runs) {
    parts.push_back(CompileJitProgram(run.program, isa, false));
    if (!run.streamed.empty()) parts.push_back(CompileJitProgram(run.program, isa, true));
    if (parts.back().empty()) return false;
  }
  if (plan->rows) {
    parts.push_back(CompileJitRows(plan->rows->rows, isa, false));
    if (!plan->rows->streamed.empty()) parts.push_back(CompileJitRows(plan->rows->rows, isa, true));
    if (parts.back().empty()) return false;
  }
  if (parts.empty()) return true;
  plan->code = JitCode::Create(parts, protect);
  if (plan->code == nullptr) return false;
  size_t part = 0;
  const auto next = [&]<typename Function>(Function* function) {
    *function = reinterpret_cast<Function>(const_cast<void*>(plan->code->part(part++)));
  };
  for (FusedRun& run : plan->runs) {
    next(&run.function);
    if (!run.streamed.empty()) next(&run.streaming_function);
    run.program = {};
  }
  if (plan->rows) {
    next(&plan->rows->function);
    if (!plan->rows->streamed.empty()) next(&plan->rows->streaming_function);
    plan->rows->rows = {};
  }
  return true;
}

}  // namespace tensord::cpu
