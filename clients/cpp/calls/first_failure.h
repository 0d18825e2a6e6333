#ifndef TENSORD_CLIENTS_CPP_CALLS_FIRST_FAILURE_H_
#define TENSORD_CLIENTS_CPP_CALLS_FIRST_FAILURE_H_

#include <cstdint>
#include <mutex>
#include <utility>

#include "absl/status/status.h"

namespace tensord::client {

// The failure of the earliest call among the reported ones. Thread-safe.
class FirstFailure {
 public:
  void Add(uint64_t id, absl::Status failure) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!failure_.ok() && id_ < id) return;
    id_ = id;
    failure_ = std::move(failure);
  }
  // OK: of none.
  absl::Status Get() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return failure_;
  }

 private:
  mutable std::mutex mutex_;
  uint64_t id_ = 0;
  absl::Status failure_;
};

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_CALLS_FIRST_FAILURE_H_
