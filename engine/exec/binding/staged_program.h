#ifndef TENSORD_ENGINE_EXEC_BINDING_STAGED_PROGRAM_H_
#define TENSORD_ENGINE_EXEC_BINDING_STAGED_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/exec/binding/binding_cache.h"
#include "engine/exec/binding/bound_constants.h"
#include "engine/exec/binding/bound_program.h"
#include "engine/exec/binding/constant_buffers.h"
#include "engine/exec/binding/segment_profile.h"
#include "engine/exec/program/program_stages.h"

namespace tensord {

// The results of a run: a buffer an output, and its type as the slot has it.
struct ProgramResults {
  std::vector<ConcreteType> types;
  std::vector<BufferPtr> buffers;
  int64_t peak_bytes = 0;  // of arguments, results and temporaries together
  int64_t segments = 0;    // that ran
};

class StagedRun;

// A program some of whose sizes the run decides: its stages are bound and run one after the other, and in between the
// host reads the sizes. Values that later stages need outlive their stage; the last stage that reads one may write over
// it.
//
// Immutable but for its caches of bindings, so thread-safe. The program and the backend must outlive it.
class StagedProgram {
 public:
  // `constants`: that all stages share, with other programs too; null: with none.
  StagedProgram(const ExecProgram& program, Backend* backend, const BindingOptions& bindings,
                std::shared_ptr<ConstantBuffers> constants = nullptr);

  // Returns the number of segments of all stages together.
  size_t num_segments() const;
  // Returns the bytes of the host's memory that its stages and their bindings hold now.
  int64_t held_bytes() const;
  // Each a program over slots of its own.
  std::vector<const ProgramStage*> stages() const;

  // Runs the stages on the calling thread, which binds those that are not. Refuses as BindSizes and
  // BoundProgram::Create do; a guard on a size that the run decides is checked before the first kernel after that size
  // is known. Writes the time of each segment into `times`, if not null. `donated` as in BoundProgram::PlanFor, with
  // the requirements of BoundProgram::Run on such buffers.
  absl::StatusOr<ProgramResults> Run(absl::Span<const ConcreteType> types, absl::Span<const BufferPtr> arguments,
                                     const RunCheck& check, RunTimes* times = nullptr,
                                     absl::Span<const bool> donated = {}) const;
  // Returns such a run, which has not begun, for a caller that drives it. Refuses as BindSizes does.
  absl::StatusOr<std::unique_ptr<StagedRun>> Start(absl::Span<const ConcreteType> types,
                                                   absl::Span<const BufferPtr> arguments,
                                                   absl::Span<const bool> donated) const;

 private:
  friend class StagedRun;
  struct Stage {
    explicit Stage(const BindingOptions& options)
        : most_operations(options.most_operations), bindings(options, SizedKind::kStage, &HeldBytesOf) {}

    const int64_t most_operations;
    ProgramStage part;
    std::vector<Slot> released;                // values that no later stage and no output reads
    absl::InlinedVector<bool, 16> may_donate;  // by input: it is released
    mutable BoundProgramCache bindings;
  };

  const ExecProgram& program_;
  Backend* const backend_;
  const std::shared_ptr<ConstantBuffers> constant_buffers_;
  std::vector<std::unique_ptr<Stage>> stages_;
  std::vector<const ProgramConstant*> own_constants_;  // that are outputs or sizes; the others are the stages'
  std::unique_ptr<BoundConstants> constants_;          // these on the device
  int64_t stage_bytes_ = 0;                            // constant after construction
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BINDING_STAGED_PROGRAM_H_
