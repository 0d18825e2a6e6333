#ifndef TENSORD_ENGINE_EXEC_BINDING_BOUND_PROGRAM_H_
#define TENSORD_ENGINE_EXEC_BINDING_BOUND_PROGRAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/base/mutex.h"
#include "engine/exec/backend/backend.h"
#include "engine/exec/binding/bound_constants.h"
#include "engine/exec/binding/constant_buffers.h"
#include "engine/exec/binding/run_operations.h"
#include "engine/exec/memory/buffer_plan.h"
#include "engine/exec/memory/run_memory.h"
#include "engine/exec/program/exec_program.h"
#include "engine/exec/program/sessions.h"
#include "engine/ir/size_binding.h"

namespace tensord {

// Returns the sizes that arguments give the program's symbols; the arguments have the shapes of the slots (reversed for
// a row-major program). Refuses as SizeBinding does.
absl::StatusOr<SizeBinding> BindSizes(const ExecProgram& program, absl::Span<const ConcreteType> arguments);

// A program for one set of argument shapes on one backend: sizes evaluated, guards checked, memory planned, kernels
// made. Immutable but for plans that are made later, so thread-safe. The program and the backend must outlive it.
class BoundProgram {
 public:
  // The number of kept plans for donated arguments and destinations, the last used ones.
  static constexpr size_t kMaxOtherPlans = 4;

  // Binds a program. Refuses guards that do not hold, sizes that are negative or overflow, runs that take more than
  // `most_operations` (run_operations.h) together with those `before`, and instructions that the backend cannot
  // prepare; a refusal names the node. Ends early with the refusal of CheckStopped. `constants`: that it shares with
  // other bindings; null: with none.
  static absl::StatusOr<std::unique_ptr<BoundProgram>> Create(
      const ExecProgram& program, Backend* backend, const SizeBinding& binding,
      int64_t most_operations = std::numeric_limits<int64_t>::max(), const RunOperations& before = {},
      std::shared_ptr<ConstantBuffers> constants = nullptr);

  const std::vector<ConcreteType>& slot_types() const { return slot_types_; }
  // Returns the plan of a run that writes over no argument, and makes the memory of its results.
  const BufferPlan& plan() const { return *plan_; }
  // Returns the plan of a run that may write over arguments, those marked in `donated`; empty: none. `destinations`
  // marks outputs with memory of the caller; it is used if that is harmless and takes no more of the device than
  // plan(). Made on first use, which ends early with the refusal of `check`.
  absl::StatusOr<std::shared_ptr<const BufferPlan>> PlanFor(absl::Span<const bool> donated,
                                                            absl::Span<const bool> destinations = {},
                                                            const RunCheck& check = nullptr) const;
  // Device memory of one run beyond its arguments and results.
  int64_t temporary_bytes() const { return plan_->arena_bytes + workspace_bytes_; }
  // Returns the bytes of arguments, results, temporaries and kernels' workspace together, by this plan.
  int64_t peak_bytes(const BufferPlan& plan) const { return plan.peak_bytes + workspace_bytes_; }
  // Returns the most that a session takes for its segments alike; part of the above.
  int64_t workspace_bytes() const { return workspace_bytes_; }

  // Returns the operations of one run.
  const RunOperations& operations() const { return operations_; }

  // Returns the bytes that it holds of the host's memory: kernels, plans and tables; without the program and its
  // constants. Grows and shrinks with later plans.
  int64_t held_bytes() const { return made_bytes_ + other_plan_bytes_.load(std::memory_order_relaxed); }

  // One kernel each, in the order in which they run.
  size_t num_segments() const { return segments_.size(); }
  const std::vector<int32_t>& segments() const { return segments_; }  // indices into the program's instructions
  const ExecInstruction& segment(size_t i) const { return program_.instructions[static_cast<size_t>(segments_[i])]; }
  // Returns null if the instruction is not fused.
  const MicroProgram* micro_program(int32_t instruction) const {
    return micro_programs_[static_cast<size_t>(instruction)].get();
  }
  // A session of the backend: a range of segments.
  struct Session {
    SessionRange range;
    std::unique_ptr<PreparedSession> prepared;
  };
  const std::vector<Session>& sessions() const { return sessions_; }

  // Runs once on the calling thread. Arguments are buffers of at least the slots' sizes. Results are a buffer an
  // output; they share memory with each other, with arguments and with the program's constants if they are parts of
  // them. Ends early with the refusal of `check`. `times` is empty, or has an entry for each segment, which is written.
  // `plan` is one of PlanFor, or null for plan(); the buffers of donated arguments must be writable, nobody else may
  // read them any more, and no two may be the same memory. `destinations` has a buffer, writable, of the output's size
  // and aligned to kBufferAlignment, for each output that has one in the plan.
  absl::StatusOr<std::vector<BufferPtr>> Run(absl::Span<const BufferPtr> arguments, const RunCheck& check = nullptr,
                                             absl::Span<SegmentTime> times = {}, const BufferPlan* plan = nullptr,
                                             absl::Span<const BufferPtr> destinations = {}) const;

 private:
  BoundProgram(const ExecProgram& program, Backend* backend, std::shared_ptr<ConstantBuffers> constants);

  using PlanPtr = std::shared_ptr<const BufferPlan>;

  absl::Status Prepare(int64_t most_operations, const RunOperations& before);
  absl::StatusOr<PlanPtr> MakePlan(absl::Span<const bool> donated, absl::Span<const bool> destinations) const;
  absl::Status RunSessions(const RunMemory& memory, const RunCheck& check, absl::Span<SegmentTime> times) const;

  const ExecProgram& program_;
  Backend* const backend_;
  std::vector<ConcreteType> slot_types_;
  std::vector<std::unique_ptr<const MicroProgram>> micro_programs_;  // by instruction; null where it is not fused
  std::vector<std::optional<OperandView>> views_;                    // by instruction
  std::vector<int32_t> segments_;
  std::vector<Session> sessions_;
  std::vector<int64_t> scratch_bytes_;  // by segment; empty where none needs any
  std::vector<SegmentChain> chains_;
  int64_t workspace_bytes_ = 0;
  RunOperations operations_;
  std::shared_ptr<const BufferPlan> plan_;
  int64_t made_bytes_ = 0;  // constant after Create

  struct OtherPlan {
    absl::InlinedVector<bool, 16> donated;
    absl::InlinedVector<bool, 4> destinations;
    PlanPtr plan;  // null: that without destinations, which is kept for itself
    int64_t bytes = 0;
  };
  // Returns the plan of one that is kept, null as there.
  absl::StatusOr<PlanPtr> MakeOtherPlan(absl::Span<const bool> donated, absl::Span<const bool> destinations,
                                        const RunCheck& check) const;
  std::optional<PlanPtr> FindPlan(absl::Span<const bool> donated, absl::Span<const bool> destinations) const;
  std::optional<PlanPtr> FindPlanLocked(absl::Span<const bool> donated, absl::Span<const bool> destinations) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  PlanPtr KeepPlan(OtherPlan plan) const;

  mutable BoundConstants constants_;  // of the program, in its order
  mutable Mutex mutex_;
  mutable std::vector<OtherPlan> other_plans_ ABSL_GUARDED_BY(mutex_);  // the last used last
  mutable std::atomic<int64_t> other_plan_bytes_{0};                    // changed under mutex_
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BINDING_BOUND_PROGRAM_H_
