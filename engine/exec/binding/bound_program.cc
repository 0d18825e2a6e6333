#include "engine/exec/binding/bound_program.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "engine/base/allocated_bytes.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"
#include "engine/exec/memory/run_memory.h"
#include "engine/fusion/build_micro_program.h"

namespace tensord {
namespace {

absl::StatusOr<std::vector<ConcreteType>> ResolveSlots(const ExecProgram& program, const SizeBinding& binding) {
  std::vector<ConcreteType> types(program.slot_types.size());
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    ASSIGN_OR_RETURN(types[i], binding.Resolve(program.slot_types[i]));
  }
  for (const ProgramConstant& constant : program.constants) {
    types[static_cast<size_t>(constant.slot)] = constant.value->type();
  }
  for (const ExecInstruction& instruction : program.instructions) {
    RETURN_IF_ERROR(CheckStopped());
    for (Slot slot : instruction.results) {
      absl::StatusOr<ConcreteType> type = binding.Resolve(program.slot_types[static_cast<size_t>(slot)]);
      if (!type.ok()) return WithNode(type.status(), instruction.node, instruction.written_op().name);
      types[static_cast<size_t>(slot)] = *std::move(type);
    }
  }
  return types;
}

absl::StatusOr<std::unique_ptr<const MicroProgram>> BindBody(const ExecInstruction& instruction,
                                                             const SizeBinding& binding) {
  const Graph& body = *instruction.body;
  std::vector<ConcreteType> types(static_cast<size_t>(body.num_values()));
  for (int32_t v = 0; v < body.num_values(); ++v) {
    ASSIGN_OR_RETURN(types[static_cast<size_t>(v)], binding.Resolve(body.type({v})));
  }
  ASSIGN_OR_RETURN(MicroProgram micro, BuildMicroProgram(instruction.attrs, body, types));
  return std::make_unique<const MicroProgram>(std::move(micro));
}

// Binds the bodies of instructions; null for an instruction without a body.
absl::StatusOr<std::vector<std::unique_ptr<const MicroProgram>>> BindBodies(const ExecProgram& program,
                                                                            const SizeBinding& binding) {
  std::vector<std::unique_ptr<const MicroProgram>> micro_programs(program.instructions.size());
  for (size_t i = 0; i < micro_programs.size(); ++i) {
    const ExecInstruction& instruction = program.instructions[i];
    if (instruction.body == nullptr) continue;
    RETURN_IF_ERROR(CheckStopped());
    absl::StatusOr<std::unique_ptr<const MicroProgram>> micro = BindBody(instruction, binding);
    if (!micro.ok()) return WithNode(micro.status(), instruction.node, instruction.written_op().name);
    micro_programs[i] = *std::move(micro);
  }
  return micro_programs;
}

// Returns by slot the number of instructions that read it, and one more if it is an output.
std::vector<int32_t> CountReaders(const ExecProgram& program) {
  std::vector<int32_t> readers(program.slot_types.size());
  for (const ExecInstruction& instruction : program.instructions) {
    for (size_t k = 0; k < instruction.operands.size(); ++k) {
      const auto end = instruction.operands.begin() + static_cast<ptrdiff_t>(k);
      const Slot slot = instruction.operands[k];
      if (std::find(instruction.operands.begin(), end, slot) == end) ++readers[static_cast<size_t>(slot)];
    }
  }
  for (const ProgramOutput& output : program.outputs) ++readers[static_cast<size_t>(output.slot)];
  return readers;
}

// Returns by slot the one that has its memory, which is another one for a view.
std::vector<Slot> MemoryOfSlots(const ExecProgram& program, absl::Span<const std::optional<OperandView>> views) {
  std::vector<Slot> memory(program.slot_types.size());
  for (size_t s = 0; s < memory.size(); ++s) memory[s] = static_cast<Slot>(s);
  for (size_t i = 0; i < views.size(); ++i) {
    if (!views[i].has_value()) continue;
    const ExecInstruction& instruction = program.instructions[i];
    memory[static_cast<size_t>(instruction.results[0])] = memory[static_cast<size_t>(instruction.operands[0])];
  }
  return memory;
}

// Returns the instructions that are to be run, with their sizes. Points into the program and the types.
std::vector<SegmentInstruction> BindInstructions(const ExecProgram& program, absl::Span<const int32_t> segments,
                                                 absl::Span<const std::optional<OperandView>> views,
                                                 const std::vector<ConcreteType>& types,
                                                 absl::Span<const std::unique_ptr<const MicroProgram>> micro_programs) {
  const std::vector<int32_t> num_readers = CountReaders(program);
  const std::vector<Slot> memory = MemoryOfSlots(program, views);
  std::vector<SegmentInstruction> bound;
  bound.reserve(segments.size());
  for (const int32_t index : segments) {
    if (StopRequested()) break;
    const size_t i = static_cast<size_t>(index);
    const ExecInstruction& instruction = program.instructions[i];
    SegmentInstruction& segment = bound.emplace_back(SegmentInstruction{
        .bound = {.op = instruction.op, .attrs = &instruction.attrs, .micro = micro_programs[i].get()},
        .operands = instruction.operands,
        .results = instruction.results,
        .node = instruction.node,
        .written = &instruction.written_op()});
    for (Slot slot : instruction.operands) {
      segment.bound.operands.push_back(types[static_cast<size_t>(slot)]);
      segment.memory.push_back(memory[static_cast<size_t>(slot)]);
    }
    for (Slot slot : instruction.results) {
      segment.bound.results.push_back(types[static_cast<size_t>(slot)]);
      segment.num_readers.push_back(num_readers[static_cast<size_t>(slot)]);
    }
  }
  return bound;
}

std::vector<LiteralPtr> LiteralsOf(const ExecProgram& program) {
  std::vector<LiteralPtr> literals;
  literals.reserve(program.constants.size());
  for (const ProgramConstant& constant : program.constants) literals.push_back(constant.value);
  return literals;
}

}  // namespace

// Binds in the shapes that the client wrote, so that refusals speak of those.
absl::StatusOr<SizeBinding> BindSizes(const ExecProgram& program, absl::Span<const ConcreteType> arguments) {
  std::vector<const TensorType*> input_types;
  for (const GraphInput& input : program.inputs) input_types.push_back(&input.type);
  std::vector<ConcreteType> as_written(arguments.begin(), arguments.end());
  if (program.row_major) {
    for (ConcreteType& type : as_written) std::reverse(type.shape.begin(), type.shape.end());
  }
  return SizeBinding::Create(input_types, as_written);
}

BoundProgram::BoundProgram(const ExecProgram& program, Backend* backend, std::shared_ptr<ConstantBuffers> constants)
    : program_(program), backend_(backend), constants_(LiteralsOf(program), std::move(constants)) {}

absl::StatusOr<std::unique_ptr<BoundProgram>> BoundProgram::Create(const ExecProgram& program, Backend* backend,
                                                                   const SizeBinding& binding, int64_t most_operations,
                                                                   const RunOperations& before,
                                                                   std::shared_ptr<ConstantBuffers> constants) {
  for (const ProgramGuard& guard : program.guards) {
    RETURN_IF_ERROR(CheckStopped());
    RETURN_IF_ERROR(WithNode(binding.Check(guard.guard), guard.node, guard.op));
  }

  if (constants == nullptr) constants = std::make_shared<ConstantBuffers>(backend);
  const AllocatedBytes allocated;
  auto bound = std::unique_ptr<BoundProgram>(new BoundProgram(program, backend, std::move(constants)));
  ASSIGN_OR_RETURN(bound->slot_types_, ResolveSlots(program, binding));
  ASSIGN_OR_RETURN(bound->micro_programs_, BindBodies(program, binding));
  bound->views_ = FindViews(program, bound->slot_types_);
  bound->segments_ = SegmentsOf(bound->views_);
  RETURN_IF_ERROR(CheckStopped());
  RETURN_IF_ERROR(bound->Prepare(most_operations, before));
  ASSIGN_OR_RETURN(bound->plan_, bound->MakePlan({}, {}));
  bound->made_bytes_ = allocated.bytes();
  RETURN_IF_ERROR(bound->constants_.Get().status());
  return bound;
}

absl::Status BoundProgram::Prepare(int64_t most_operations, const RunOperations& before) {
  const std::vector<SegmentInstruction> instructions =
      BindInstructions(program_, segments_, views_, slot_types_, micro_programs_);
  operations_ = OperationsOf(instructions);
  RETURN_IF_ERROR(CheckStopped());
  RunOperations run = before;
  run.Add(operations_);
  RETURN_IF_ERROR(CheckOperations(run, most_operations));
  for (const SessionRange& range : SessionsOf(program_, segments_)) {
    ASSIGN_OR_RETURN(
        std::unique_ptr<PreparedSession> prepared,
        backend_->Prepare(absl::MakeConstSpan(instructions).subspan(range.begin, range.end - range.begin)));
    sessions_.push_back({.range = range, .prepared = std::move(prepared)});
  }
  for (const Session& session : sessions_) {
    workspace_bytes_ = std::max(workspace_bytes_, session.prepared->workspace_bytes());
    for (size_t i = session.range.begin; i < session.range.end; ++i) {
      const int64_t bytes = session.prepared->scratch_bytes(i - session.range.begin);
      if (bytes <= 0) continue;
      scratch_bytes_.resize(segments_.size());
      scratch_bytes_[i] = bytes;
    }
    for (SegmentChain chain : session.prepared->chains()) {
      chain.begin += session.range.begin;
      chain.end += session.range.begin;
      chains_.push_back(std::move(chain));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<BoundProgram::PlanPtr> BoundProgram::MakePlan(absl::Span<const bool> donated,
                                                             absl::Span<const bool> destinations) const {
  ASSIGN_OR_RETURN(BufferPlan plan, PlanBuffers({.program = program_,
                                                 .slot_types = slot_types_,
                                                 .views = views_,
                                                 .micro_programs = micro_programs_,
                                                 .scratch_bytes = scratch_bytes_,
                                                 .chains = chains_,
                                                 .donated = donated,
                                                 .destinations = destinations}));
  return std::make_shared<const BufferPlan>(std::move(plan));
}

absl::StatusOr<std::shared_ptr<const BufferPlan>> BoundProgram::PlanFor(absl::Span<const bool> donated,
                                                                        absl::Span<const bool> destinations,
                                                                        const RunCheck& check) const {
  const auto has_any = [](absl::Span<const bool> flags) {
    return std::find(flags.begin(), flags.end(), true) != flags.end();
  };
  if (!program_.knows_last_uses || !has_any(donated)) donated = {};
  if (!has_any(destinations)) destinations = {};
  if (donated.empty() && destinations.empty()) return plan_;
  std::optional<PlanPtr> plan = FindPlan(donated, destinations);
  if (!plan.has_value()) {
    ASSIGN_OR_RETURN(plan, MakeOtherPlan(donated, destinations, check));
  }
  return *plan == nullptr ? PlanFor(donated, {}, check) : *plan;
}

absl::StatusOr<BoundProgram::PlanPtr> BoundProgram::MakeOtherPlan(absl::Span<const bool> donated,
                                                                  absl::Span<const bool> destinations,
                                                                  const RunCheck& check) const {
  StopSignal stop(check);
  const StopSignal::Scope scope(check != nullptr ? &stop : StopSignal::Current());
  const AllocatedBytes allocated;
  ASSIGN_OR_RETURN(PlanPtr plan, MakePlan(donated, destinations));
  // Temporaries that lie in a result's memory until it is there need some of their own beside a destination.
  if (plan->peak_bytes > plan_->peak_bytes && !destinations.empty()) plan = nullptr;
  OtherPlan kept{.donated = absl::InlinedVector<bool, 16>(donated.begin(), donated.end()),
                 .destinations = absl::InlinedVector<bool, 4>(destinations.begin(), destinations.end()),
                 .plan = std::move(plan)};
  kept.bytes = allocated.bytes();
  return KeepPlan(std::move(kept));
}

std::optional<BoundProgram::PlanPtr> BoundProgram::FindPlan(absl::Span<const bool> donated,
                                                            absl::Span<const bool> destinations) const {
  MutexLock lock(&mutex_);
  return FindPlanLocked(donated, destinations);
}

std::optional<BoundProgram::PlanPtr> BoundProgram::FindPlanLocked(absl::Span<const bool> donated,
                                                                  absl::Span<const bool> destinations) const {
  for (size_t i = other_plans_.size(); i-- > 0;) {
    if (absl::MakeConstSpan(other_plans_[i].donated) != donated) continue;
    if (absl::MakeConstSpan(other_plans_[i].destinations) != destinations) continue;
    const auto found = other_plans_.begin() + static_cast<ptrdiff_t>(i);
    std::rotate(found, found + 1, other_plans_.end());
    return other_plans_.back().plan;
  }
  return std::nullopt;
}

BoundProgram::PlanPtr BoundProgram::KeepPlan(OtherPlan plan) const {
  MutexLock lock(&mutex_);
  // Two threads may make one plan, and either serves.
  if (std::optional<PlanPtr> other = FindPlanLocked(plan.donated, plan.destinations)) return *std::move(other);
  int64_t bytes = plan.bytes;
  if (other_plans_.size() == kMaxOtherPlans) {
    bytes -= other_plans_.front().bytes;
    other_plans_.erase(other_plans_.begin());
  }
  other_plan_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return other_plans_.emplace_back(std::move(plan)).plan;
}

absl::StatusOr<std::vector<BufferPtr>> BoundProgram::Run(absl::Span<const BufferPtr> arguments, const RunCheck& check,
                                                         absl::Span<SegmentTime> times, const BufferPlan* plan,
                                                         absl::Span<const BufferPtr> destinations) const {
  static const BoundConstants::Buffers kNone = std::make_shared<const std::vector<BufferPtr>>();
  BoundConstants::Buffers constants = kNone;
  if (!program_.constants.empty()) {
    ASSIGN_OR_RETURN(constants, constants_.Get());
  }
  ASSIGN_OR_RETURN(const RunMemory memory, RunMemory::Allocate(plan == nullptr ? *plan_ : *plan, backend_, arguments,
                                                               *constants, destinations));
  RETURN_IF_ERROR(RunSessions(memory, check, times));
  return memory.Results();
}

absl::Status BoundProgram::RunSessions(const RunMemory& memory, const RunCheck& check,
                                       absl::Span<SegmentTime> times) const {
  std::unique_ptr<BackendSession> session;
  for (const Session& part : sessions_) {
    if (session != nullptr) {
      RETURN_IF_ERROR(session->Finish());
      if (check) RETURN_IF_ERROR(check());
    }
    ASSIGN_OR_RETURN(session, backend_->OpenSession());
    session->set_check(check);
    const auto of_part = [&](auto span) {
      return span.empty() ? span : span.subspan(part.range.begin, part.range.end - part.range.begin);
    };
    RETURN_IF_ERROR(session->Run(*part.prepared, memory.slots(), of_part(memory.scratch()), of_part(times)));
  }
  return session == nullptr ? absl::OkStatus() : session->Finish();
}

}  // namespace tensord
