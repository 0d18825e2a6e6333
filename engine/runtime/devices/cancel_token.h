#ifndef TENSORD_ENGINE_RUNTIME_DEVICES_CANCEL_TOKEN_H_
#define TENSORD_ENGINE_RUNTIME_DEVICES_CANCEL_TOKEN_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "engine/base/mutex.h"

namespace tensord {

// Set by the client's cancellation; read by runs, and told to queues, which need not look. Thread-safe.
class CancelToken {
 public:
  using Listener = int64_t;

  // Calls who listens, the first time, under a lock of the token: listeners must be quick and call nothing of it.
  void Cancel() {
    if (cancelled_.exchange(true, std::memory_order_acq_rel)) return;
    MutexLock lock(&mutex_);
    for (const auto& [listener, told] : listeners_) told();
  }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  // Calls `told` from Cancel. A listener to a token that is cancelled already is not called, and sees it by cancelled()
  // from then on. Once Forget has returned, `told` is not called and not running.
  Listener Listen(std::function<void()> told) const {
    MutexLock lock(&mutex_);
    listeners_.emplace_back(++last_, std::move(told));
    return last_;
  }
  void Forget(Listener listener) const {
    MutexLock lock(&mutex_);
    for (auto it = listeners_.begin(); it != listeners_.end(); ++it) {
      if (it->first != listener) continue;
      listeners_.erase(it);
      return;
    }
  }

 private:
  std::atomic<bool> cancelled_{false};
  mutable Mutex mutex_;
  mutable Listener last_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable std::vector<std::pair<Listener, std::function<void()>>> listeners_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_DEVICES_CANCEL_TOKEN_H_
