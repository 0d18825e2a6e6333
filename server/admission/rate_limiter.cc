#include "server/admission/rate_limiter.h"

#include <algorithm>
#include <map>
#include <string>

#include "engine/base/refusal.h"

namespace tensord::server {
namespace {

constexpr size_t kFewTenants = 1024;

}  // namespace

RateLimiter::RateLimiter(const Options& options) { SetOptions(options); }

void RateLimiter::SetOptions(const Options& options) {
  MutexLock lock(&mutex_);
  options_ = options;
  interval_ = options.per_second > 0 ? absl::Seconds(1) / options.per_second : absl::ZeroDuration();
  depth_ = interval_ * (options.burst > 0 ? options.burst : options.per_second);
  sweep_at_ = kFewTenants;
  if (options.per_second <= 0) full_at_.clear();
  bounds_.store(options.per_second > 0, std::memory_order_relaxed);
}

RateLimiter::Options RateLimiter::options() const {
  MutexLock lock(&mutex_);
  return options_;
}

absl::Status RateLimiter::Admit(const std::string& tenant, absl::Time now) {
  if (!bounds_.load(std::memory_order_relaxed)) return absl::OkStatus();
  MutexLock lock(&mutex_);
  if (options_.per_second <= 0) return absl::OkStatus();  // since a moment ago
  if (full_at_.size() >= sweep_at_) {
    absl::erase_if(full_at_, [now](const auto& entry) { return entry.second <= now; });
    sweep_at_ = std::max(kFewTenants, 2 * full_at_.size());
  }
  absl::Time& full_at = full_at_.try_emplace(tenant, now).first->second;
  // No bucket takes longer, unless the clock was put back.
  full_at = std::min(full_at, now + depth_);
  const absl::Time full_then = std::max(full_at, now) + interval_;
  const absl::Duration missing = full_then - now - depth_;
  if (missing > absl::ZeroDuration()) {
    return RefuseLimit(Refusal::kRateLimited, "scheduling.tenant_requests_per_second", options_.per_second,
                       options_.per_second + 1, "requests of the tenant a second", missing);
  }
  full_at = full_then;
  return absl::OkStatus();
}

Shares RateLimiter::TenantShares(absl::Time now) const {
  MutexLock lock(&mutex_);
  if (options_.per_second <= 0) return std::nullopt;
  std::map<std::string, double> shares;
  for (const auto& [tenant, full_at] : full_at_) {
    if (full_at > now) shares[tenant] = absl::FDivDuration(std::min(full_at - now, depth_), depth_);
  }
  return shares;
}

int64_t RateLimiter::tenants() const {
  MutexLock lock(&mutex_);
  return static_cast<int64_t>(full_at_.size());
}

}  // namespace tensord::server
