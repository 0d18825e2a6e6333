#ifndef TENSORD_ENGINE_RUNTIME_COMPILE_RUN_TALLY_H_
#define TENSORD_ENGINE_RUNTIME_COMPILE_RUN_TALLY_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "engine/runtime/compile/mean_time.h"

namespace tensord {

// Operators' figures of a program's runs, together with those of the programs for its sizes. Thread-safe.
class RunTally {
 public:
  void Begun() { count_.fetch_add(1, std::memory_order_relaxed); }
  void Succeeded(const std::string& tenant, absl::Duration time) {
    mean_.Add(time);
    MutexLock lock(&mutex_);
    if (tenant_ != tenant) tenant_ = tenant;
  }

  int64_t count() const { return count_.load(std::memory_order_relaxed); }
  // Returns the mean time of the latest runs.
  absl::Duration mean_time() const { return mean_.mean(); }
  // Returns the tenant of the last run; empty before the first.
  std::string tenant() const {
    MutexLock lock(&mutex_);
    return tenant_;
  }

 private:
  std::atomic<int64_t> count_{0};
  MeanTime mean_;
  mutable Mutex mutex_;
  std::string tenant_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_COMPILE_RUN_TALLY_H_
