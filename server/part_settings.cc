#include "server/part_settings.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "engine/families/einsum/einsum_path.h"
#include "engine/families/einsum/optimal_path.h"
#include "engine/ir/inference.h"
#include "server/config/automatic_settings.h"
#include "server/config/device_names.h"
#include "server/config/setting_options.h"
#include "server/devices.h"
#include "server/lifecycle/descriptor_limit.h"
#include "server/lifecycle/tenant_bytes.h"
#include "server/profiling/profiler.h"
#include "server/rpc/execute/execute_response.h"
#include "server/rpc/tensors/tensor_part.h"
#include "server/rpc/wire/message_plan.h"

namespace tensord::server {
namespace {

bool IsUnix(const std::string& address) { return absl::StartsWith(address, "unix:"); }

}  // namespace

ServerConfig Decided(const ServerConfig& config, const IdentityPolicy& policy) {
  return WithAutomaticSettings(
      config, {.tensor_bytes = MostTensorBytes(),
               .has_tenants = policy.table != nullptr && policy.table->num_tenants() > 1,
               .descriptors = AllowDescriptors(config.limits().connections() + DescriptorsBesideConnections(config))});
}

std::vector<ServerLimit> ServerLimitsOf(const ServerConfig& config) {
  std::vector<ServerLimit> limits = LimitSettings(config);
  if (!HasDevice(config, kCudaKind)) {
    std::erase_if(limits, [](const ServerLimit& limit) { return absl::StartsWith(limit.name, "cuda."); });
  }
  const ServerLimit fixed[] = {
      {"admin.connections", kMostAdminConnections},
      {"response_bytes", kMaxResponseBytes},
      {"chunk_bytes", kMaxChunkBytes},
      {kTensorBytesLimit, MostTensorBytes()},
      {"profiles", Profiler::Bounds::kProfiles},
      {"profile_ms", Profiler::Bounds::kMilliseconds},
      {"profile_samples_per_second", Profiler::Bounds::kSamplesPerSecond},
      {"shared_memory.regions", RegionStore::kMostRegions},
      {"message_items", kMostItems},
      {"value_rank", kMaxRank},
      {"expression_parts", kMaxExpressionParts},
      {"einsum_operands", kMaxEinsumOperands},
      {"einsum_incidences", kMaxEinsumIncidences},
      {"einsum_optimal_operands", OptimalSearch::kMaxTensors},
  };
  limits.insert(limits.end(), std::begin(fixed), std::end(fixed));
  return limits;
}

int64_t ShareOf(int64_t all, int64_t percent) {
  if (percent == 100) return TenantBytes::kUnlimited;
  return std::max<int64_t>(1, all / 100 * percent + all % 100 * percent / 100);
}

DeviceExecutor::Bounds DeviceBoundsOf(const ServerConfig& config, absl::string_view kind) {
  const ServerConfig::Scheduling& scheduling = config.scheduling();
  const bool is_cuda = kind == kCudaKind;
  const int64_t queue_length = is_cuda ? config.cuda().queue_length() : config.cpu().queue_length();
  return {.max_queued = queue_length,
          .max_queued_per_tenant = ShareOf(queue_length, scheduling.tenant_queue_percent()),
          .max_wait =
              scheduling.max_wait_ms() == 0 ? absl::InfiniteDuration() : absl::Milliseconds(scheduling.max_wait_ms()),
          .ageing = absl::Milliseconds(scheduling.ageing_ms()),
          .memory_bytes = is_cuda ? config.cuda().memory_bytes() : config.cpu().memory_bytes()};
}

CompilePool::Bounds CompileBoundsOf(const ServerConfig& config) {
  const int64_t length = config.compiler().queue_length();
  return {.max_queued = length, .max_queued_per_tenant = ShareOf(length, config.scheduling().tenant_queue_percent())};
}

TurnPool::Bounds ReaderBoundsOf(const ServerConfig& config) {
  const int64_t most = config.receive().queue_length();
  return {.max_queued = most, .max_queued_per_tenant = ShareOf(most, config.scheduling().tenant_queue_percent())};
}

int64_t MostUnreadOf(const ServerConfig& config) {
  const int64_t memory_bytes = config.cpu().memory_bytes();
  if (memory_bytes == 0) return TenantBytes::kUnlimited;
  return ShareOf(memory_bytes, config.scheduling().tenant_unread_percent());
}

RateLimiter::Options RateOf(const ServerConfig& config) {
  return {.per_second = config.scheduling().tenant_requests_per_second(), .burst = config.scheduling().tenant_burst()};
}

SessionStore::Limits SessionLimitsOf(const ServerConfig::Sessions& config) {
  return {.sessions = config.count(),
          .tenant_sessions = config.tenant_count(),
          .handles = config.handles(),
          .memory = {.tenant_bytes = config.tenant_bytes(), .device_bytes = config.device_bytes()},
          .default_lease = absl::Milliseconds(config.default_lease_ms()),
          .max_lease = absl::Milliseconds(config.max_lease_ms())};
}

RegionStore::Limits RegionLimitsOf(const ServerConfig::SharedMemory& config) {
  return {.region_bytes = config.region_bytes(),
          .tenant_bytes = config.tenant_bytes(),
          .bytes = config.bytes(),
          .tenant_regions = config.tenant_regions()};
}

bool ListensAtTcp(const ServerConfig& config) {
  return !std::all_of(config.listen().begin(), config.listen().end(), IsUnix);
}

ConnectionPlaces::Bounds ConnectionPlacesOf(const ServerConfig& config) {
  const int64_t most = config.limits().connections();
  const bool has_both = ListensAtTcp(config) && std::any_of(config.listen().begin(), config.listen().end(), IsUnix);
  return {
      .most = most, .for_unix = has_both ? most / 4 : 0, .most_of_address = config.limits().connections_per_address()};
}

int64_t MostMetadataOfAConnection(int64_t metadata_bytes) {
  return std::min(8 * metadata_bytes, metadata_bytes + (int64_t{1} << 20));
}

}  // namespace tensord::server
