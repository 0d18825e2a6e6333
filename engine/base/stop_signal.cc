#include "engine/base/stop_signal.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "engine/base/refusal.h"

namespace tensord {
namespace {

// How far apart a thread lets its looks at the clock come.
constexpr int64_t kLookEveryNs = 200'000;
// Pieces may become long from one to the next: so many of 10 ms pass before the clock is read.
constexpr int32_t kMostCallsBetween = 16;
// So that a run of a few small kernels looks at no clock.
constexpr int32_t kCallsToFirstLook = 4;
constexpr std::chrono::milliseconds kAskWaitingEvery{5};

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

absl::Status StopSignal::status() const {
  if (!is_set()) return absl::OkStatus();
  MutexLock lock(&mutex_);
  return status_.ok() ? Refuse(Refusal::kCancelled, "nobody waits for it any more") : status_;
}

absl::Status StopSignal::Ask() {
  if (is_set()) return status();
  absl::Status status = check_ != nullptr ? (*check_)() : absl::OkStatus();
  if (status.ok()) return status;
  MutexLock lock(&mutex_);
  if (status_.ok()) status_ = std::move(status);
  is_set_.store(true, std::memory_order_relaxed);
  return status_;
}

StopSignal* StopSignal::Current() { return t_thread_stop.signal; }

StopSignal::Scope::Scope(StopSignal* signal) : outer_(std::exchange(t_thread_stop.signal, signal)) {
  t_thread_stop.calls_to_look = signal == nullptr || signal->ask_every().count() > 0 ? kCallsToFirstLook : 1;
  t_thread_stop.calls_between = 1;
}

StopSignal::Scope::~Scope() {
  t_thread_stop.signal = outer_;
  t_thread_stop.calls_to_look = 1;
}

absl::Status CheckStopped() { return StopRequested() ? t_thread_stop.signal->status() : absl::OkStatus(); }

// The analysis does not know that the mutex is locked again.
absl::Status WaitUnlessStopped(CondVar* changed, Mutex* mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  StopSignal* const signal = StopSignal::Current();
  if (signal == nullptr) {
    changed->Wait(mutex);
    return absl::OkStatus();
  }
  if (changed->WaitUntil(mutex, std::chrono::steady_clock::now() + kAskWaitingEvery)) return absl::OkStatus();
  mutex->Unlock();
  const absl::Cleanup lock = [mutex]() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex->Lock(); };
  return signal->Ask();
}

bool LookWhetherStopped() {
  ThreadStop& mine = t_thread_stop;
  mine.calls_to_look = 1;
  const int64_t ask_every_ns = mine.signal->ask_every().count();
  if (ask_every_ns == 0) return !mine.signal->Ask().ok();
  const int64_t now = NowNs(), passed = now - std::exchange(mine.looked_ns, now);
  // Pieces are of any length: looks come as near each other as they cost next to nothing beside them.
  if (passed > kLookEveryNs) mine.calls_between = std::max(1, mine.calls_between / 8);
  if (passed < kLookEveryNs / 4) mine.calls_between = std::min(kMostCallsBetween, 2 * mine.calls_between);
  mine.calls_to_look = mine.calls_between;
  if (now - mine.asked_ns < ask_every_ns) return false;
  mine.asked_ns = now;
  return !mine.signal->Ask().ok();
}

}  // namespace tensord
