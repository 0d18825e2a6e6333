#ifndef TENSORD_SERVER_LIFECYCLE_ALARMS_H_
#define TENSORD_SERVER_LIFECYCLE_ALARMS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"

namespace tensord::server {

// Calls functions when they are due, at a time of SteadyNow, one after the other, on a thread of its own: they must be
// quick. Thread-safe. The destructor drops the alarms that have not rung.
class Alarms {
 public:
  using Id = int64_t;

  Alarms();
  ~Alarms();
  Alarms(const Alarms&) = delete;
  Alarms& operator=(const Alarms&) = delete;

  Id Set(absl::Time time, std::function<void()> ring);
  // Rings as soon as it can. Does nothing if it rang already, or was dropped.
  void RingNow(Id id);
  // Drops an alarm: it rings no more, but may be ringing.
  void Drop(Id id);

 private:
  using At = std::pair<absl::Time, Id>;

  void Loop();
  // Returns null if there is no alarm of that id.
  std::function<void()> TakeLocked(Id id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddLocked(At at, std::function<void()> ring) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  CondVar changed_;
  std::map<At, std::function<void()>> alarms_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<Id, absl::Time> times_ ABSL_GUARDED_BY(mutex_);
  Id last_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses everything above
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_LIFECYCLE_ALARMS_H_
