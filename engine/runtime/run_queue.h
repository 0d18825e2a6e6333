#ifndef TENSORD_ENGINE_RUNTIME_RUN_QUEUE_H_
#define TENSORD_ENGINE_RUNTIME_RUN_QUEUE_H_

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
#include "engine/runtime/fair_class.h"
#include "engine/runtime/queued_run.h"

namespace tensord {

// The runs that wait for one device, in the order in which they are to start: a higher class first, in a class the
// tenant that used the least device time, of a tenant the run whose deadline comes first, of equals the one that came
// first. A run rises to the next class after a time in which none of its tenant has started in its own, so that none
// waits for ever, and who has many waiting has no more of the device for it.
//
// Confined to its owner's lock; knows no clock but the times that are passed in, which must not go back.
class RunQueue {
 public:
  struct Options {
    absl::Duration ageing = absl::Seconds(1);  // in each class, before a run rises
  };
  // Who asks for a place, and for when.
  struct Claim {
    const std::string& tenant;
    int32_t priority;
    absl::Time deadline;
  };

  explicit RunQueue(const Options& options) : options_(options) {}

  // From now on. What waits already rises at its time, or as what comes now does where that is sooner.
  void SetAgeing(absl::Duration ageing, absl::Time now);

  // The run waits from `run.since` on. Ids differ, and grow in the order of arrival.
  void Push(uint64_t id, QueuedRun run);
  // The run that is to start next; null where none waits. Valid until the queue is changed.
  const QueuedRun* Next(absl::Time now);
  // Takes it out, which Next gave, and charges its tenant what is expected of it, `usual` where that is not known.
  // After it comes one End, or one PutBack.
  QueuedRun Take(const QueuedRun* next, absl::Duration usual);
  // It used that much device time.
  void End(const QueuedRun& run, absl::Duration used);
  // After its end: its worker was busy with its answer for that long.
  void Charge(const QueuedRun& run, absl::Duration used) { ClassOf(run).Charge(run, used); }
  // It was not started: it waits again, where it stood.
  void PutBack(QueuedRun run);

  // Nothing where it does not wait (any more).
  std::optional<QueuedRun> Remove(uint64_t id);
  std::vector<QueuedRun> TakeExpired(absl::Time now);
  std::vector<QueuedRun> TakeAll();

  int64_t size() const { return static_cast<int64_t>(runs_.size()); }
  int64_t size_of(int level) const { return classes_[static_cast<size_t>(level)].size(); }
  int64_t size_of(const std::string& tenant) const;
  // Of all runs together.
  int64_t argument_bytes() const { return argument_bytes_; }
  // How many runs of each tenant wait, of those that have some.
  const absl::flat_hash_map<std::string, int64_t>& tenants() const { return of_tenant_; }
  // When the first of them expires, and since when the oldest waits; InfiniteFuture where there is none.
  absl::Time first_deadline() const;
  absl::Time oldest_since() const;
  // The device time that is expected of all.
  absl::Duration work() const;
  // The time that certainly passes before who claims a place now has its turn, where nothing that waits is taken out
  // and runs take what is expected of them, unknown ones any time: a lower bound. Zero where nothing certainly goes
  // before it. `rests`: what is left of the run of each worker.
  absl::Duration LeastWait(const Claim& claim, absl::Time now, std::vector<absl::Duration> rests) const;

 private:
  using At = std::pair<absl::Time, uint64_t>;
  using Runs = std::map<uint64_t, QueuedRun>;

  FairClass& ClassOf(const QueuedRun& run) { return classes_[static_cast<size_t>(run.level)]; }
  void Insert(QueuedRun run);
  // Takes it out of all but its class.
  QueuedRun Extract(Runs::iterator run);
  void SetRise(QueuedRun* run, absl::Time at);
  // Lets those rise that have waited long enough.
  void Age(absl::Time now);
  // When a run of that class and tenant last started; InfinitePast where none has since the tenant waits.
  absl::Time LastStart(const QueuedRun& run) const;

  Options options_;
  Runs runs_;  // by id: the oldest first
  std::array<FairClass, kNumPriorityClasses> classes_;
  std::set<At> deadlines_;
  std::set<At> rising_;  // all but those of the highest class
  absl::flat_hash_map<std::string, int64_t> of_tenant_;
  // Of the tenants that have runs waiting, by class.
  absl::flat_hash_map<std::string, std::array<absl::Time, kNumPriorityClasses>> starts_;
  absl::Time now_ = absl::InfinitePast();  // of the last Next
  int64_t argument_bytes_ = 0;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_RUN_QUEUE_H_
