#ifndef TENSORD_ENGINE_RUNTIME_FAIR_CLASS_H_
#define TENSORD_ENGINE_RUNTIME_FAIR_CLASS_H_

#include <cstdint>
#include <set>
#include <string>

#include "absl/container/node_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/runtime/queued_run.h"

namespace tensord {

// The runs of one priority class, shared out fairly between tenants by the device time that they use (start-time fair
// queueing): the tenant that has had the least goes next, with the run that is due first. A tenant that had nothing to
// do begins where the others are: it saved nothing up, and owes what it used beyond its share. Runs are told apart by
// their ids. Thread-compatible. Runs must outlive their stay; they are read, never changed.
class FairClass {
 public:
  void Push(const QueuedRun* run);
  void Remove(const QueuedRun* run);
  // Null where none waits.
  const QueuedRun* Next() const;
  // Removes a run that starts, and charges its tenant what it will probably use. End puts that right.
  void Start(const QueuedRun* run, absl::Duration charge);
  void End(const std::string& tenant, absl::Duration charged, absl::Duration used);

  int64_t size() const { return size_; }
  // The device time that is expected of all that wait.
  absl::Duration work() const { return work_; }
  // Of what certainly goes before a run of that tenant that is due then, a lower bound: the tenant's own that are due
  // no later, and as much of each other tenant's.
  absl::Duration WorkBefore(const std::string& tenant, absl::Time due) const;

 private:
  struct DueFirst {
    bool operator()(const QueuedRun* a, const QueuedRun* b) const {
      return a->due != b->due ? a->due < b->due : a->id < b->id;
    }
  };
  struct Account {
    absl::Duration used;  // on the clock of the class
    uint64_t turn = 0;    // when it came to wait, among those that used the same
    int64_t running = 0;
    absl::Duration work;
    std::set<const QueuedRun*, DueFirst> runs;
  };
  struct LeastUsed {
    bool operator()(const Account* a, const Account* b) const {
      return a->used != b->used ? a->used < b->used : a->turn < b->turn;
    }
  };

  void Unlink(Account* account, const QueuedRun* run);
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

#endif  // TENSORD_ENGINE_RUNTIME_FAIR_CLASS_H_
