#ifndef TENSORD_ENGINE_RUNTIME_DEVICES_FAIR_CLASS_H_
#define TENSORD_ENGINE_RUNTIME_DEVICES_FAIR_CLASS_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "absl/container/node_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/runtime/devices/queued_run.h"
#include "engine/runtime/devices/work_ahead.h"

namespace tensord {

// The runs of one priority class, shared out fairly between tenants by the device time that they use (start-time fair
// queueing): the tenant that has had the least goes next, with the run that is due first. A tenant that had nothing to
// do begins at the place of the others: it saved nothing up, and owes any use beyond its share. Runs are told apart by
// their ids. Thread-compatible. Runs must outlive their stay; they are read, never changed.
class FairClass {
 public:
  void Push(const QueuedRun* run);
  // Moves a run before its time to rise changes.
  void MoveRise(const QueuedRun* run, absl::Time to);
  void Remove(const QueuedRun* run);
  // Returns null if none waits.
  const QueuedRun* Next() const;
  // Removes a run that starts, and charges its tenant the run's expected time. End puts that right.
  void Start(const QueuedRun* run);
  void End(const QueuedRun& run, absl::Duration used);
  // Its tenant used that much beside, after its end.
  void Charge(const QueuedRun& run, absl::Duration used);

  int64_t size() const { return size_; }
  // Returns the expected device time of all waiting runs.
  absl::Duration work() const { return work_; }
  // Adds all that wait.
  void AddAll(WorkAhead* ahead) const;
  // Adds the tenant's own that are due no later than then.
  void AddOwn(const std::string& tenant, absl::Time due, WorkAhead* ahead) const;
  // Adds the runs of other tenants that certainly start before a run of `tenant` due at `due`, if none of the tenant's
  // own leaves the class without having started here. Returns the time when the first of them rises.
  absl::Time AddShares(const std::string& tenant, absl::Time due, WorkAhead* ahead) const;

 private:
  struct DueFirst {
    bool operator()(const QueuedRun* a, const QueuedRun* b) const {
      return a->due != b->due ? a->due < b->due : a->id < b->id;
    }
  };
  struct Account {
    absl::Duration used;     // on the clock of the class
    absl::Duration guessed;  // of that, for runs that go on and whose time nobody knew
    uint64_t turn = 0;       // when it came to wait, among those that used the same
    int64_t running = 0;
    absl::Duration work;
    std::set<const QueuedRun*, DueFirst> runs;
    std::multiset<absl::Duration, std::greater<>> times;  // that are expected of them
    std::multiset<absl::Time> rises;                      // when they rise

    void AddPieces(WorkAhead* ahead) const;
  };
  struct LeastUsed {
    bool operator()(const Account* a, const Account* b) const {
      return a->used != b->used ? a->used < b->used : a->turn < b->turn;
    }
  };

  void Unlink(Account* account, const QueuedRun* run);
  static absl::Duration OwnWork(const Account& account, absl::Time due);
  void Await(Account* account);
  void ForgetIdle();

  absl::node_hash_map<std::string, Account> accounts_;
  std::set<Account*, LeastUsed> waiting_;  // those with runs
  absl::Duration clock_;                   // what the tenant of the last start had used
  uint64_t turns_ = 0;
  int64_t size_ = 0;
  int64_t running_ = 0;
  absl::Duration work_;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_DEVICES_FAIR_CLASS_H_
