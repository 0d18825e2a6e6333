#include "server/rpc/calls/handlers.h"
#include "server/rpc/programs/capabilities.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {
namespace {

void AddDevice(const DeviceExecutor& executor, bool ready, v1::ServerInfo* info) {
  const DeviceDescription description = executor.backend()->Describe();
  v1::Device* device = info->add_devices();
  device->set_name(executor.device());
  device->set_kind(description.model);
  device->set_ready(ready);
  device->set_memory_bytes(description.memory_bytes);
  device->set_memory_used_bytes(executor.backend()->Memory().in_use_bytes);
  device->set_executors(executor.workers());
  for (const DeviceLibrary& library : description.libraries) {
    v1::Device::Library* const shown = device->add_libraries();
    shown->set_name(library.name);
    shown->set_version(library.version);
    shown->set_path(library.path);
  }
}

void AddLimit(absl::string_view name, int64_t value, v1::ServerInfo* info) {
  v1::Limit* limit = info->add_limits();
  limit->set_name(std::string(name));
  limit->set_value(value);
}

}  // namespace

void HandleGetServerInfo(UnaryCall* call) {
  v1::GetServerInfoRequest request;
  const absl::Status parsed = call->Parse(&request);
  if (!parsed.ok()) return call->Fail(parsed);

  const ServiceParts& parts = call->parts();
  v1::ServerInfo info;
  info.set_version(parts.version);
  if (!parts.tensors.shared_memory_socket.empty()) {
    info.mutable_shared_memory()->set_socket(parts.tensors.shared_memory_socket);
    info.mutable_shared_memory()->set_transfers(true);
  }
  const bool ready = parts.admission.gate->snapshot().state == ServingState::kServing;
  for (const auto& executor : parts.devices.executors->all()) AddDevice(*executor, ready, &info);
  for (const auto& executor : parts.devices.executors->all())
    AddFamilies(*executor->backend(), *parts.programs.registry, &info);
  const codec::GraphLimits graph_limits = parts.admission.graph_limits.now();
  for (const codec::GraphLimitInfo& limit : codec::AllGraphLimits()) {
    AddLimit(limit.name, graph_limits.*limit.value, &info);
  }
  for (const ServerLimit& limit : parts.admission.server_limits) AddLimit(limit.name, limit.value, &info);
  if (request.capabilities()) {
    for (const auto& executor : parts.devices.executors->all()) {
      AddCapabilities(executor->device(), *executor->backend(), *parts.programs.registry, &info);
    }
  }
  call->Reply(info);
}

}  // namespace tensord::server
