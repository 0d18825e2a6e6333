#ifndef TENSORD_ENGINE_RUNTIME_COMPILE_COMPILED_PROGRAM_H_
#define TENSORD_ENGINE_RUNTIME_COMPILE_COMPILED_PROGRAM_H_

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
#include "engine/exec/binding/binding_cache.h"
#include "engine/exec/binding/bound_program.h"
#include "engine/exec/binding/constant_buffers.h"
#include "engine/exec/binding/reversal.h"
#include "engine/exec/binding/staged_program.h"
#include "engine/exec/binding/staged_run.h"
#include "engine/ir/contraction_plan.h"
#include "engine/runtime/compile/compile_pool.h"
#include "engine/runtime/compile/mean_time.h"
#include "engine/runtime/compile/run_tally.h"
#include "engine/runtime/compile/tiny_program.h"

namespace tensord {

class CompiledProgram;
using CompiledProgramPtr = std::shared_ptr<const CompiledProgram>;

// A program compiled for one device, with its bindings to concrete shapes. A program without symbols is bound when it
// is compiled; others are bound at the first use of a set of sizes, and keep bindings as BindingCache does. Shared;
// thread-safe. The backend must outlive it.
//
// A program that is compiled for sizes has another program for each set of sizes. A caller that must not compile on the
// running thread gets it from FindForSizes or CompileForSizes first, and runs it.
class CompiledProgram : public std::enable_shared_from_this<CompiledProgram> {
 public:
  // Compiles the same graph for one set of sizes.
  using CompileSized = std::function<absl::StatusOr<CompiledProgramPtr>(const SizeBinding&)>;
  using ReversalPtr = std::shared_ptr<const Reversal>;
  // Receives a thing that was made for sizes. The time is zero for all callers but the one that caused the making.
  template <typename Made>
  using MadeDone = std::function<void(absl::StatusOr<Made>, absl::Duration compile_time)>;
  using SizedDone = MadeDone<CompiledProgramPtr>;
  using ReversalDone = MadeDone<ReversalPtr>;
  using StageDone = MadeDone<std::shared_ptr<const BoundProgram>>;
  // Withdraws a caller: `done` is not called unless its call has begun, and work without callers is dropped or broken
  // off.
  using LeaveSized = std::function<void()>;

  struct Identity {
    Fingerprint fingerprint;
    std::string device;                              // "cpu:0"
    std::string tenant = {};                         // as in CompileSettings
    std::vector<std::string> names;                  // NamesOf the graph that was compiled
    std::vector<ContractionPlan> contractions = {};  // of its nodes that are planned, in order
  };
  // Makes a program; refuses one without symbols that cannot be bound. With `compile_sized` each set of sizes has a
  // program of its own, made at its first use and kept like a binding. `constants`: that it shares with programs of
  // other sizes; null: with none.
  static absl::StatusOr<CompiledProgramPtr> Create(ExecProgram program, Identity identity, Backend* backend,
                                                   const BindingOptions& bindings = {},
                                                   CompileSized compile_sized = nullptr,
                                                   std::shared_ptr<ConstantBuffers> constants = nullptr);

  const ExecProgram& program() const { return program_; }
  const Fingerprint& fingerprint() const { return identity_.fingerprint; }
  const std::string& device() const { return identity_.device; }
  // Tells whether the tenant may use the program by its fingerprint.
  bool is_of(absl::string_view tenant) const { return identity_.tenant.empty() || identity_.tenant == tenant; }
  const std::vector<std::string>& names() const { return identity_.names; }
  const std::vector<ContractionPlan>& contractions() const { return identity_.contractions; }
  Backend* backend() const { return backend_; }

  // Runs once on the calling thread. Ends early with a refusal of `check`.
  // `types` are those of the slots: reversed for a row-major program. `times` receives the time of each segment, and
  // may be null. `donated` is as in BoundProgram::PlanFor, with the conditions of BoundProgram::Run. `destinations`, by
  // output, is memory for results as in BoundProgram::Run; null or missing: none. A result there has a buffer of that
  // address. None is used if one is too small, or if the run decides sizes.
  absl::StatusOr<ProgramResults> Run(absl::Span<const ConcreteType> types, absl::Span<const BufferPtr> arguments,
                                     const RunCheck& check, RunTimes* times = nullptr,
                                     absl::Span<const bool> donated = {},
                                     absl::Span<const BufferPtr> destinations = {}) const;

  // Binds a program whose sizes the arguments decide. Ends early with a refusal of `check`.
  absl::StatusOr<std::shared_ptr<const BoundProgram>> Bind(absl::Span<const ConcreteType> arguments,
                                                           const RunCheck& check = nullptr) const;

  // Returns an argument of this type, a slot's, in the order of the slots. `buffer` holds it in the other one, on the
  // device, which transposes it as Reversal does. Reversals are kept like bindings, by type.
  absl::StatusOr<BufferPtr> InSlotOrder(const ConcreteType& type, const BufferPtr& buffer, const RunCheck& check) const;
  // Finds the Reversal of arguments of this type, a slot's; null if it is not made yet.
  ReversalPtr FindReversal(const ConcreteType& type) const;
  // Finds it or makes it on the pool, as CompileForSizes does. Fails as Reversal::Create does; QUEUE_FULL.
  LeaveSized CompileReversal(const ConcreteType& type, CompilePool* pool, const std::string& tenant,
                             ReversalDone done) const;

  // Has a stage bound for which a run of staged() has stopped, on the pool, as CompileForSizes does. Fails as
  // StagedProgram::Run does; QUEUE_FULL.
  LeaveSized CompileStage(WantedStage stage, CompilePool* pool, const std::string& tenant, StageDone done) const;

  // Returns the program that a run with arguments of these types runs: this one or, if it is compiled for sizes, that
  // for them, which is compiled on this thread if need be. Ends early with a refusal of `check`.
  absl::StatusOr<CompiledProgramPtr> ProgramFor(absl::Span<const ConcreteType> arguments, const RunCheck& check) const;
  // Finds the program for arguments of these types, if this one is compiled for sizes; null if it is not made yet.
  CompiledProgramPtr FindForSizes(absl::Span<const ConcreteType> arguments) const;
  // Finds that program or compiles it on the pool, in a turn of the tenant and once for all callers. Calls `done` once:
  // before it returns null if the program is there or the pool refuses, else from the pool. Refusals of the guards and
  // the compiler; QUEUE_FULL. The pool must outlive its work.
  LeaveSized CompileForSizes(absl::Span<const ConcreteType> arguments, CompilePool* pool, const std::string& tenant,
                             SizedDone done) const;

  // Bytes of temporaries; nullopt if symbols decide them.
  std::optional<int64_t> temporary_bytes() const;
  // Device memory of a run without donations, with arguments and results; nullopt if symbols decide it.
  std::optional<int64_t> static_peak_bytes() const;
  // Binds the program to these arguments, as Bind does, and returns the same for them. For a program that decides sizes
  // it returns the bytes of the arguments alone: the run asks for more.
  absl::StatusOr<int64_t> PeakBytes(absl::Span<const ConcreteType> arguments, const RunCheck& check = nullptr) const;
  // Returns the recent mean time of runs with these arguments, kept like a binding by sets of sizes. Zero if unknown:
  // for the first run, for a run that decides sizes, and for arguments that are not known yet.
  absl::Duration expected_time(absl::Span<const ConcreteType> arguments) const;
  // Records the time of a run. Ignores the first run of a set of sizes, which includes the binding.
  void NoteRunTime(absl::Span<const ConcreteType> arguments, absl::Duration time) const;
  // Records that a run was refused for its expected time.
  void DoubtRunTime(absl::Span<const ConcreteType> arguments) const;
  // Tells whether one expected time holds for all arguments.
  bool has_one_time() const { return static_binding_ != nullptr; }
  // Tells whether a run with these arguments is so short (tiny_program.h) that a handover to another thread would cost
  // several times as much. If the program is compiled for sizes, ask the program for these sizes instead.
  bool is_tiny(absl::Span<const ConcreteType> arguments) const;
  // Tells whether a run with so many bytes of arguments may be tiny; if not, is_tiny need not be asked.
  bool may_be_tiny(int64_t argument_bytes) const {
    return static_binding_ != nullptr ? is_tiny_ : may_be_tiny_ && argument_bytes <= kMostTinyBytes;
  }
  // Tells whether results may have destinations, because the device computes in the host's memory.
  bool takes_destinations() const { return takes_destinations_; }
  // Tells whether nothing is to be prepared on a thread that runs programs: DeviceDescription::prepares_slowly.
  bool prepares_slowly() const { return prepares_slowly_; }
  // Tells whether sizes decide which instructions run, not only how.
  bool is_compiled_for_sizes() const { return compile_sized_ != nullptr; }
  RunTally& tally() const { return *tally_; }
  // Tells whether the run decides sizes of it, or of the programs for its sizes.
  bool decides_sizes() const { return decides_sizes_; }
  // Number of kernels of a run.
  int64_t segment_count() const;
  // Bytes of the program, with the bindings and programs that it keeps for sets of sizes at the moment.
  int64_t size_bytes() const;
  // Binding of a program without symbols; stages of a program that decides sizes. Null for others.
  const BoundProgram* static_binding() const { return static_binding_.get(); }
  const StagedProgram* staged() const { return staged_.get(); }

 private:
  CompiledProgram(ExecProgram program, Identity identity, Backend* backend, const BindingOptions& bindings,
                  CompileSized compile_sized, std::shared_ptr<ConstantBuffers> constants);

  // Finds the program for a set of sizes, or compiles it on this thread.
  absl::StatusOr<CompiledProgramPtr> ForSizes(absl::Span<const ConcreteType> arguments, const RunCheck& check) const;
  absl::StatusOr<CompiledProgramPtr> MakeForSizes(absl::Span<const ConcreteType> arguments) const;
  absl::StatusOr<ReversalPtr> MakeReversal(const ConcreteType& type) const;
  // Finds a thing in a cache of this program, or has the pool make it.
  template <typename Made>
  LeaveSized MakeOnPool(BindingCache<Made>* cache, const BindingKey& key,
                        std::function<absl::StatusOr<Made>()> make_now, CompilePool* pool, const std::string& tenant,
                        MadeDone<Made> done) const;

  enum class Tiny : uint8_t { kUnknown, kTiny, kNot };
  // Times of the runs with one set of sizes.
  struct SizedTime {
    std::atomic<bool> is_bound{false};
    std::atomic<Tiny> tiny{Tiny::kUnknown};
    MeanTime mean;
  };
  // Returns null if there are no times by sizes.
  std::shared_ptr<SizedTime> TimeFor(absl::Span<const ConcreteType> arguments) const;

  const ExecProgram program_;
  const Identity identity_;
  Backend* const backend_;
  const BindingOptions binding_options_;
  const CompileSized compile_sized_;
  const std::shared_ptr<ConstantBuffers> constants_;
  const bool takes_destinations_;
  const bool prepares_slowly_;
  const bool decides_sizes_;
  bool may_be_tiny_ = false;                            // constant after Create
  bool is_tiny_ = false;                                // constant after Create; of a program without symbols
  int64_t own_bytes_ = 0;                               // constant after Create
  std::vector<ConcreteType> static_arguments_;          // constant after Create
  std::shared_ptr<const BoundProgram> static_binding_;  // constant after Create; null with symbols
  std::unique_ptr<const StagedProgram> staged_;         // constant after Create; where the run decides sizes
  mutable MeanTime run_time_;
  mutable std::shared_ptr<RunTally> tally_;  // shared with the programs for its sizes; constant once it is handed out
  mutable BoundProgramCache bindings_;
  mutable BindingCache<ReversalPtr> reversals_;
  mutable BindingCache<CompiledProgramPtr> programs_for_sizes_;
  mutable BindingCache<std::shared_ptr<SizedTime>> times_for_sizes_;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_COMPILE_COMPILED_PROGRAM_H_
