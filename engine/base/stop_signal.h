#ifndef TENSORD_ENGINE_BASE_STOP_SIGNAL_H_
#define TENSORD_ENGINE_BASE_STOP_SIGNAL_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "engine/base/mutex.h"

namespace tensord {

// Tells the loops of some work (a run, a compilation), on all its threads, that nobody wants it any more. Whoever
// starts the work makes one, with a scope on each thread that takes part; the loops ask StopRequested. Once set it
// stays set. Thread-safe.
//
//   StopSignal stop(check);
//   const StopSignal::Scope scope(&stop);
//   for (…) {
//     if (StopRequested()) break;
//     …
//   }
//   return stop.status();
class StopSignal {
 public:
  using Check = std::function<absl::Status()>;

  static constexpr std::chrono::nanoseconds kAskEvery = std::chrono::milliseconds(1);

  // `check` refuses when the work is not wanted. It is called from any of its threads, on each about every `ask_every`;
  // 0: whenever a loop asks, for tests. Empty: the signal is never set. It must outlive the signal.
  explicit StopSignal(const Check& check, std::chrono::nanoseconds ask_every = kAskEvery)
      : check_(check ? &check : nullptr), ask_every_(ask_every) {}
  // Serves work that another thread abandons by a flag, which must outlive it; the status is then CANCELLED.
  explicit StopSignal(const std::atomic<bool>* abandoned) : abandoned_(abandoned), ask_every_(kAskEvery) {}
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool is_set() const {
    return is_set_.load(std::memory_order_relaxed) ||
           (abandoned_ != nullptr && abandoned_->load(std::memory_order_relaxed));
  }
  std::chrono::nanoseconds ask_every() const { return ask_every_; }
  // The first refusal of the check; OK while the signal is not set.
  absl::Status status() const;
  // Asks the check at once.
  absl::Status Ask();

  // Lets the thread that made it work for that signal (null: for none) while it lives. Scopes of a thread nest.
  class Scope {
   public:
    explicit Scope(StopSignal* signal);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    StopSignal* const outer_;
  };

  // Returns the calling thread's signal; null if it has none.
  static StopSignal* Current();

 private:
  const Check* const check_ = nullptr;
  const std::atomic<bool>* const abandoned_ = nullptr;
  const std::chrono::nanoseconds ask_every_;
  std::atomic<bool> is_set_{false};
  mutable Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

// A thread's view of its signal.
struct ThreadStop {
  StopSignal* signal = nullptr;
  int32_t calls_to_look = 1;  // so many calls of StopRequested until the clock is read
  int32_t calls_between = 1;
  int64_t looked_ns = 0;
  int64_t asked_ns = 0;
};

inline constinit thread_local ThreadStop t_thread_stop;

// Reads the clock, and asks the signal's check where it is due. The rest of StopRequested.
bool LookWhetherStopped();

// Tells whether this thread's work is no longer wanted. Asked between two pieces of work, however short; a piece should
// take no longer than some 10 ms. Unfinished work has undefined results.
inline bool StopRequested() {
  ThreadStop& mine = t_thread_stop;
  if (mine.signal == nullptr) return false;
  if (mine.signal->is_set()) return true;
  if (--mine.calls_to_look > 0) return false;
  return LookWhetherStopped();
}

// The signal's refusal where this thread's work is to be left.
absl::Status CheckStopped();

// Waits on a variable for a few milliseconds, and where nothing came asks this thread's signal, without the mutex; a
// thread without a signal waits until something comes. For loops on a condition that other threads bring about by work
// of theirs that may take long, and then tell all who wait: one alone might leave just then. The signal's refusal.
absl::Status WaitUnlessStopped(CondVar* changed, Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_STOP_SIGNAL_H_
