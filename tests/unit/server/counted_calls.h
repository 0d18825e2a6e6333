#ifndef TENSORD_TESTS_UNIT_SERVER_COUNTED_CALLS_H_
#define TENSORD_TESTS_UNIT_SERVER_COUNTED_CALLS_H_

#include <chrono>

#include "engine/base/mutex.h"

namespace tensord::server {

// How often something was called, for who waits for it. Thread-safe.
class CountedCalls {
 public:
  void Add() {
    MutexLock lock(&mutex_);
    ++count_;
    changed_.SignalAll();
  }
  bool Has(int count) {
    MutexLock lock(&mutex_);
    return count_ >= count;
  }
  // Returns false if they do not come.
  bool WaitFor(int count) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    MutexLock lock(&mutex_);
    while (count_ < count) {
      if (!changed_.WaitUntil(&mutex_, until)) return count_ >= count;
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tensord::server

#endif  // TENSORD_TESTS_UNIT_SERVER_COUNTED_CALLS_H_
