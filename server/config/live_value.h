#ifndef TENSORD_SERVER_CONFIG_LIVE_VALUE_H_
#define TENSORD_SERVER_CONFIG_LIVE_VALUE_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace tensord::server {

// Settings that are changed while calls read them. Thread-safe; a copy is a value of its own.
class LiveInt64 {
 public:
  LiveInt64(int64_t value = 0) : value_(value) {}  // NOLINT(google-explicit-constructor): it stands for the number
  LiveInt64(const LiveInt64& other) : value_(int64_t{other}) {}
  LiveInt64& operator=(const LiveInt64& other) {
    value_.store(other, std::memory_order_relaxed);
    return *this;
  }
  operator int64_t() const { return value_.load(std::memory_order_relaxed); }  // NOLINT(google-explicit-constructor)

 private:
  std::atomic<int64_t> value_;
};

// A duration to the nanosecond, up to 292 years.
class LiveDuration {
 public:
  LiveDuration(absl::Duration value = absl::ZeroDuration())  // NOLINT(google-explicit-constructor)
      : ns_(absl::ToInt64Nanoseconds(value)) {}
  operator absl::Duration() const { return absl::Nanoseconds(int64_t{ns_}); }  // NOLINT(google-explicit-constructor)

 private:
  LiveInt64 ns_;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONFIG_LIVE_VALUE_H_
