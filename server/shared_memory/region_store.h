#ifndef TENSORD_SERVER_SHARED_MEMORY_REGION_STORE_H_
#define TENSORD_SERVER_SHARED_MEMORY_REGION_STORE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/mutex.h"
#include "engine/base/shares.h"
#include "engine/exec/memory/host_buffer_pool.h"
#include "server/shared_memory/shared_region.h"

namespace tensord::server {

// A part of a region, and the owner that keeps it.
struct SharedPart {
  SharedRegionPtr region;
  char* bytes = nullptr;
  int64_t size_bytes = 0;
};

// Offsets into regions are multiples of it, so that a tensor there is aligned as backends want it.
inline constexpr int64_t kSharedAlignment = 64;

// The regions of all tenants, by id, held to limits before memory is taken. A removed region counts until the last
// request that uses it is done. Another tenant's region counts as missing. Thread-safe; regions may outlive it.
class RegionStore {
 public:
  // The most regions of all tenants: each is a mapping, and Linux gives a process 65,530 by default.
  static constexpr int64_t kMostRegions = 16384;

  struct Limits {
    int64_t region_bytes = std::numeric_limits<int64_t>::max();
    int64_t tenant_bytes = std::numeric_limits<int64_t>::max();
    int64_t bytes = std::numeric_limits<int64_t>::max();
    int64_t tenant_regions = std::numeric_limits<int64_t>::max();
    int64_t regions = kMostRegions;
  };
  struct Stats {
    int64_t regions = 0;
    int64_t bytes = 0;
  };

  // `memory`: in whose limit the regions count, beside its tensors; null: in none.
  explicit RegionStore(const Limits& limits, std::shared_ptr<HostBufferPool> memory = nullptr)
      : memory_(std::move(memory)), limits_(limits) {}
  RegionStore(const RegionStore&) = delete;
  RegionStore& operator=(const RegionStore&) = delete;

  // Sets the limits of regions made from now on; existing ones stay.
  void SetLimits(const Limits& limits);
  Limits limits() const;

  // Fails with ATTRIBUTE_INVALID unless `size_bytes` is positive; LIMIT_EXCEEDED, naming the limit; OUT_OF_MEMORY.
  absl::StatusOr<SharedRegionPtr> Allocate(const std::string& tenant, int64_t size_bytes);
  // Removes a region: nobody finds it from now on.
  void Remove(const std::string& id);

  // Leaves the present regions to their clients, before the end of the server.
  void LeaveToClients();

  // Fails with REGION_UNKNOWN, and REGION_RANGE if the part is not inside the region or not aligned.
  absl::StatusOr<SharedPart> Find(absl::string_view tenant, const std::string& id, int64_t offset,
                                  int64_t size_bytes) const;

  // Returns the region's tenant; nothing if there is no such region.
  std::optional<std::string> OwnerOf(const std::string& id) const;

  Stats stats() const { return use_->Total(); }
  // Returns each tenant's used share of its regions and bytes.
  Shares TenantRegionShares() const { return use_->RegionShares(limits().tenant_regions); }
  Shares TenantByteShares() const { return use_->ByteShares(limits().tenant_bytes); }
  // Regions for which there was no memory, since the start.
  int64_t out_of_memory() const { return out_of_memory_.load(std::memory_order_relaxed); }

 private:
  // The regions in use, by tenant; kept by the regions too.
  class Use {
   public:
    absl::Status Take(const Limits& limits, const std::string& tenant, int64_t bytes);
    void GiveBack(const std::string& tenant, int64_t bytes);
    Stats Total() const;
    Shares RegionShares(int64_t most) const;
    Shares ByteShares(int64_t most) const;

   private:
    mutable Mutex mutex_;
    Stats total_ ABSL_GUARDED_BY(mutex_);
    absl::flat_hash_map<std::string, Stats> tenants_ ABSL_GUARDED_BY(mutex_);  // those with regions
  };

  // Reserves a region of that size, and returns the function that gives it back; called when the region is gone.
  absl::StatusOr<std::function<void()>> Reserve(const Limits& limits, const std::string& tenant, int64_t bytes);

  const std::shared_ptr<HostBufferPool> memory_;
  const std::shared_ptr<Use> use_ = std::make_shared<Use>();
  std::atomic<int64_t> out_of_memory_{0};
  mutable Mutex mutex_;
  Limits limits_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, SharedRegionPtr> regions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_SHARED_MEMORY_REGION_STORE_H_
