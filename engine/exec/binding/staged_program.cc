#include "engine/exec/binding/staged_program.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "engine/base/allocated_bytes.h"
#include "engine/base/at.h"
#include "engine/base/status_macros.h"
#include "engine/ops/dynamic_truncate.h"

namespace tensord {
// The state of one run. Confined to its thread.
class StagedProgram::Execution {
 public:
  Execution(const StagedProgram& staged, SizeBinding sizes, const RunCheck& check, RunTimes* times,
            const MemoryRequest& memory)
      : staged_(staged),
        sizes_(std::move(sizes)),
        check_(check),
        times_(times),
        request_(memory),
        values_(staged.program_.slot_types.size()) {}

  absl::StatusOr<ProgramResults> Run(absl::Span<const ConcreteType> types, absl::Span<const BufferPtr> arguments,
                                     absl::Span<const bool> donated) {
    key_.arguments.assign(types.begin(), types.end());
    for (size_t i = 0; i < arguments.size(); ++i) {
      Hold(*arguments[i]);  // as the caller does until the end
      // The caller, the values and the arguments of a stage.
      Keep(i, types[i], arguments[i], !donated.empty() && donated[i] ? 3 : 0);
    }
    ASSIGN_OR_RETURN(const BoundConstants::Buffers constants, staged_.constants_->Get());
    for (size_t i = 0; i < constants->size(); ++i) {
      const ProgramConstant& constant = *staged_.own_constants_[i];
      values_[At(constant.slot)] = {constant.value->type(), (*constants)[i], 0};  // the program's memory
    }
    for (const auto& stage : staged_.stages_) {
      RETURN_IF_ERROR(RunStage(*stage));
      for (Slot slot : stage->released) Drop(At(slot));
    }
    ProgramResults results{.peak_bytes = peak_bytes_, .segments = segments_};
    for (const ProgramOutput& output : staged_.program_.outputs) {
      const Value& value = values_[At(output.slot)];
      results.types.push_back(value.type);
      results.buffers.push_back(value.buffer);
    }
    return results;
  }

 private:
  struct Value {
    ConcreteType type;
    BufferPtr buffer;
    int owners = 0;  // of the buffer in a run that may write over it, if it shares it with no other; 0: it may not
    bool is_held = false;
  };

  // Counts the memory that a buffer keeps alive, however small a part of it is: once for all who keep it.
  void Hold(const Buffer& buffer) {
    if (++holders_[&buffer.memory()] == 1) kept_bytes_ += buffer.memory().size_bytes();
  }

  void Keep(size_t slot, const ConcreteType& type, BufferPtr buffer, int owners) {
    Hold(*buffer);
    values_[slot] = {type, std::move(buffer), owners, /*is_held=*/true};
  }

  void Drop(size_t slot) {
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

  // Takes the memory of a stage: the kept values, and its plan without its arguments, which are kept.
  absl::Status Take(const BoundProgram& bound, const BufferPlan& plan, int64_t argument_bytes) {
    const int64_t bytes = kept_bytes_ + bound.peak_bytes(plan) - argument_bytes;
    if (bytes <= peak_bytes_) return absl::OkStatus();
    peak_bytes_ = bytes;
    return request_ ? request_(bytes) : absl::OkStatus();
  }

  absl::Status Decide(const RunTimeSize& size) {
    const Value& value = values_[At(size.size)];
    ASSIGN_OR_RETURN(const std::shared_ptr<const void> bytes, staged_.backend_->Export(value.buffer));
    ASSIGN_OR_RETURN(const int64_t extent, sizes_.Evaluate(size.extent));
    const int64_t decided = TruncatedSize(bytes.get(), value.type.dtype, extent);
    sizes_.Bind(size.symbol, decided);
    key_.run_time_sizes.push_back(decided);
    return absl::OkStatus();
  }

  absl::Status RunStage(const Stage& stage) {
    for (const RunTimeSize& size : stage.part.sizes) RETURN_IF_ERROR(Decide(size));
    // The operations of earlier stages follow from the key, as everything made for it does.
    const auto bind = [&] {
      return BoundProgram::Create(stage.part.program, staged_.backend_, sizes_, stage.most_operations, operations_,
                                  staged_.constant_buffers_);
    };
    ASSIGN_OR_RETURN(const std::shared_ptr<const BoundProgram> bound, stage.bindings.FindOrMake(key_, bind, check_));
    operations_.Add(bound->operations());
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
    ASSIGN_OR_RETURN(const std::shared_ptr<const BufferPlan> plan, bound->PlanFor(donated, {}, check_));
    RETURN_IF_ERROR(Take(*bound, *plan, argument_bytes));
    std::vector<SegmentTime> times(times_ == nullptr ? 0 : bound->num_segments());
    ASSIGN_OR_RETURN(std::vector<BufferPtr> results, bound->Run(arguments, check_, absl::MakeSpan(times), plan.get()));
    segments_ += static_cast<int64_t>(bound->num_segments());
    if (times_ != nullptr) times_->parts.push_back({.bound = bound, .times = std::move(times)});
    for (size_t i = 0; i < results.size(); ++i) {
      const Slot own = stage.part.program.outputs[i].slot;
      Keep(At(stage.part.outputs[i]), bound->slot_types()[At(own)], std::move(results[i]), 2);
    }
    return absl::OkStatus();
  }

  const StagedProgram& staged_;
  SizeBinding sizes_;
  const RunCheck& check_;
  RunTimes* const times_;
  BindingKey key_;
  const MemoryRequest& request_;
  std::vector<Value> values_;                        // by slot of the program
  absl::flat_hash_map<const Buffer*, int> holders_;  // by memory: values, and the caller
  int64_t kept_bytes_ = 0;                           // of that
  int64_t peak_bytes_ = 0;
  int64_t segments_ = 0;
  RunOperations operations_;  // of the stages that are bound
};

StagedProgram::StagedProgram(const ExecProgram& program, Backend* backend, const BindingOptions& bindings,
                             std::shared_ptr<ConstantBuffers> constants)
    : program_(program),
      backend_(backend),
      constant_buffers_(constants != nullptr ? std::move(constants) : std::make_shared<ConstantBuffers>(backend)) {
  const AllocatedBytes allocated;
  std::vector<size_t> last_stage(program.slot_types.size());
  std::vector<bool> is_wanted(program.slot_types.size());  // by the caller, or by the host to decide a size
  std::vector<ProgramStage> parts = SplitIntoStages(program);
  for (size_t s = 0; s < parts.size(); ++s) {
    for (Slot slot : parts[s].inputs) last_stage[At(slot)] = s;
    for (const RunTimeSize& size : parts[s].sizes) {
      last_stage[At(size.size)] = s;
      is_wanted[At(size.size)] = true;
    }
    stages_.push_back(std::make_unique<Stage>(bindings));
    stages_.back()->part = std::move(parts[s]);
  }
  std::vector<bool> is_output(program.slot_types.size());
  for (const ProgramOutput& output : program.outputs) is_output[At(output.slot)] = is_wanted[At(output.slot)] = true;
  std::vector<LiteralPtr> wanted;
  for (const ProgramConstant& constant : program.constants) {
    if (!is_wanted[At(constant.slot)]) continue;
    own_constants_.push_back(&constant);
    wanted.push_back(constant.value);
  }
  constants_ = std::make_unique<BoundConstants>(std::move(wanted), constant_buffers_);
  for (size_t slot = 0; slot < last_stage.size(); ++slot) {
    if (!is_output[slot]) stages_[last_stage[slot]]->released.push_back(static_cast<Slot>(slot));
  }
  for (size_t s = 0; s < stages_.size(); ++s) {
    for (Slot slot : stages_[s]->part.inputs) {
      stages_[s]->may_donate.push_back(!is_output[At(slot)] && last_stage[At(slot)] == s);
    }
  }
  stage_bytes_ = allocated.bytes();
}

int64_t StagedProgram::held_bytes() const {
  int64_t bytes = stage_bytes_;
  for (const auto& stage : stages_) bytes += stage->bindings.bytes();
  return bytes;
}

size_t StagedProgram::num_segments() const {
  size_t segments = 0;
  for (const auto& stage : stages_) segments += SegmentsOf(stage->part.program).size();
  return segments;
}

std::vector<const ProgramStage*> StagedProgram::stages() const {
  std::vector<const ProgramStage*> stages;
  for (const auto& stage : stages_) stages.push_back(&stage->part);
  return stages;
}

absl::StatusOr<ProgramResults> StagedProgram::Run(absl::Span<const ConcreteType> types,
                                                  absl::Span<const BufferPtr> arguments, const RunCheck& check,
                                                  RunTimes* times, absl::Span<const bool> donated,
                                                  const MemoryRequest& memory) const {
  ASSIGN_OR_RETURN(SizeBinding sizes, BindSizes(program_, types));
  return Execution(*this, std::move(sizes), check, times, memory).Run(types, arguments, donated);
}

}  // namespace tensord
