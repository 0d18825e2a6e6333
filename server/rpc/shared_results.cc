#include "server/rpc/shared_results.h"

#include <algorithm>
#include <utility>

#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "server/rpc/execute_response.h"
#include "server/rpc/spread_copy.h"

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

absl::StatusOr<SharedResults> SharedResults::Find(const v1::ExecuteRequest& request, const RegionStore* regions,
                                                  const std::string& tenant) {
  SharedResults found;
  for (int i = 0; i < request.results_size(); ++i) {
    const v1::ResultOption& option = request.results(i);
    if (!option.has_shared() || !IsSent(option)) continue;
    found.parts_.resize(static_cast<size_t>(i) + 1);
    ASSIGN_OR_RETURN(found.parts_.back(), FindShared(regions, tenant, option.shared()));
  }
  return found;
}

std::vector<bool> SharedResults::Write(absl::Span<const HostTensor> results, const ParallelFor& parallel_for) const {
  std::vector<bool> placed(parts_.empty() ? 0 : results.size(), false);
  for (size_t i = 0; i < std::min(parts_.size(), results.size()); ++i) {
    const int64_t bytes = results[i].type.num_bytes();
    if (parts_[i].region == nullptr || bytes == 0 || bytes > parts_[i].size_bytes) continue;
    const char* const from = static_cast<const char*>(results[i].bytes.get());
    SpreadCopy({from, static_cast<size_t>(bytes)}, parts_[i].bytes, parallel_for);
    placed[i] = true;
  }
  return placed;
}

}  // namespace tensord::server
