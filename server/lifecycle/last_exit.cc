#include "server/lifecycle/last_exit.h"

#include <unistd.h>

#include <thread>
#include <utility>

namespace tensord::server {

LastExit& LastExit::OfProcess() {
  // Never destroyed: it is needed until the very end.
  static LastExit* const instance = [] {
    auto* const exit = new LastExit;
    std::thread([exit] { exit->Loop(); }).detach();
    return exit;
  }();
  return *instance;
}

void LastExit::EndWithin(std::chrono::milliseconds time) {
  const Clock::time_point end = Clock::now() + time;
  {
    MutexLock lock(&mutex_);
    if (end_.has_value() && *end_ <= end) return;
    end_ = end;
  }
  changed_.SignalAll();
}

void LastExit::SetLastWord(std::function<void()> last_word) {
  MutexLock lock(&word_mutex_);
  last_word_ = std::move(last_word);
}

void LastExit::Loop() {
  {
    MutexLock lock(&mutex_);
    while (!end_.has_value()) changed_.Wait(&mutex_);
    while (Clock::now() < *end_) {
      const Clock::time_point end = *end_;  // it may come nearer
      changed_.WaitUntil(&mutex_, end);
    }
  }
  {
    MutexLock lock(&word_mutex_);
    if (last_word_ != nullptr) last_word_();
  }
  _exit(status_);
}

}  // namespace tensord::server
