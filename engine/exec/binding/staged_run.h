#ifndef TENSORD_ENGINE_EXEC_BINDING_STAGED_RUN_H_
#define TENSORD_ENGINE_EXEC_BINDING_STAGED_RUN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/exec/binding/binding_cache.h"
#include "engine/exec/binding/bound_program.h"
#include "engine/exec/binding/segment_profile.h"
#include "engine/exec/binding/staged_program.h"

namespace tensord {

// Asks for the memory of a run at its peak, before it is taken, if it exceeds the memory asked for so far. False: the
// run is to stop there, and asks again when it goes on. A refusal ends the run.
using MemoryRequest = std::function<absl::StatusOr<bool>(int64_t peak_bytes)>;

// The binding of a stage that is not made yet, for whoever makes it. The program must outlive it.
struct WantedStage {
  BoundProgramCache* cache = nullptr;
  BindingKey key;
  BoundProgramCache::Make make;
};

// A run of a staged program. It may stop before a stage, keeps its values, and goes on later, on any thread: one at a
// time. The program must outlive it.
class StagedRun {
 public:
  using BoundPtr = std::shared_ptr<const BoundProgram>;

  // How the caller drives a step of it.
  struct Step {
    const RunCheck& check;        // ends it early with its refusal; may be null
    const MemoryRequest& memory;  // null: nobody counts
    RunTimes* times = nullptr;    // receives those of the stages that ran; may be null
    bool binds_stages = true;     // on this thread; false: stops where one is not bound
  };

  // Holds the arguments until its end; the caller does too, in one pointer each. `donated` as in StagedProgram::Run.
  StagedRun(const StagedProgram& staged, SizeBinding sizes, absl::Span<const ConcreteType> types,
            absl::Span<const BufferPtr> arguments, absl::Span<const bool> donated);

  // Begins or goes on. Nothing: it has stopped, for a stage that TakeWanted tells, or for memory. After a refusal it is
  // over.
  absl::StatusOr<std::optional<ProgramResults>> GoOn(const Step& step);
  // Returns the stage for which it has stopped, once; Bring must follow before it goes on.
  std::optional<WantedStage> TakeWanted() { return std::exchange(wanted_, std::nullopt); }
  void Bring(BoundPtr bound) { bound_ = std::move(bound); }

 private:
  struct Value {
    ConcreteType type;
    BufferPtr buffer;
    int owners = 0;  // of the buffer in a run that may write over it, if it shares it with no other; 0: it may not
    bool is_held = false;
  };

  void Hold(const Buffer& buffer);
  void Keep(size_t slot, const ConcreteType& type, BufferPtr buffer, int owners);
  void Drop(size_t slot);
  absl::Status KeepConstants();
  // Takes the memory of a stage; false: not now.
  absl::StatusOr<bool> Take(const BoundProgram& bound, const BufferPlan& plan, int64_t argument_bytes,
                            const MemoryRequest& memory);
  absl::Status Decide(const RunTimeSize& size);
  // Sees to the binding of the next stage; false: it is wanted.
  absl::StatusOr<bool> Bind(const StagedProgram::Stage& stage, const Step& step);
  // False: there is no memory now.
  absl::StatusOr<bool> RunStage(const StagedProgram::Stage& stage, const Step& step);

  const StagedProgram& staged_;
  SizeBinding sizes_;
  BindingKey key_;
  std::vector<Value> values_;                        // by slot of the program
  absl::flat_hash_map<const Buffer*, int> holders_;  // by memory: values, and the caller
  int64_t kept_bytes_ = 0;                           // of that
  int64_t peak_bytes_ = 0;
  int64_t segments_ = 0;
  RunOperations operations_;  // of the stages that are bound
  bool has_begun_ = false;
  size_t next_ = 0;          // stage
  bool is_decided_ = false;  // its sizes are
  BoundPtr bound_;           // it is, by this; null: not yet
  std::optional<WantedStage> wanted_;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BINDING_STAGED_RUN_H_
