#include "server/lifecycle/tenant_bytes.h"

#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"

namespace tensord::server {

void TenantBytes::SetMost(int64_t most, int64_t most_of_tenant) {
  MutexLock lock(&mutex_);
  most_ = most;
  most_of_tenant_ = most_of_tenant;
}

int64_t TenantBytes::most() const {
  MutexLock lock(&mutex_);
  return most_;
}

int64_t TenantBytes::most_of_tenant() const {
  MutexLock lock(&mutex_);
  return most_of_tenant_;
}

absl::Status TenantBytes::CheckLocked(int64_t bytes, const std::string& tenant, int64_t own) const {
  // A tenant's only call may be as large as a message can be.
  if (held_ > own && bytes > most_ - held_) return RefuseLimit(names_.limit, most_, held_ + bytes, names_.bytes);
  if (bytes == 0) return absl::OkStatus();
  const auto found = of_tenant_.find(tenant);
  const int64_t of_tenant = found == of_tenant_.end() ? 0 : found->second;
  if (of_tenant <= own || bytes <= most_of_tenant_ - of_tenant) return absl::OkStatus();
  return RefuseLimit(names_.tenant_limit, most_of_tenant_, of_tenant + bytes, names_.tenant_bytes);
}

absl::Status TenantBytes::Add(int64_t bytes, const std::string& tenant, int64_t own) {
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckLocked(bytes, tenant, own));
  AddLocked(bytes, tenant);
  return absl::OkStatus();
}

void TenantBytes::Overdraw(int64_t bytes, const std::string& tenant) {
  MutexLock lock(&mutex_);
  AddLocked(bytes, tenant);
}

void TenantBytes::AddLocked(int64_t bytes, const std::string& tenant) {
  if (bytes > 0) of_tenant_.try_emplace(tenant, 0).first->second += bytes;
  held_ += bytes;
}

void TenantBytes::Remove(int64_t bytes, const std::string& tenant) {
  MutexLock lock(&mutex_);
  held_ -= bytes;
  const auto own = of_tenant_.find(tenant);
  if (own != of_tenant_.end() && (own->second -= bytes) == 0) of_tenant_.erase(own);
}

absl::Status TenantBytes::Check(int64_t bytes, const std::string& tenant) const {
  MutexLock lock(&mutex_);
  return CheckLocked(bytes, tenant, /*own=*/0);
}

int64_t TenantBytes::held() const {
  MutexLock lock(&mutex_);
  return held_;
}

Shares TenantBytes::TenantShares() const {
  MutexLock lock(&mutex_);
  return SharesOf(of_tenant_, most_of_tenant_);
}

}  // namespace tensord::server
