#ifndef TENSORD_ENGINE_RUNTIME_DEVICES_RUN_QUEUE_H_
#define TENSORD_ENGINE_RUNTIME_DEVICES_RUN_QUEUE_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "engine/runtime/devices/fair_class.h"
#include "engine/runtime/devices/queued_run.h"

namespace tensord {

// Queue of the runs for one device. Order: the higher class; in a class, the tenant with the least device time; of a
// tenant, the run with the earlier deadline; then the earlier arrival. A run rises to the next class when no run of its
// tenant has started in its class for the ageing time. So no run waits for ever, and a long backlog gains nothing.
//
// Confined to its owner's lock. Knows no clock: callers pass times, which must not go back.
class RunQueue {
 public:
  struct Options {
    absl::Duration ageing = absl::Seconds(1);  // in each class, before a run rises
  };
  // Request for a place in the queue.
  struct Claim {
    const std::string& tenant;
    int32_t priority;
    absl::Time deadline;
  };

  explicit RunQueue(const Options& options) : options_(options) {}

  // Changes the ageing time of new runs. A queued run rises at its old time or at the new one, whichever is earlier.
  void SetAgeing(absl::Duration ageing, absl::Time now);

  // Queues a run that waits since `run.since`. Ids differ, and grow in the order of arrival.
  void Push(uint64_t id, QueuedRun run);
  // Returns the run to start next, null if the queue is empty. Valid until the queue changes.
  const QueuedRun* Next(absl::Time now);
  // Removes the run `next`, a result of Next, and charges its tenant the expected time: `usual` if none is known.
  // One End or one PutBack must follow.
  QueuedRun Take(const QueuedRun* next, absl::Duration usual);
  // Corrects the tenant's charge to the device time that the run used.
  void End(const QueuedRun& run, absl::Duration used);
  // Charges an ended run the time its worker spent on the answer.
  void Charge(const QueuedRun& run, absl::Duration used) { ClassOf(run).Charge(run, used); }
  // Returns a run that was not started to its old place.
  void PutBack(QueuedRun run);

  // Removes the run; nullopt if it is not in the queue.
  std::optional<QueuedRun> Remove(uint64_t id);
  std::vector<QueuedRun> TakeExpired(absl::Time now);
  std::vector<QueuedRun> TakeAll();

  int64_t size() const { return static_cast<int64_t>(runs_.size()); }
  int64_t size_of(int level) const { return classes_[static_cast<size_t>(level)].size(); }
  int64_t size_of(const std::string& tenant) const;
  // Sum over all queued runs.
  int64_t argument_bytes() const { return argument_bytes_; }
  // Number of queued runs by tenant, without tenants that have none.
  const absl::flat_hash_map<std::string, int64_t>& tenants() const { return of_tenant_; }
  // Earliest deadline, and arrival of the oldest run; InfiniteFuture for an empty queue.
  absl::Time first_deadline() const;
  absl::Time oldest_since() const;
  // Expected device time of all queued runs.
  absl::Duration work() const;
  // Returns a lower bound of the wait for `claim`: the expected time of all runs that are certain to start before it,
  // with zero for runs of unknown time. `rests`: the remaining time of each worker's run.
  absl::Duration LeastWait(const Claim& claim, absl::Time now, std::vector<absl::Duration> rests) const;

 private:
  using At = std::pair<absl::Time, uint64_t>;
  using Runs = std::map<uint64_t, QueuedRun>;

  FairClass& ClassOf(const QueuedRun& run) { return classes_[static_cast<size_t>(run.level)]; }
  void Insert(QueuedRun run);
  // Removes the run from every index but its class.
  QueuedRun Extract(Runs::iterator run);
  void SetRise(QueuedRun* run, absl::Time at);
  // Raises the runs whose time has come.
  void Age(absl::Time now);
  // Returns the last start in the run's class and tenant, InfinitePast if none since the tenant waits.
  absl::Time LastStart(const QueuedRun& run) const;

  Options options_;
  Runs runs_;  // by id: the oldest first
  std::array<FairClass, kNumPriorityClasses> classes_;
  std::set<At> deadlines_;
  std::set<At> rising_;  // all but those of the highest class
  absl::flat_hash_map<std::string, int64_t> of_tenant_;
  // The last starts of tenants with waiting runs, by class.
  absl::flat_hash_map<std::string, std::array<absl::Time, kNumPriorityClasses>> starts_;
  absl::Time now_ = absl::InfinitePast();  // of the last Next
  int64_t argument_bytes_ = 0;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_DEVICES_RUN_QUEUE_H_
