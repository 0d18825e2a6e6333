#include "server/rpc/execute/shared_results.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <utility>

#include "engine/base/status_macros.h"
#include "server/observe/metrics/timed_transfer.h"
#include "server/rpc/execute/execute_response.h"
#include "server/rpc/wire/spread_copy.h"
#include "server/shared_memory/find_shared.h"

namespace tensord::server {
namespace {

constexpr size_t kOfArgument = std::numeric_limits<size_t>::max();

struct UsedBytes {
  const char* begin = nullptr;
  int64_t size_bytes = 0;
  size_t result = 0;  // whose place it is, or kOfArgument
  const char* end() const { return begin + size_bytes; }
};

// Returns the results whose places have bytes in common with anything else.
std::vector<size_t> OverlappedResults(std::vector<UsedBytes> used) {
  std::sort(used.begin(), used.end(),
            [](const UsedBytes& a, const UsedBytes& b) { return std::less<>()(a.begin, b.begin); });
  std::vector<size_t> overlapped;
  const UsedBytes* furthest = nullptr;  // of those before, the one that ends last
  for (const UsedBytes& one : used) {
    if (furthest != nullptr && std::less<>()(one.begin, furthest->end())) {
      for (const size_t result : {one.result, furthest->result}) {
        if (result != kOfArgument) overlapped.push_back(result);
      }
    }
    if (furthest == nullptr || std::less<>()(furthest->end(), one.end())) furthest = &one;
  }
  return overlapped;
}

}  // namespace

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

std::vector<HostSpace> SharedResults::Destinations(const v1::ExecuteRequest& request,
                                                   absl::Span<const RunTensor> arguments) const {
  std::vector<HostSpace> spaces(parts_.size());
  std::vector<UsedBytes> used;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const SharedPart& part = parts_[i];
    if (part.region == nullptr || part.size_bytes == 0) continue;
    used.push_back({part.bytes, part.size_bytes, i});
    if (IsKept(request.results(static_cast<int>(i)))) continue;
    spaces[i] = {.bytes = std::shared_ptr<void>(part.region, part.bytes), .size_bytes = part.size_bytes};
  }
  if (used.empty()) return {};
  for (const RunTensor& argument : arguments) {
    if (argument.bytes == nullptr) continue;  // resident, and so in no client's memory
    used.push_back({static_cast<const char*>(argument.bytes.get()), argument.type.num_bytes(), kOfArgument});
  }
  for (const size_t result : OverlappedResults(std::move(used))) spaces[result] = {};
  return spaces;
}

std::vector<bool> SharedResults::Write(absl::Span<const RunTensor> results, const ParallelFor& parallel_for,
                                       Metrics* metrics) const {
  std::vector<bool> placed(parts_.empty() ? 0 : results.size(), false);
  for (size_t i = 0; i < std::min(parts_.size(), results.size()); ++i) {
    const int64_t bytes = results[i].type.num_bytes();
    if (parts_[i].region == nullptr || bytes == 0 || bytes > parts_[i].size_bytes) continue;
    placed[i] = true;
    const char* const from = static_cast<const char*>(results[i].bytes.get());
    if (from == parts_[i].bytes) continue;  // computed there
    const TimedTransfer timed(metrics, Transfer::kShared, bytes);
    SpreadCopy({from, static_cast<size_t>(bytes)}, parts_[i].bytes, parallel_for);
  }
  return placed;
}

}  // namespace tensord::server
