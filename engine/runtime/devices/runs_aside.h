#ifndef TENSORD_ENGINE_RUNTIME_DEVICES_RUNS_ASIDE_H_
#define TENSORD_ENGINE_RUNTIME_DEVICES_RUNS_ASIDE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "engine/runtime/devices/queued_run.h"

namespace tensord {

// The runs of a device that have stopped in their middle: each waits for a stage, or for memory, or may go on. Confined
// to its owner's lock.
class RunsAside {
 public:
  using Runs = std::map<uint64_t, QueuedRun>;  // by id: the oldest first

  // Puts a run aside that waits for a stage, or may go on where its memory fits.
  void AwaitStage(QueuedRun run);
  void AwaitTurn(QueuedRun run);
  // Has a run go on that waits for a stage, and returns it; null if it does not wait any more.
  QueuedRun* EndAwaiting(uint64_t id);
  // Returns the run if it still waits for a stage.
  QueuedRun* FindAwaiting(uint64_t id);

  // Returns the runs that wait for no stage.
  const Runs& waiting() const { return waiting_; }
  // Number of these that want more memory than they have.
  int64_t num_growing() const { return num_growing_; }
  QueuedRun Take(uint64_t id);

  // Removes the run; nullopt if it is not here.
  std::optional<QueuedRun> Remove(uint64_t id);
  std::vector<QueuedRun> TakeExpired(absl::Time now);
  std::vector<QueuedRun> TakeAll();
  // InfiniteFuture if there is none.
  absl::Time first_deadline() const { return deadlines_.empty() ? absl::InfiniteFuture() : deadlines_.begin()->first; }

 private:
  void Insert(QueuedRun run, Runs* runs);
  QueuedRun Extract(uint64_t id, Runs* runs);

  Runs awaiting_;  // a stage
  Runs waiting_;
  std::set<std::pair<absl::Time, uint64_t>> deadlines_;
  int64_t num_growing_ = 0;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_DEVICES_RUNS_ASIDE_H_
