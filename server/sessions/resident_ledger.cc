#include "server/sessions/resident_ledger.h"

#include <algorithm>

#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"

namespace tensord::server {
namespace {

std::string ToKey(absl::string_view name) { return std::string(name.data(), name.size()); }

}  // namespace

MemoryCharge& MemoryCharge::operator=(MemoryCharge&& other) noexcept {
  if (this == &other) return *this;
  Release();
  ledger_ = std::move(other.ledger_);
  tenant_ = std::move(other.tenant_);
  device_ = std::move(other.device_);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

MemoryCharge MemoryCharge::Take(int64_t bytes) {
  const int64_t taken = std::min(bytes, bytes_);
  bytes_ -= taken;
  return MemoryCharge(ledger_, tenant_, device_, taken);
}

void MemoryCharge::Add(MemoryCharge other) {
  if (ledger_ == nullptr) {
    *this = std::move(other);
    return;
  }
  bytes_ += std::exchange(other.bytes_, 0);
}

void MemoryCharge::Release() {
  if (ledger_ != nullptr && bytes_ > 0) ledger_->Release(tenant_, device_, bytes_);
  bytes_ = 0;
}

absl::StatusOr<MemoryCharge> ResidentLedger::Charge(absl::string_view tenant, absl::string_view device, int64_t bytes) {
  std::string tenant_key = ToKey(tenant), device_key = ToKey(device);
  RETURN_IF_ERROR(Add(tenant_key, device_key, bytes, /*anyway=*/false));
  if (changed_ != nullptr && bytes > 0) changed_(device_key, bytes);
  return MemoryCharge(shared_from_this(), std::move(tenant_key), std::move(device_key), bytes);
}

MemoryCharge ResidentLedger::ChargeAnyway(absl::string_view tenant, absl::string_view device, int64_t bytes) {
  std::string tenant_key = ToKey(tenant), device_key = ToKey(device);
  Add(tenant_key, device_key, bytes, /*anyway=*/true).IgnoreError();
  if (changed_ != nullptr && bytes > 0) changed_(device_key, bytes);
  return MemoryCharge(shared_from_this(), std::move(tenant_key), std::move(device_key), bytes);
}

absl::Status ResidentLedger::Add(const std::string& tenant_key, const std::string& device_key, int64_t bytes,
                                 bool anyway) {
  MutexLock lock(&mutex_);
  const auto of_tenant = tenants_.find(tenant_key);
  const int64_t tenant_bytes = of_tenant == tenants_.end() ? 0 : of_tenant->second;
  DeviceUse& device_use = devices_[device_key];
  // Earlier charges were within the limits once, and a tensor has at most 2^56 bytes: no sum overflows. The device's
  // limit comes first: a tenant's part may follow from it, and is then no setting that anybody made.
  if (!anyway && bytes > limits_.device_bytes - device_use.bytes) {
    return RefuseLimit("sessions.device_bytes", limits_.device_bytes, device_use.bytes + bytes,
                       "bytes of the device's resident tensors");
  }
  if (!anyway && bytes > limits_.tenant_bytes - tenant_bytes) {
    return RefuseLimit("sessions.tenant_bytes", limits_.tenant_bytes, tenant_bytes + bytes,
                       "bytes of the tenant's resident tensors");
  }
  device_use.bytes += bytes;
  if (bytes > 0) tenants_[tenant_key] += bytes;
  return absl::OkStatus();
}

void ResidentLedger::SetLimits(const Limits& limits) {
  MutexLock lock(&mutex_);
  limits_ = limits;
}

void ResidentLedger::Release(const std::string& tenant, const std::string& device, int64_t bytes) {
  {
    MutexLock lock(&mutex_);
    devices_[device].bytes -= bytes;
    const auto of_tenant = tenants_.find(tenant);
    of_tenant->second -= bytes;
    if (of_tenant->second == 0) tenants_.erase(of_tenant);
  }
  if (changed_ != nullptr) changed_(device, -bytes);
}

void ResidentLedger::CountTensor(absl::string_view device, int64_t more) {
  MutexLock lock(&mutex_);
  devices_[ToKey(device)].tensors += more;
}

int64_t ResidentLedger::TenantBytes(absl::string_view tenant) const {
  MutexLock lock(&mutex_);
  const auto found = tenants_.find(ToKey(tenant));
  return found == tenants_.end() ? 0 : found->second;
}

std::map<std::string, int64_t> ResidentLedger::Tenants() const {
  MutexLock lock(&mutex_);
  return {tenants_.begin(), tenants_.end()};
}

TensorEnds ResidentLedger::ends() const {
  TensorEnds ends{};
  for (size_t i = 0; i < kNumTensorEnds; ++i) ends[i] = ends_[i].load(std::memory_order_relaxed);
  return ends;
}

std::map<std::string, ResidentLedger::DeviceUse> ResidentLedger::Devices() const {
  MutexLock lock(&mutex_);
  return {devices_.begin(), devices_.end()};
}

}  // namespace tensord::server
