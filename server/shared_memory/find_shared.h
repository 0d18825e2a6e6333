#ifndef TENSORD_SERVER_SHARED_MEMORY_FIND_SHARED_H_
#define TENSORD_SERVER_SHARED_MEMORY_FIND_SHARED_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "server/shared_memory/region_store.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {

// Finds the part of a region that a request names. Refuses as RegionStore::Find does; UNSUPPORTED_REQUEST if the server
// shares no memory, for which `regions` is null.
absl::StatusOr<SharedPart> FindShared(const RegionStore* regions, const std::string& tenant, const std::string& region,
                                      int64_t offset, int64_t size_bytes);
absl::StatusOr<SharedPart> FindShared(const RegionStore* regions, const std::string& tenant,
                                      const v1::SharedSpace& space);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_SHARED_MEMORY_FIND_SHARED_H_
