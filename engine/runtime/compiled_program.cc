#include "engine/runtime/compiled_program.h"

#include <algorithm>
#include <utility>

#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/tensor/run_time_size.h"

namespace tensord {
namespace {

constexpr size_t kMaxTinyInstructions = 16;
constexpr int64_t kMaxTinyBytes = 32 << 10;

// Whether the slots are few and small: together some microseconds of any core op.
bool IsTiny(const BoundProgram& bound, const ExecProgram& program) {
  if (program.instructions.size() > kMaxTinyInstructions || bound.slot_types().size() > 4 * kMaxTinyInstructions) {
    return false;
  }
  for (const ExecInstruction& instruction : program.instructions) {
    if (instruction.op->family != "core") return false;
  }
  int64_t bytes = bound.temporary_bytes();
  for (const ConcreteType& type : bound.slot_types()) {
    if (type.num_bytes() > kMaxTinyBytes || (bytes += type.num_bytes()) > kMaxTinyBytes) return false;
  }
  return true;
}

bool Same(absl::Span<const ConcreteType> a, absl::Span<const ConcreteType> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace

absl::StatusOr<CompiledProgramPtr> CompiledProgram::Create(ExecProgram program, Identity identity, Backend* backend,
                                                           CompileForSizes compile_for_sizes) {
  std::shared_ptr<CompiledProgram> compiled(
      new CompiledProgram(std::move(program), std::move(identity), backend, std::move(compile_for_sizes)));
  compiled->own_bytes_ = compiled->program_.size_bytes();
  for (const std::string& name : compiled->names()) {
    compiled->own_bytes_ += static_cast<int64_t>(sizeof(std::string) + name.size());
  }
  if (HasRunTimeSizes(compiled->program_)) {
    compiled->staged_ = std::make_unique<const StagedProgram>(compiled->program_, backend);
  } else if (compiled->program_.is_static()) {
    for (size_t i = 0; i < compiled->program_.inputs.size(); ++i) {
      compiled->static_arguments_.push_back(ToConcreteType(compiled->program_.slot_types[i]));
    }
    ASSIGN_OR_RETURN(const SizeBinding sizes, BindSizes(compiled->program_, compiled->static_arguments_));
    ASSIGN_OR_RETURN(compiled->static_binding_, BoundProgram::Create(compiled->program_, backend, sizes));
    compiled->is_tiny_ =
        backend->Describe().computes_on_caller && IsTiny(*compiled->static_binding_, compiled->program_);
  }
  return compiled;
}

std::shared_ptr<CompiledProgram::SizedTime> CompiledProgram::TimeFor(absl::Span<const ConcreteType> arguments) const {
  if (staged_ != nullptr || arguments.empty()) return nullptr;
  const BindingKey key = {.arguments = {arguments.begin(), arguments.end()}, .run_time_sizes = {}};
  return *times_for_sizes_.FindOrMake(key, [] { return std::make_shared<SizedTime>(); });
}

absl::Duration CompiledProgram::expected_time(absl::Span<const ConcreteType> arguments) const {
  if (has_one_time()) return run_time_.mean();
  const std::shared_ptr<SizedTime> time = TimeFor(arguments);
  return time == nullptr ? absl::ZeroDuration() : time->mean.mean();
}

void CompiledProgram::NoteRunTime(absl::Span<const ConcreteType> arguments, absl::Duration time) const {
  if (has_one_time()) return run_time_.Add(time);
  const std::shared_ptr<SizedTime> sized = TimeFor(arguments);
  if (sized != nullptr && sized->is_bound.exchange(true, std::memory_order_relaxed)) sized->mean.Add(time);
}

void CompiledProgram::DoubtRunTime(absl::Span<const ConcreteType> arguments) const {
  if (has_one_time()) return run_time_.Doubt();
  const std::shared_ptr<SizedTime> sized = TimeFor(arguments);
  if (sized != nullptr) sized->mean.Doubt();
}

absl::StatusOr<std::shared_ptr<const BoundProgram>> CompiledProgram::Bind(
    absl::Span<const ConcreteType> arguments) const {
  if (static_binding_ != nullptr && Same(arguments, static_arguments_)) return static_binding_;
  BindingKey key{.arguments = {arguments.begin(), arguments.end()}, .run_time_sizes = {}};
  return bindings_.FindOrMake(key, [&]() -> absl::StatusOr<std::shared_ptr<const BoundProgram>> {
    ASSIGN_OR_RETURN(const SizeBinding sizes, BindSizes(program_, arguments));
    return BoundProgram::Create(program_, backend_, sizes);
  });
}

absl::StatusOr<CompiledProgramPtr> CompiledProgram::ForSizes(absl::Span<const ConcreteType> arguments) const {
  const BindingKey key{.arguments = {arguments.begin(), arguments.end()}, .run_time_sizes = {}};
  return programs_for_sizes_.FindOrMake(key, [&]() -> absl::StatusOr<CompiledProgramPtr> {
    ASSIGN_OR_RETURN(const SizeBinding sizes, BindSizes(program_, arguments));
    // The graph of those sizes may have no such guard: what a size stands for may depend on which of them are 1.
    for (const ProgramGuard& guard : program_.guards) {
      if (DependsOnRun(guard.guard.lhs) || DependsOnRun(guard.guard.rhs)) continue;
      RETURN_IF_ERROR(WithNode(sizes.Check(guard.guard), guard.node, guard.op));
    }
    return compile_for_sizes_(sizes);
  });
}

absl::StatusOr<ProgramResults> CompiledProgram::Run(absl::Span<const ConcreteType> types,
                                                    absl::Span<const BufferPtr> arguments, const RunCheck& check,
                                                    RunTimes* times, absl::Span<const bool> donated) const {
  run_count_.fetch_add(1, std::memory_order_relaxed);
  if (compile_for_sizes_ != nullptr) {
    ASSIGN_OR_RETURN(const CompiledProgramPtr program, ForSizes(types));
    const size_t earlier = times == nullptr ? 0 : times->parts.size();
    absl::StatusOr<ProgramResults> results = program->Run(types, arguments, check, times, donated);
    for (size_t i = earlier; times != nullptr && i < times->parts.size(); ++i) times->parts[i].owner = program;
    return results;
  }
  if (staged_ != nullptr) return staged_->Run(types, arguments, check, times, donated);
  ASSIGN_OR_RETURN(const std::shared_ptr<const BoundProgram> bound, Bind(types));
  ASSIGN_OR_RETURN(const std::shared_ptr<const BufferPlan> plan, bound->PlanFor(donated));
  ProgramResults results{.peak_bytes = bound->peak_bytes(*plan)};
  std::vector<SegmentTime> measured(times == nullptr ? 0 : bound->num_segments());
  ASSIGN_OR_RETURN(results.buffers, bound->Run(arguments, check, absl::MakeSpan(measured), plan.get()));
  if (times != nullptr) times->parts.push_back({.bound = bound, .times = std::move(measured), .owner = nullptr});
  results.types.reserve(program_.outputs.size());
  for (const ProgramOutput& output : program_.outputs) {
    results.types.push_back(bound->slot_types()[static_cast<size_t>(output.slot)]);
  }
  return results;
}

int64_t CompiledProgram::size_bytes() const {
  if (compile_for_sizes_ == nullptr) return own_bytes_;
  return own_bytes_ +
         programs_for_sizes_.SumOf([](const CompiledProgramPtr& program) { return program->size_bytes(); });
}

int64_t CompiledProgram::segment_count() const {
  if (static_binding_ != nullptr) return static_cast<int64_t>(static_binding_->num_segments());
  return static_cast<int64_t>(staged_ != nullptr ? staged_->num_segments() : SegmentsOf(program_).size());
}

std::optional<int64_t> CompiledProgram::temporary_bytes() const {
  if (static_binding_ == nullptr) return std::nullopt;
  return static_binding_->temporary_bytes();
}

std::optional<int64_t> CompiledProgram::static_peak_bytes() const {
  if (static_binding_ == nullptr) return std::nullopt;
  return static_binding_->peak_bytes(static_binding_->plan());
}

absl::StatusOr<int64_t> CompiledProgram::PeakBytes(absl::Span<const ConcreteType> arguments) const {
  if (compile_for_sizes_ != nullptr) {
    ASSIGN_OR_RETURN(const CompiledProgramPtr program, ForSizes(arguments));
    return program->PeakBytes(arguments);
  }
  if (staged_ != nullptr) {
    int64_t bytes = 0;
    for (const ConcreteType& type : arguments) bytes += type.num_bytes();
    return bytes;
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<const BoundProgram> bound, Bind(arguments));
  return bound->peak_bytes(bound->plan());
}

}  // namespace tensord
