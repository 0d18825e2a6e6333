#ifndef TENSORD_ENGINE_RUNTIME_COMPILED_PROGRAM_H_
#define TENSORD_ENGINE_RUNTIME_COMPILED_PROGRAM_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "engine/base/fingerprint.h"
#include "engine/exec/binding_cache.h"
#include "engine/exec/bound_program.h"
#include "engine/exec/staged_program.h"
#include "engine/ir/contraction_plan.h"
#include "engine/runtime/compile_pool.h"
#include "engine/runtime/mean_time.h"
#include "engine/runtime/run_tally.h"
#include "engine/runtime/tiny_program.h"

namespace tensord {

class CompiledProgram;
using CompiledProgramPtr = std::shared_ptr<const CompiledProgram>;

// A program compiled for one device, with its bindings to concrete shapes: the one binding of a program without symbols
// is made when it is compiled, those of others on first use and kept as BindingCache does. Shared; thread-safe. The
// backend must outlive it.
//
// A program that is compiled for sizes is run by another for each set of them: who must not compile on the thread that
// runs asks for that first, with FindForSizes or CompileForSizes, and runs what it gets.
class CompiledProgram : public std::enable_shared_from_this<CompiledProgram> {
 public:
  // A program of the same graph for arguments of these types alone.
  using CompileSized = std::function<absl::StatusOr<CompiledProgramPtr>(const SizeBinding&)>;
  // The time of compiling is zero for all but the one who caused it.
  using SizedDone = std::function<void(absl::StatusOr<CompiledProgramPtr>, absl::Duration compile_time)>;
  // For who waits no more: `done` is not called, unless that has begun, and what nobody waits for is dropped or broken
  // off.
  using LeaveSized = std::function<void()>;

  struct Identity {
    Fingerprint fingerprint;
    std::string device;                              // "cpu:0"
    std::string tenant = {};                         // as CompileSettings has it
    std::vector<std::string> names;                  // NamesOf the graph that was compiled
    std::vector<ContractionPlan> contractions = {};  // of its nodes that are planned, in order
  };
  // Refused where a program without symbols cannot be bound. With `compile_sized` each set of sizes is run by a
  // program of its own, made on first use and kept as bindings are.
  static absl::StatusOr<CompiledProgramPtr> Create(ExecProgram program, Identity identity, Backend* backend,
                                                   const BindingOptions& bindings = {},
                                                   CompileSized compile_sized = nullptr);

  const ExecProgram& program() const { return program_; }
  const Fingerprint& fingerprint() const { return identity_.fingerprint; }
  const std::string& device() const { return identity_.device; }
  // Whether that tenant may have it by its fingerprint.
  bool is_of(absl::string_view tenant) const { return identity_.tenant.empty() || identity_.tenant == tenant; }
  const std::vector<std::string>& names() const { return identity_.names; }
  const std::vector<ContractionPlan>& contractions() const { return identity_.contractions; }
  Backend* backend() const { return backend_; }

  // Runs once on the calling thread. `types` are those of the slots: reversed for a row-major program. Ends early with
  // what `check` refuses. Says in `times`, where it is not null, when each segment ran. `donated`
  // as in BoundProgram::PlanFor, with what BoundProgram::Run asks of such buffers. `destinations`: by output, memory
  // into which it may be computed, as BoundProgram::Run has it; null, and for those beyond: none. A result is there
  // where its buffer has that address. None is where one is too small, or the run decides sizes; then `memory`, where
  // it is not null, is asked as StagedProgram::Run says.
  absl::StatusOr<ProgramResults> Run(absl::Span<const ConcreteType> types, absl::Span<const BufferPtr> arguments,
                                     const RunCheck& check, RunTimes* times = nullptr,
                                     absl::Span<const bool> donated = {}, absl::Span<const BufferPtr> destinations = {},
                                     const MemoryRequest& memory = nullptr) const;

  // The binding of a program whose sizes the arguments decide. Ends early with what `check` refuses.
  absl::StatusOr<std::shared_ptr<const BoundProgram>> Bind(absl::Span<const ConcreteType> arguments,
                                                           const RunCheck& check = nullptr) const;

  // Of a program that is compiled for sizes, the one for arguments of these types; null where it is not here.
  CompiledProgramPtr FindForSizes(absl::Span<const ConcreteType> arguments) const;
  // The same, compiled on the pool in a turn of the tenant, once for all who ask. Calls `done` once: before it returns
  // null, where the program is there or the pool refuses, else from the pool. Refuses what the guards and the compiler
  // refuse; QUEUE_FULL. The pool must outlive what it is given.
  LeaveSized CompileForSizes(absl::Span<const ConcreteType> arguments, CompilePool* pool, const std::string& tenant,
                             SizedDone done) const;

  // Absent where symbols decide.
  std::optional<int64_t> temporary_bytes() const;
  // Device memory of one run, arguments and results included, that uses up none of its arguments. Absent where symbols
  // decide.
  std::optional<int64_t> static_peak_bytes() const;
  // The same for these arguments, for which the program is bound, as Bind does. Of a program some of whose sizes the
  // run decides only the arguments, which is all that is known: the run asks for more.
  absl::StatusOr<int64_t> PeakBytes(absl::Span<const ConcreteType> arguments, const RunCheck& check = nullptr) const;
  // What a run with these arguments takes lately, kept for the sizes that were asked for last, as bindings are. Zero:
  // unknown, because there was none, because the run itself decides sizes, or because the arguments are not known yet.
  absl::Duration expected_time(absl::Span<const ConcreteType> arguments) const;
  // Of sizes that are new the time is not kept: the run was bound to them, too.
  void NoteRunTime(absl::Span<const ConcreteType> arguments, absl::Duration time) const;
  // A run was refused for its expected time.
  void DoubtRunTime(absl::Span<const ConcreteType> arguments) const;
  // Whether the expected time is one for all arguments.
  bool has_one_time() const { return static_binding_ != nullptr; }
  // A run with these arguments is over so soon (tiny_program.h) that handing it to another thread would cost several
  // times the run. Of a program that is compiled for sizes those are asked instead.
  bool is_tiny(absl::Span<const ConcreteType> arguments) const;
  // Whether a run with so many bytes of arguments can be. Where it is sure that it is not, is_tiny need not be asked.
  bool may_be_tiny(int64_t argument_bytes) const {
    return static_binding_ != nullptr ? is_tiny_ : may_be_tiny_ && argument_bytes <= kMostTinyBytes;
  }
  // Whether its results may have destinations: the device computes in memory of the host.
  bool takes_destinations() const { return takes_destinations_; }
  // Whether sizes decide which instructions are run, not only how.
  bool is_compiled_for_sizes() const { return compile_sized_ != nullptr; }
  RunTally& tally() const { return *tally_; }
  // Kernels of one run.
  int64_t segment_count() const;
  // With what is kept for sets of sizes, bindings and programs, which come and go with runs.
  int64_t size_bytes() const;
  // The binding of a program without symbols, the stages of one some of whose sizes the run decides; null for others.
  const BoundProgram* static_binding() const { return static_binding_.get(); }
  const StagedProgram* staged() const { return staged_.get(); }

 private:
  CompiledProgram(ExecProgram program, Identity identity, Backend* backend, const BindingOptions& bindings,
                  CompileSized compile_sized);

  // Compiled here where it is not there.
  absl::StatusOr<CompiledProgramPtr> ForSizes(absl::Span<const ConcreteType> arguments, const RunCheck& check) const;
  absl::StatusOr<CompiledProgramPtr> MakeForSizes(absl::Span<const ConcreteType> arguments) const;

  enum class Tiny : uint8_t { kUnknown, kTiny, kNot };
  // Of the runs with one set of sizes.
  struct SizedTime {
    std::atomic<bool> is_bound{false};
    std::atomic<Tiny> tiny{Tiny::kUnknown};
    MeanTime mean;
  };
  // Null where nothing is known by sizes.
  std::shared_ptr<SizedTime> TimeFor(absl::Span<const ConcreteType> arguments) const;

  const ExecProgram program_;
  const Identity identity_;
  Backend* const backend_;
  const BindingOptions binding_options_;
  const CompileSized compile_sized_;
  const bool takes_destinations_;
  bool may_be_tiny_ = false;                            // constant after Create
  bool is_tiny_ = false;                                // constant after Create; of a program without symbols
  int64_t own_bytes_ = 0;                               // constant after Create
  std::vector<ConcreteType> static_arguments_;          // constant after Create
  std::shared_ptr<const BoundProgram> static_binding_;  // constant after Create; null with symbols
  std::unique_ptr<const StagedProgram> staged_;         // constant after Create; where the run decides sizes
  mutable MeanTime run_time_;
  mutable std::shared_ptr<RunTally> tally_;  // shared with the programs for its sizes; constant once it is handed out
  mutable BoundProgramCache bindings_;
  mutable BindingCache<CompiledProgramPtr> programs_for_sizes_;
  mutable BindingCache<std::shared_ptr<SizedTime>> times_for_sizes_;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_COMPILED_PROGRAM_H_
