#include "engine/exec/binding/staged_run.h"

#include <utility>

#include "absl/container/inlined_vector.h"
#include "engine/base/at.h"
#include "engine/base/status_macros.h"
#include "engine/ops/dynamic_truncate.h"

namespace tensord {

StagedRun::StagedRun(const StagedProgram& staged, SizeBinding sizes, absl::Span<const ConcreteType> types,
                     absl::Span<const BufferPtr> arguments, absl::Span<const bool> donated)
    : staged_(staged), sizes_(std::move(sizes)), values_(staged.program_.slot_types.size()) {
  key_.arguments.assign(types.begin(), types.end());
  for (size_t i = 0; i < arguments.size(); ++i) {
    Hold(*arguments[i]);  // as the caller does until the end
    // The caller, the values and the arguments of a stage.
    Keep(i, types[i], arguments[i], !donated.empty() && donated[i] ? 3 : 0);
  }
}

// Counts the memory that a buffer keeps alive, however small a part of it is: once for all who keep it.
void StagedRun::Hold(const Buffer& buffer) {
  if (++holders_[&buffer.memory()] == 1) kept_bytes_ += buffer.memory().size_bytes();
}

void StagedRun::Keep(size_t slot, const ConcreteType& type, BufferPtr buffer, int owners) {
  Hold(*buffer);
  values_[slot] = {type, std::move(buffer), owners, /*is_held=*/true};
}

void StagedRun::Drop(size_t slot) {
  Value& value = values_[slot];
  if (value.is_held) {
    const auto holders = holders_.find(&value.buffer->memory());
    if (--holders->second == 0) {
      kept_bytes_ -= holders->first->size_bytes();
      holders_.erase(holders);
    }
  }
  value.is_held = false;
  value.buffer.reset();
}

absl::Status StagedRun::KeepConstants() {
  ASSIGN_OR_RETURN(const BoundConstants::Buffers constants, staged_.constants_->Get());
  for (size_t i = 0; i < constants->size(); ++i) {
    const ProgramConstant& constant = *staged_.own_constants_[i];
    values_[At(constant.slot)] = {constant.value->type(), (*constants)[i], 0};  // the program's memory
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<ProgramResults>> StagedRun::GoOn(const Step& step) {
  if (!std::exchange(has_begun_, true)) RETURN_IF_ERROR(KeepConstants());
  for (; next_ < staged_.stages_.size(); ++next_) {
    const StagedProgram::Stage& stage = *staged_.stages_[next_];
    ASSIGN_OR_RETURN(const bool is_bound, Bind(stage, step));
    if (!is_bound) return std::nullopt;
    ASSIGN_OR_RETURN(const bool has_run, RunStage(stage, step));
    if (!has_run) return std::nullopt;
    for (Slot slot : stage.released) Drop(At(slot));
    bound_ = nullptr;
    is_decided_ = false;
  }
  ProgramResults results{.peak_bytes = peak_bytes_, .segments = segments_};
  for (const ProgramOutput& output : staged_.program_.outputs) {
    const Value& value = values_[At(output.slot)];
    results.types.push_back(value.type);
    results.buffers.push_back(value.buffer);
  }
  return results;
}

absl::Status StagedRun::Decide(const RunTimeSize& size) {
  const Value& value = values_[At(size.size)];
  ASSIGN_OR_RETURN(const std::shared_ptr<const void> bytes, staged_.backend_->Export(value.buffer));
  ASSIGN_OR_RETURN(const int64_t extent, sizes_.Evaluate(size.extent));
  const int64_t decided = TruncatedSize(bytes.get(), value.type.dtype, extent);
  sizes_.Bind(size.symbol, decided);
  key_.run_time_sizes.push_back(decided);
  return absl::OkStatus();
}

absl::StatusOr<bool> StagedRun::Bind(const StagedProgram::Stage& stage, const Step& step) {
  if (bound_ != nullptr) return true;
  if (!std::exchange(is_decided_, true)) {
    for (const RunTimeSize& size : stage.part.sizes) RETURN_IF_ERROR(Decide(size));
  }
  bound_ = stage.bindings.Find(key_);
  if (bound_ != nullptr) return true;
  // The operations of earlier stages follow from the key, as everything made for it does.
  BoundProgramCache::Make make = [&stage, &staged = staged_, sizes = sizes_, before = operations_] {
    return BoundProgram::Create(stage.part.program, staged.backend_, sizes, stage.most_operations, before,
                                staged.constant_buffers_);
  };
  if (!step.binds_stages) {
    wanted_ = WantedStage{.cache = &stage.bindings, .key = key_, .make = std::move(make)};
    return false;
  }
  ASSIGN_OR_RETURN(bound_, stage.bindings.FindOrMake(key_, make, step.check));
  return true;
}

// The kept values, and the stage's plan without its arguments, which are kept.
absl::StatusOr<bool> StagedRun::Take(const BoundProgram& bound, const BufferPlan& plan, int64_t argument_bytes,
                                     const MemoryRequest& memory) {
  const int64_t bytes = kept_bytes_ + bound.peak_bytes(plan) - argument_bytes;
  if (bytes <= peak_bytes_) return true;
  if (memory != nullptr) {
    ASSIGN_OR_RETURN(const bool is_there, memory(bytes));
    if (!is_there) return false;
  }
  peak_bytes_ = bytes;
  return true;
}

absl::StatusOr<bool> StagedRun::RunStage(const StagedProgram::Stage& stage, const Step& step) {
  std::vector<BufferPtr> arguments;
  int64_t argument_bytes = 0;
  for (Slot slot : stage.part.inputs) {
    arguments.push_back(values_[At(slot)].buffer);
    argument_bytes += values_[At(slot)].type.num_bytes();
  }
  absl::InlinedVector<bool, 16> donated = stage.may_donate;
  for (size_t i = 0; i < donated.size(); ++i) {
    const int owners = values_[At(stage.part.inputs[i])].owners;
    donated[i] = donated[i] && owners > 0 && Buffer::HasOnlyOwners(arguments[i], owners);
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<const BufferPlan> plan, bound_->PlanFor(donated, {}, step.check));
  ASSIGN_OR_RETURN(const bool is_there, Take(*bound_, *plan, argument_bytes, step.memory));
  if (!is_there) return false;
  operations_.Add(bound_->operations());
  std::vector<SegmentTime> times(step.times == nullptr ? 0 : bound_->num_segments());
  ASSIGN_OR_RETURN(std::vector<BufferPtr> results,
                   bound_->Run(arguments, step.check, absl::MakeSpan(times), plan.get()));
  segments_ += static_cast<int64_t>(bound_->num_segments());
  if (step.times != nullptr)
    step.times->parts.push_back({.bound = bound_, .times = std::move(times), .owner = nullptr});
  for (size_t i = 0; i < results.size(); ++i) {
    const Slot own = stage.part.program.outputs[i].slot;
    Keep(At(stage.part.outputs[i]), bound_->slot_types()[At(own)], std::move(results[i]), 2);
  }
  return true;
}

}  // namespace tensord
