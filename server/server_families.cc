#include "server/server_families.h"

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/families/all_families.h"
#include "engine/families/family_plugin.h"
#include "engine/families/plugin_loader.h"
#include "proto/codec/op_wire.h"

namespace tensord::server {
namespace {

absl::Status Unloadable(absl::string_view path, const absl::Status& why) {
  if (why.ok()) return why;
  return absl::InvalidArgumentError(absl::StrCat("the plugin ", path, " cannot be loaded: ", why.message()));
}

// Checks that each op's message is linked in, and has a field for every attribute.
absl::Status CheckMessages(absl::string_view path, absl::Span<const OpDef> ops) {
  for (const OpDef& op : ops) {
    const auto message = codec::NewExtension(op);
    const absl::Status fits =
        message.ok() ? codec::FieldsOf(op, *(*message)->GetDescriptor()).status() : message.status();
    RETURN_IF_ERROR(Unloadable(path, fits));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<const ServerFamilies>> ServerFamilies::Load(
    const ServerConfig& config, absl::FunctionRef<absl::Status(const FamilyPlugin&)> audit_kernels) {
  std::unique_ptr<ServerFamilies> families(new ServerFamilies());
  families->families_.assign(AllFamilies().begin(), AllFamilies().end());
  for (const std::string& path : config.families().plugins()) {
    ASSIGN_OR_RETURN(const FamilyPlugin* const plugin, LoadFamilyPlugin(path, families->families_));
    const absl::Span<const OpDef> ops(plugin->ops, plugin->num_ops);
    RETURN_IF_ERROR(Unloadable(path, audit_kernels(*plugin)));
    RETURN_IF_ERROR(CheckMessages(path, ops));
    families->families_.push_back(ops);
    families->plugins_.push_back(plugin);
    families->loaded_.push_back(absl::StrCat(plugin->family, " of ", path));
  }
  families->registry_.emplace(families->families_);
  return families;
}

std::vector<DeviceKernels> ServerFamilies::KernelsOf(absl::string_view device_kind) const {
  std::vector<DeviceKernels> kernels;
  for (const FamilyPlugin* plugin : plugins_) {
    for (const DeviceKernels& of_device : absl::MakeConstSpan(plugin->kernels, plugin->num_kernels)) {
      if (of_device.device_kind == device_kind) kernels.push_back(of_device);
    }
  }
  return kernels;
}

}  // namespace tensord::server
