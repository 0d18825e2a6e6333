#ifndef TENSORD_ENGINE_RUNTIME_COMPILED_PROGRAM_H_
#define TENSORD_ENGINE_RUNTIME_COMPILED_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/base/fingerprint.h"
#include "engine/exec/binding_cache.h"
#include "engine/exec/bound_program.h"
#include "engine/exec/staged_program.h"

namespace tensord {

// A program compiled for one device, with its bindings to concrete shapes: the one binding of a program without symbols
// is made when it is compiled, those of others on first use and kept as BindingCache does. Shared; thread-safe. The
// backend must outlive it.
class CompiledProgram {
 public:
  // Refused where a program without symbols cannot be bound. `names` are NamesOf the graph that was compiled.
  static absl::StatusOr<std::shared_ptr<const CompiledProgram>> Create(ExecProgram program, Fingerprint fingerprint,
                                                                       std::string device, Backend* backend,
                                                                       std::vector<std::string> names = {});

  const ExecProgram& program() const { return program_; }
  const Fingerprint& fingerprint() const { return fingerprint_; }
  const std::string& device() const { return device_; }  // "cpu:0"
  Backend* backend() const { return backend_; }
  const std::vector<std::string>& names() const { return names_; }

  // Runs once on the calling thread. `types` are those of the slots: reversed for a row-major program. Ends early with
  // what `check` refuses. Says in `times`, where it is not null, when each segment ran. `donated`
  // as in BoundProgram::PlanFor, with what BoundProgram::Run asks of such buffers.
  absl::StatusOr<ProgramResults> Run(absl::Span<const ConcreteType> types, absl::Span<const BufferPtr> arguments,
                                     const RunCheck& check, RunTimes* times = nullptr,
                                     absl::Span<const bool> donated = {}) const;

  // The binding of a program whose sizes the arguments decide.
  absl::StatusOr<std::shared_ptr<const BoundProgram>> Bind(absl::Span<const ConcreteType> arguments) const;

  // Absent where symbols decide.
  std::optional<int64_t> temporary_bytes() const;
  // A run is over so soon (a few core ops on some kilobytes, all sizes known, on a device that computes on its caller)
  // that handing it to another thread would cost several times the run.
  bool is_tiny() const { return is_tiny_; }
  // Kernels of one run.
  int64_t segment_count() const;
  int64_t size_bytes() const;
  // The binding of a program without symbols, the stages of one some of whose sizes the run decides; null for others.
  const BoundProgram* static_binding() const { return static_binding_.get(); }
  const StagedProgram* staged() const { return staged_.get(); }

 private:
  CompiledProgram(ExecProgram program, Fingerprint fingerprint, std::string device, Backend* backend,
                  std::vector<std::string> names)
      : program_(std::move(program)),
        fingerprint_(fingerprint),
        device_(std::move(device)),
        backend_(backend),
        names_(std::move(names)) {}

  const ExecProgram program_;
  const Fingerprint fingerprint_;
  const std::string device_;
  Backend* const backend_;
  const std::vector<std::string> names_;
  bool is_tiny_ = false;                                // constant after Create
  std::vector<ConcreteType> static_arguments_;          // constant after Create
  std::shared_ptr<const BoundProgram> static_binding_;  // constant after Create; null with symbols
  std::unique_ptr<const StagedProgram> staged_;         // constant after Create; where the run decides sizes
  mutable BindingCache bindings_;
};

using CompiledProgramPtr = std::shared_ptr<const CompiledProgram>;

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_COMPILED_PROGRAM_H_
