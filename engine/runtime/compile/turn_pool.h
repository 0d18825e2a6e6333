#ifndef TENSORD_ENGINE_RUNTIME_COMPILE_TURN_POOL_H_
#define TENSORD_ENGINE_RUNTIME_COMPILE_TURN_POOL_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "engine/base/mutex.h"

namespace tensord {

// Threads that work for tenants in turns. The tenant that has used the least of their time comes next (start-time fair
// queueing), with the oldest of its work: one turn. However long turns take, no tenant waits for all of another's work.
// A tenant for whom no thread works comes first; if all threads are busy, one is started for it, up to `spare_threads`
// of them. So tenants that all work for long may keep more than `threads` busy; one alone may not.
//
// The queue is bounded. Thread-safe; work may submit more, also while the pool is destroyed. The destructor finishes
// the queued work and joins.
class TurnPool {
 public:
  using Work = std::function<void()>;
  struct Bounds {
    int64_t max_queued = std::numeric_limits<int64_t>::max();
    int64_t max_queued_per_tenant = std::numeric_limits<int64_t>::max();
  };
  struct Options {
    int threads = 1;
    int spare_threads = 8;
    Bounds bounds;
    int niceness = 0;  // of its threads, beyond that of who makes the pool
  };
  struct Stats {
    int64_t queued = 0;
    int64_t running = 0;
    int64_t done = 0;
    std::chrono::steady_clock::duration busy{0};         // of all threads
    std::chrono::steady_clock::duration oldest_wait{0};  // of what is queued
  };
  // The fate of submitted work.
  struct Place {
    enum class Answer : uint8_t { kTaken, kQueueFull, kTenantFull };
    Answer answer = Answer::kTaken;
    uint64_t id = 0;  // for Drop, where it was taken

    bool taken() const { return answer == Answer::kTaken; }
  };

  explicit TurnPool(const Options& options);
  ~TurnPool();
  TurnPool(const TurnPool&) = delete;
  TurnPool& operator=(const TurnPool&) = delete;

  // Submits work; work that is not taken is destroyed.
  Place Submit(const std::string& tenant, Work work);
  // Tells whether the work was still waiting: then it is not done, and gone when this returns.
  bool Drop(const std::string& tenant, uint64_t id);

  // Tells whether the caller is work of this pool.
  bool IsCaller() const;

  // Sets the bounds of later work.
  void SetBounds(const Bounds& bounds);
  Bounds bounds() const;
  Stats stats() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Queued {
    Work work;
    Clock::time_point since;
  };
  struct Account {
    Clock::duration used{0};  // on the clock of all
    uint64_t turn = 0;        // when it came to wait, among those that used the same
    int running = 0;
    std::map<uint64_t, Queued> works;  // by id: the oldest first
  };
  using Accounts = absl::node_hash_map<std::string, Account>;
  struct GoesFirst {
    bool operator()(const Accounts::value_type* a, const Accounts::value_type* b) const {
      const Account &x = a->second, &y = b->second;
      if ((x.running == 0) != (y.running == 0)) return x.running == 0;
      return x.used != y.used ? x.used < y.used : x.turn < y.turn;
    }
  };

  void Loop();
  void StartThreadLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes an account out of the waiting ones while its place changes, and puts it back in its new place.
  void UnlinkLocked(Accounts::value_type* entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { waiting_.erase(entry); }
  void LinkLocked(Accounts::value_type* entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Work TakeLocked(Accounts::value_type* entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndLocked(Accounts::value_type* entry, Clock::duration used) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetIdleLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  CondVar wake_;
  Bounds bounds_ ABSL_GUARDED_BY(mutex_);
  Accounts accounts_ ABSL_GUARDED_BY(mutex_);
  std::set<Accounts::value_type*, GoesFirst> waiting_ ABSL_GUARDED_BY(mutex_);  // those that may have a turn
  Clock::duration clock_ ABSL_GUARDED_BY(mutex_){0};  // what the tenant of the last turn had used
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_turn_ ABSL_GUARDED_BY(mutex_) = 0;
  int idle_ ABSL_GUARDED_BY(mutex_) = 0;  // threads
  Stats stats_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);  // last: they use everything above
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_COMPILE_TURN_POOL_H_
