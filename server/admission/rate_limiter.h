#ifndef TENSORD_SERVER_ADMISSION_RATE_LIMITER_H_
#define TENSORD_SERVER_ADMISSION_RATE_LIMITER_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "engine/base/shares.h"

namespace tensord::server {

// The limit of requests a second that each tenant may send: a bucket of tokens a tenant, kept as the time at which it
// is full again (the generic cell rate algorithm). Tenants whose bucket is full are forgotten. Thread-safe; without a
// rate it takes no lock.
class RateLimiter {
 public:
  struct Options {
    int64_t per_second = 0;  // 0: no bound
    int64_t burst = 0;       // at once after a pause; 0: as many as a second's
  };

  explicit RateLimiter(const Options& options);

  // Changes the options. Used-up parts of a tenant's bucket stay used, as far as the new bucket goes.
  void SetOptions(const Options& options);
  Options options() const;

  // Fails with RATE_LIMITED, with the time after which the next one is let in.
  absl::Status Admit(const std::string& tenant, absl::Time now);

  int64_t tenants() const;  // that are remembered
  // Returns each tenant's used share of the requests that it may send at once.
  Shares TenantShares(absl::Time now) const;

 private:
  std::atomic<bool> bounds_{false};
  mutable Mutex mutex_;
  Options options_ ABSL_GUARDED_BY(mutex_);
  absl::Duration interval_ ABSL_GUARDED_BY(mutex_);  // a token's
  absl::Duration depth_ ABSL_GUARDED_BY(mutex_);     // of a bucket: the time in which it fills
  absl::flat_hash_map<std::string, absl::Time> full_at_ ABSL_GUARDED_BY(mutex_);
  size_t sweep_at_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_ADMISSION_RATE_LIMITER_H_
