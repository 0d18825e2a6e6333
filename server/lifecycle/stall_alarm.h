#ifndef TENSORD_SERVER_LIFECYCLE_STALL_ALARM_H_
#define TENSORD_SERVER_LIFECYCLE_STALL_ALARM_H_

#include <functional>
#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "engine/base/steady_time.h"
#include "server/lifecycle/alarms.h"

namespace tensord::server {

// Rings, once, when the watched work has made no progress for a time. Shared by that work, which calls End before it
// goes, and by the alarms, which must outlive it. Thread-safe.
class StallAlarm : public std::enable_shared_from_this<StallAlarm> {
 public:
  using Clock = std::function<absl::Time()>;

  // `ring` is called on the thread of the alarms, under no lock, and must not call End.
  StallAlarm(Alarms* alarms, absl::Duration limit, std::function<void()> ring, Clock clock = &SteadyNow);

  // The time begins anew, that much later; the first begins it.
  void Progress(absl::Duration later = absl::ZeroDuration());
  // Pauses until there is progress: the watched work is kept from it.
  void Pause();
  // Ends the watch: it rings no more and is not ringing. True if it has rung.
  bool End();

 private:
  void SetLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Due();

  Alarms* const alarms_;
  const absl::Duration limit_;
  const std::function<void()> ring_;
  const Clock clock_;

  Mutex mutex_;
  CondVar changed_;
  absl::Time progress_ ABSL_GUARDED_BY(mutex_);
  absl::Time due_ ABSL_GUARDED_BY(mutex_);                   // the alarm
  std::optional<Alarms::Id> alarm_ ABSL_GUARDED_BY(mutex_);  // none: not begun
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool ringing_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_rung_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_LIFECYCLE_STALL_ALARM_H_
