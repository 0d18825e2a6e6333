#ifndef TENSORD_ENGINE_RUNTIME_DEVICES_BEGUN_RUN_H_
#define TENSORD_ENGINE_RUNTIME_DEVICES_BEGUN_RUN_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/exec/binding/staged_run.h"
#include "engine/runtime/devices/run.h"

namespace tensord {

// A run of a request. If it decides sizes of its program it may stop in the middle, and go on later on any thread: one
// at a time. It keeps its values meanwhile.
class BegunRun {
 public:
  using BoundPtr = StagedRun::BoundPtr;

  // Stops where `memory` says so and, with `stops_for_stages`, before a stage that is not bound.
  struct Step {
    const MemoryRequest& memory;  // may be null
    bool stops_for_stages = false;
  };

  explicit BegunRun(absl::Duration queue_time) : queue_time_(queue_time) {}

  // Begins or goes on, as RunProgram does. Nothing: it has stopped, for a stage that TakeWanted tells, or for memory.
  absl::StatusOr<std::optional<RunOutcome>> GoOn(const RunRequest& request, const Step& step);
  // Returns the stage for which it has stopped, once; the program binds it, and Bring must follow before it goes on.
  std::optional<WantedStage> TakeWanted() { return staged_ == nullptr ? std::nullopt : staged_->TakeWanted(); }
  void Bring(BoundPtr stage) { staged_->Bring(std::move(stage)); }
  const CompiledProgramPtr& program() const { return program_; }
  // Counts the end of a run that does not go on.
  void GivenUp(const RunRequest& request, const absl::Status& status) const;

 private:
  absl::Status Begin(const RunRequest& request, const RunCheck& check);
  absl::StatusOr<std::optional<ProgramResults>> Run(const RunRequest& request, const RunCheck& check, const Step& step);
  absl::StatusOr<std::optional<RunOutcome>> RunUncounted(const RunRequest& request, const Step& step);
  absl::StatusOr<RunOutcome> End(const RunRequest& request, ProgramResults results);

  const absl::Duration queue_time_;
  std::chrono::steady_clock::time_point start_;
  CompiledProgramPtr program_;  // that runs: for the sizes of the arguments. Null: not begun
  std::vector<ConcreteType> types_;
  std::vector<BufferPtr> arguments_;
  absl::InlinedVector<bool, 16> donated_;
  std::vector<BufferPtr> destinations_;  // none where the run decides sizes
  bool is_sampled_ = false;
  RunTimes times_;
  std::unique_ptr<StagedRun> staged_;  // null: the run decides no size
  int64_t segments_ = 0;               // that ran, where the program did
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_DEVICES_BEGUN_RUN_H_
