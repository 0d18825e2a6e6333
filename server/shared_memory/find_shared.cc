#include "server/shared_memory/find_shared.h"

#include "engine/base/refusal.h"

namespace tensord::server {

absl::StatusOr<SharedPart> FindShared(const RegionStore* regions, const std::string& tenant, const std::string& region,
                                      int64_t offset, int64_t size_bytes) {
  if (regions == nullptr) {
    return Refuse(Refusal::kUnsupportedRequest, "this server shares no memory: shared_memory.listen is not set");
  }
  return regions->Find(tenant, region, offset, size_bytes);
}

absl::StatusOr<SharedPart> FindShared(const RegionStore* regions, const std::string& tenant,
                                      const v1::SharedSpace& space) {
  return FindShared(regions, tenant, space.region(), space.offset(), space.byte_count());
}

}  // namespace tensord::server
