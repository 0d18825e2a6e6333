#ifndef TENSORD_SERVER_LIFECYCLE_LAST_EXIT_H_
#define TENSORD_SERVER_LIFECYCLE_LAST_EXIT_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>

#include "engine/base/mutex.h"

namespace tensord::server {

// Ends the process when its time is over, whatever still runs in it: a kernel that nothing can stop, a peer that does
// not read, the destructor of something large. Its thread waits for that time and calls nothing that could wait itself.
// Lives as long as the process; thread-safe.
class LastExit {
 public:
  using Clock = std::chrono::steady_clock;

  // Returns the exit of this process, made with the first call.
  static LastExit& OfProcess();
  LastExit(const LastExit&) = delete;
  LastExit& operator=(const LastExit&) = delete;

  // Ends the process within that time; an earlier end stays.
  void EndWithin(std::chrono::milliseconds time);
  // Called before the process is ended so, with a bound of its own; null: nothing is. Waits for one that is being
  // called.
  void SetLastWord(std::function<void()> last_word);
  // Sets the status of the process; 0 unless it is set.
  void SetStatus(int status) { status_ = status; }

 private:
  LastExit() = default;
  void Loop();

  std::atomic<int> status_{0};
  Mutex mutex_;
  CondVar changed_;
  std::optional<Clock::time_point> end_ ABSL_GUARDED_BY(mutex_);
  Mutex word_mutex_;
  std::function<void()> last_word_ ABSL_GUARDED_BY(word_mutex_);
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_LIFECYCLE_LAST_EXIT_H_
