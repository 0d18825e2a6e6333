#include "server/shared_memory/region_store.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/random_id.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"

namespace tensord::server {

absl::Status RegionStore::Use::Take(const Limits& limits, const std::string& tenant, int64_t bytes) {
  MutexLock lock(&mutex_);
  const auto found = tenants_.find(tenant);
  const Stats own = found == tenants_.end() ? Stats{} : found->second;
  if (own.regions >= limits.tenant_regions) {
    return RefuseLimit("shared_memory.tenant_regions", limits.tenant_regions, own.regions + 1,
                       "regions of the tenant's shared memory");
  }
  if (total_.regions >= limits.regions) {
    return RefuseLimit("shared_memory.regions", limits.regions, total_.regions + 1, "regions of all shared memory");
  }
  // Existing regions were within the limits once, and one region is at most 2^56 bytes: no sum overflows.
  if (bytes > limits.tenant_bytes - own.bytes) {
    return RefuseLimit("shared_memory.tenant_bytes", limits.tenant_bytes, own.bytes + bytes,
                       "bytes of the tenant's shared memory");
  }
  if (bytes > limits.bytes - total_.bytes) {
    return RefuseLimit("shared_memory.bytes", limits.bytes, total_.bytes + bytes, "bytes of all shared memory");
  }
  Stats& after = tenants_[tenant];
  ++after.regions;
  after.bytes += bytes;
  ++total_.regions;
  total_.bytes += bytes;
  return absl::OkStatus();
}

void RegionStore::Use::GiveBack(const std::string& tenant, int64_t bytes) {
  MutexLock lock(&mutex_);
  --total_.regions;
  total_.bytes -= bytes;
  const auto own = tenants_.find(tenant);
  own->second.bytes -= bytes;
  if (--own->second.regions == 0) tenants_.erase(own);
}

RegionStore::Stats RegionStore::Use::Total() const {
  MutexLock lock(&mutex_);
  return total_;
}

Shares RegionStore::Use::RegionShares(int64_t most) const {
  std::map<std::string, int64_t> regions;
  MutexLock lock(&mutex_);
  for (const auto& [tenant, use] : tenants_) regions[tenant] = use.regions;
  return SharesOf(regions, most);
}

Shares RegionStore::Use::ByteShares(int64_t most) const {
  std::map<std::string, int64_t> bytes;
  MutexLock lock(&mutex_);
  for (const auto& [tenant, use] : tenants_) bytes[tenant] = use.bytes;
  return SharesOf(bytes, most);
}

void RegionStore::SetLimits(const Limits& limits) {
  MutexLock lock(&mutex_);
  limits_ = limits;
}

RegionStore::Limits RegionStore::limits() const {
  MutexLock lock(&mutex_);
  return limits_;
}

absl::StatusOr<SharedRegionPtr> RegionStore::Allocate(const std::string& tenant, int64_t size_bytes) {
  constexpr int64_t kMostBytes = int64_t{1} << 56;
  if (size_bytes <= 0) {
    return Refuse(Refusal::kAttributeInvalid, absl::StrCat("a region has at least one byte, not ", size_bytes));
  }
  const Limits limits = this->limits();
  if (size_bytes > limits.region_bytes || size_bytes > kMostBytes) {
    return RefuseLimit("shared_memory.region_bytes", limits.region_bytes, size_bytes,
                       "bytes of a region of shared memory");
  }
  ASSIGN_OR_RETURN(std::string id, NewRandomId());
  const int64_t bytes = SharedRegion::WholePages(size_bytes);
  ASSIGN_OR_RETURN(std::function<void()> give_back, Reserve(limits, tenant, bytes));
  // The region gives back the reservation, even if it cannot be made.
  absl::StatusOr<SharedRegionPtr> region = SharedRegion::Create(id, tenant, size_bytes, std::move(give_back));
  if (!region.ok()) {
    out_of_memory_.fetch_add(1, std::memory_order_relaxed);  // nothing else makes it fail
    return region;
  }
  MutexLock lock(&mutex_);
  regions_.emplace(std::move(id), *region);
  return region;
}

absl::StatusOr<std::function<void()>> RegionStore::Reserve(const Limits& limits, const std::string& tenant,
                                                           int64_t bytes) {
  RETURN_IF_ERROR(use_->Take(limits, tenant, bytes));
  if (memory_ == nullptr) {
    return [use = use_, tenant, bytes] { use->GiveBack(tenant, bytes); };
  }
  absl::Status reserved = memory_->Reserve(bytes);
  if (!reserved.ok()) {
    use_->GiveBack(tenant, bytes);
    out_of_memory_.fetch_add(1, std::memory_order_relaxed);
    return reserved;
  }
  return [use = use_, memory = memory_, tenant, bytes] {
    use->GiveBack(tenant, bytes);
    memory->Unreserve(bytes);
  };
}

void RegionStore::Remove(const std::string& id) {
  SharedRegionPtr removed;  // goes after the lock: its pages take time
  MutexLock lock(&mutex_);
  const auto found = regions_.find(id);
  if (found == regions_.end()) return;
  removed = std::move(found->second);
  regions_.erase(found);
}

void RegionStore::LeaveToClients() {
  MutexLock lock(&mutex_);
  for (const auto& [id, region] : regions_) region->LeavePages();
}

std::optional<std::string> RegionStore::OwnerOf(const std::string& id) const {
  MutexLock lock(&mutex_);
  const auto found = regions_.find(id);
  if (found == regions_.end()) return std::nullopt;
  return found->second->tenant();
}

absl::StatusOr<SharedPart> RegionStore::Find(absl::string_view tenant, const std::string& id, int64_t offset,
                                             int64_t size_bytes) const {
  SharedPart part{.region = nullptr, .bytes = nullptr, .size_bytes = size_bytes};
  {
    MutexLock lock(&mutex_);
    const auto found = regions_.find(id);
    if (found != regions_.end() && found->second->tenant() == tenant) part.region = found->second;
  }
  if (part.region == nullptr) {
    return Refuse(Refusal::kRegionUnknown,
                  "the tenant has no shared memory of that name: it was freed, or its connection was closed");
  }
  const int64_t all = part.region->size_bytes();
  if (offset < 0 || offset % kSharedAlignment != 0 || size_bytes < 0 || offset > all || size_bytes > all - offset) {
    return Refuse(Refusal::kRegionRange,
                  absl::StrCat("a place in shared memory begins at a multiple of ", kSharedAlignment,
                               " and ends in its region, which has ", all, " bytes: ", size_bytes, " at ", offset));
  }
  part.bytes = part.region->bytes() + offset;
  return part;
}

}  // namespace tensord::server
