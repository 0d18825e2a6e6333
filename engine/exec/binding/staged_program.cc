#include "engine/exec/binding/staged_program.h"

#include <optional>
#include <utility>

#include "engine/base/allocated_bytes.h"
#include "engine/base/at.h"
#include "engine/base/status_macros.h"
#include "engine/exec/binding/staged_run.h"

namespace tensord {

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

absl::StatusOr<std::unique_ptr<StagedRun>> StagedProgram::Start(absl::Span<const ConcreteType> types,
                                                                absl::Span<const BufferPtr> arguments,
                                                                absl::Span<const bool> donated) const {
  ASSIGN_OR_RETURN(SizeBinding sizes, BindSizes(program_, types));
  return std::make_unique<StagedRun>(*this, std::move(sizes), types, arguments, donated);
}

absl::StatusOr<ProgramResults> StagedProgram::Run(absl::Span<const ConcreteType> types,
                                                  absl::Span<const BufferPtr> arguments, const RunCheck& check,
                                                  RunTimes* times, absl::Span<const bool> donated) const {
  ASSIGN_OR_RETURN(const std::unique_ptr<StagedRun> run, Start(types, arguments, donated));
  ASSIGN_OR_RETURN(std::optional<ProgramResults> results,
                   run->GoOn({.check = check, .memory = nullptr, .times = times}));
  return std::move(results).value();  // nothing stops it
}

}  // namespace tensord
