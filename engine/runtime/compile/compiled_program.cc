#include "engine/runtime/compile/compiled_program.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "engine/base/program_at_work.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/steady_time.h"
#include "engine/base/stop_signal.h"
#include "engine/tensor/run_time_size.h"

namespace tensord {
namespace {

bool Same(absl::Span<const ConcreteType> a, absl::Span<const ConcreteType> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

BindingKey KeyOf(absl::Span<const ConcreteType> arguments) {
  return {.arguments = {arguments.begin(), arguments.end()}, .run_time_sizes = {}};
}

// Measured times are small, and not counted.
BindingOptions Uncounted(BindingOptions options) {
  options.stats = nullptr;
  return options;
}

int64_t BytesOf(const CompiledProgramPtr& program) { return program->size_bytes(); }
int64_t HeldBytesOfReversal(const CompiledProgram::ReversalPtr& reversal) { return reversal->held_bytes(); }

}  // namespace

CompiledProgram::CompiledProgram(ExecProgram program, Identity identity, Backend* backend,
                                 const BindingOptions& bindings, CompileSized compile_sized,
                                 std::shared_ptr<ConstantBuffers> constants)
    : program_(std::move(program)),
      identity_(std::move(identity)),
      backend_(backend),
      binding_options_(bindings),
      compile_sized_(std::move(compile_sized)),
      constants_(constants != nullptr ? std::move(constants) : std::make_shared<ConstantBuffers>(backend)),
      takes_destinations_(backend->Describe().computes_in_host_memory),
      prepares_slowly_(backend->Describe().prepares_slowly),
      decides_sizes_(HasRunTimeSizes(program_)),
      tally_(std::make_shared<RunTally>()),
      bindings_(binding_options_, SizedKind::kBinding, &HeldBytesOf),
      reversals_(binding_options_, SizedKind::kBinding, &HeldBytesOfReversal),
      programs_for_sizes_(binding_options_, SizedKind::kProgram, &BytesOf),
      times_for_sizes_(Uncounted(binding_options_), SizedKind::kBinding) {}

absl::StatusOr<CompiledProgramPtr> CompiledProgram::Create(ExecProgram program, Identity identity, Backend* backend,
                                                           const BindingOptions& bindings, CompileSized compile_sized,
                                                           std::shared_ptr<ConstantBuffers> constants) {
  std::shared_ptr<CompiledProgram> compiled(new CompiledProgram(
      std::move(program), std::move(identity), backend, bindings, std::move(compile_sized), std::move(constants)));
  compiled->own_bytes_ = compiled->program_.size_bytes();
  for (const std::string& name : compiled->names()) {
    compiled->own_bytes_ += static_cast<int64_t>(sizeof(std::string) + name.size());
  }
  for (const ContractionPlan& plan : compiled->contractions()) {
    compiled->own_bytes_ += static_cast<int64_t>(sizeof(plan) + plan.path.size() * sizeof(plan.path[0]));
  }
  compiled->may_be_tiny_ = backend->Describe().computes_on_caller && MayBeTiny(compiled->program_);
  if (compiled->decides_sizes_) {
    compiled->staged_ =
        std::make_unique<const StagedProgram>(compiled->program_, backend, bindings, compiled->constants_);
  } else if (compiled->program_.is_static()) {
    for (size_t i = 0; i < compiled->program_.inputs.size(); ++i) {
      compiled->static_arguments_.push_back(ToConcreteType(compiled->program_.slot_types[i]));
    }
    ASSIGN_OR_RETURN(const SizeBinding sizes, BindSizes(compiled->program_, compiled->static_arguments_));
    ASSIGN_OR_RETURN(
        compiled->static_binding_,
        BoundProgram::Create(compiled->program_, backend, sizes, bindings.most_operations, {}, compiled->constants_));
    compiled->is_tiny_ = compiled->may_be_tiny_ && IsTiny(compiled->program_, sizes);
  }
  return compiled;
}

std::shared_ptr<CompiledProgram::SizedTime> CompiledProgram::TimeFor(absl::Span<const ConcreteType> arguments) const {
  if (staged_ != nullptr || arguments.empty()) return nullptr;
  const StopSignal::Scope scope(nullptr);  // nothing is long here that a run's end could break off
  return *times_for_sizes_.FindOrMake(KeyOf(arguments), [] { return std::make_shared<SizedTime>(); });
}

bool CompiledProgram::is_tiny(absl::Span<const ConcreteType> arguments) const {
  if (static_binding_ != nullptr) return is_tiny_;
  if (!may_be_tiny_ || is_compiled_for_sizes()) return false;
  int64_t bytes = 0;
  for (const ConcreteType& type : arguments) bytes += std::min(type.num_bytes(), kMostTinyBytes + 1);
  if (bytes > kMostTinyBytes) return false;
  const std::shared_ptr<SizedTime> known = TimeFor(arguments);
  if (known == nullptr) return false;
  Tiny tiny = known->tiny.load(std::memory_order_relaxed);
  if (tiny == Tiny::kUnknown) {
    const absl::StatusOr<SizeBinding> sizes = BindSizes(program_, arguments);
    tiny = sizes.ok() && IsTiny(program_, *sizes) ? Tiny::kTiny : Tiny::kNot;
    known->tiny.store(tiny, std::memory_order_relaxed);
  }
  return tiny == Tiny::kTiny;
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

absl::StatusOr<std::shared_ptr<const BoundProgram>> CompiledProgram::Bind(absl::Span<const ConcreteType> arguments,
                                                                          const RunCheck& check) const {
  if (static_binding_ != nullptr && Same(arguments, static_arguments_)) return static_binding_;
  const auto bind = [&]() -> absl::StatusOr<std::shared_ptr<const BoundProgram>> {
    const ProgramAtWork at_work(fingerprint(), ProgramWork::kCompile);
    ASSIGN_OR_RETURN(const SizeBinding sizes, BindSizes(program_, arguments));
    return BoundProgram::Create(program_, backend_, sizes, binding_options_.most_operations, {}, constants_);
  };
  return bindings_.FindOrMake(KeyOf(arguments), bind, check);
}

absl::StatusOr<BufferPtr> CompiledProgram::InSlotOrder(const ConcreteType& type, const BufferPtr& buffer,
                                                       const RunCheck& check) const {
  ASSIGN_OR_RETURN(const ReversalPtr reversal, reversals_.FindOrMake(
                                                   KeyOf({type}), [&] { return MakeReversal(type); }, check));
  return reversal->Run(buffer, check);
}

absl::StatusOr<CompiledProgram::ReversalPtr> CompiledProgram::MakeReversal(const ConcreteType& type) const {
  const ProgramAtWork at_work(fingerprint(), ProgramWork::kCompile);
  return Reversal::Create(type, backend_);
}

CompiledProgram::ReversalPtr CompiledProgram::FindReversal(const ConcreteType& type) const {
  return reversals_.Find(KeyOf({type}));
}

template <typename Made>
CompiledProgram::LeaveSized CompiledProgram::MakeOnPool(BindingCache<Made>* cache, const BindingKey& key,
                                                        std::function<absl::StatusOr<Made>()> make_now,
                                                        CompilePool* pool, const std::string& tenant,
                                                        MadeDone<Made> done) const {
  const auto time = std::make_shared<absl::Duration>();
  // Those who asked may be gone by then, and so may the cache that holds this program.
  const auto make = [self = shared_from_this(), make_now = std::move(make_now), time] {
    const absl::Time start = SteadyNow();
    absl::StatusOr<Made> made = make_now();
    *time = SteadyNow() - start;
    return made;
  };
  std::function<void()> leave =
      cache->FindOrSubmit(key, tenant, pool->SubmitFor(tenant), make,
                          [done = std::move(done), time](const absl::StatusOr<Made>& made) { done(made, *time); });
  if (leave == nullptr) return nullptr;
  return [self = shared_from_this(), leave = std::move(leave)] { leave(); };
}

CompiledProgram::LeaveSized CompiledProgram::CompileReversal(const ConcreteType& type, CompilePool* pool,
                                                             const std::string& tenant, ReversalDone done) const {
  return MakeOnPool<ReversalPtr>(
      &reversals_, KeyOf({type}), [this, type] { return MakeReversal(type); }, pool, tenant, std::move(done));
}

absl::StatusOr<CompiledProgramPtr> CompiledProgram::MakeForSizes(absl::Span<const ConcreteType> arguments) const {
  const ProgramAtWork at_work(fingerprint(), ProgramWork::kCompile);
  ASSIGN_OR_RETURN(const SizeBinding sizes, BindSizes(program_, arguments));
  // The graph of those sizes may lack such a guard: the meaning of a size may depend on which of them are 1.
  for (const ProgramGuard& guard : program_.guards) {
    if (DependsOnRun(guard.guard.lhs) || DependsOnRun(guard.guard.rhs)) continue;
    RETURN_IF_ERROR(WithNode(sizes.Check(guard.guard), guard.node, guard.op));
  }
  ASSIGN_OR_RETURN(CompiledProgramPtr program, compile_sized_(sizes));
  program->tally_ = tally_;
  return program;
}

absl::StatusOr<CompiledProgramPtr> CompiledProgram::ForSizes(absl::Span<const ConcreteType> arguments,
                                                             const RunCheck& check) const {
  return programs_for_sizes_.FindOrMake(
      KeyOf(arguments), [&] { return MakeForSizes(arguments); }, check);
}

absl::StatusOr<CompiledProgramPtr> CompiledProgram::ProgramFor(absl::Span<const ConcreteType> arguments,
                                                               const RunCheck& check) const {
  if (is_compiled_for_sizes()) return ForSizes(arguments, check);
  return shared_from_this();
}

CompiledProgram::LeaveSized CompiledProgram::CompileStage(WantedStage stage, CompilePool* pool,
                                                          const std::string& tenant, StageDone done) const {
  const auto make = [this, make_now = std::move(stage.make)] {
    const ProgramAtWork at_work(fingerprint(), ProgramWork::kCompile);
    return make_now();
  };
  return MakeOnPool<std::shared_ptr<const BoundProgram>>(stage.cache, stage.key, make, pool, tenant, std::move(done));
}

CompiledProgramPtr CompiledProgram::FindForSizes(absl::Span<const ConcreteType> arguments) const {
  return programs_for_sizes_.Find(KeyOf(arguments));
}

CompiledProgram::LeaveSized CompiledProgram::CompileForSizes(absl::Span<const ConcreteType> arguments,
                                                             CompilePool* pool, const std::string& tenant,
                                                             SizedDone done) const {
  const BindingKey key = KeyOf(arguments);
  return MakeOnPool<CompiledProgramPtr>(
      &programs_for_sizes_, key, [this, types = key.arguments] { return MakeForSizes(types); }, pool, tenant,
      std::move(done));
}

absl::StatusOr<ProgramResults> CompiledProgram::Run(absl::Span<const ConcreteType> types,
                                                    absl::Span<const BufferPtr> arguments, const RunCheck& check,
                                                    RunTimes* times, absl::Span<const bool> donated,
                                                    absl::Span<const BufferPtr> destinations) const {
  if (is_compiled_for_sizes()) {
    ASSIGN_OR_RETURN(const CompiledProgramPtr program, ForSizes(types, check));
    const size_t earlier = times == nullptr ? 0 : times->parts.size();
    absl::StatusOr<ProgramResults> results = program->Run(types, arguments, check, times, donated, destinations);
    for (size_t i = earlier; times != nullptr && i < times->parts.size(); ++i) times->parts[i].owner = program;
    return results;
  }
  tally_->Begun();
  if (staged_ != nullptr) return staged_->Run(types, arguments, check, times, donated);
  ASSIGN_OR_RETURN(const std::shared_ptr<const BoundProgram> bound, Bind(types, check));
  absl::InlinedVector<bool, 4> fits(destinations.empty() ? 0 : program_.outputs.size());
  for (size_t i = 0; i < destinations.size(); ++i) {
    const ConcreteType& type = bound->slot_types()[static_cast<size_t>(program_.outputs[i].slot)];
    fits[i] = destinations[i] != nullptr && type.num_bytes() <= destinations[i]->size_bytes();
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<const BufferPlan> plan, bound->PlanFor(donated, fits, check));
  ProgramResults results{.peak_bytes = bound->peak_bytes(*plan),
                         .segments = static_cast<int64_t>(bound->num_segments())};
  std::vector<SegmentTime> measured(times == nullptr ? 0 : bound->num_segments());
  ASSIGN_OR_RETURN(results.buffers, bound->Run(arguments, check, absl::MakeSpan(measured), plan.get(), destinations));
  if (times != nullptr) times->parts.push_back({.bound = bound, .times = std::move(measured), .owner = nullptr});
  results.types.reserve(program_.outputs.size());
  for (const ProgramOutput& output : program_.outputs) {
    results.types.push_back(bound->slot_types()[static_cast<size_t>(output.slot)]);
  }
  return results;
}

int64_t CompiledProgram::size_bytes() const {
  int64_t bytes = own_bytes_ + bindings_.bytes() + reversals_.bytes() + programs_for_sizes_.bytes();
  if (static_binding_ != nullptr) bytes += static_binding_->held_bytes();
  if (staged_ != nullptr) bytes += staged_->held_bytes();
  return bytes;
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

absl::StatusOr<int64_t> CompiledProgram::PeakBytes(absl::Span<const ConcreteType> arguments,
                                                   const RunCheck& check) const {
  if (is_compiled_for_sizes()) {
    ASSIGN_OR_RETURN(const CompiledProgramPtr program, ForSizes(arguments, check));
    return program->PeakBytes(arguments, check);
  }
  if (staged_ != nullptr) {
    int64_t bytes = 0;
    for (const ConcreteType& type : arguments) bytes += type.num_bytes();
    return bytes;
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<const BoundProgram> bound, Bind(arguments, check));
  return bound->peak_bytes(bound->plan());
}

}  // namespace tensord
