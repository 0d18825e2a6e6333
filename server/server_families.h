#ifndef TENSORD_SERVER_SERVER_FAMILIES_H_
#define TENSORD_SERVER_SERVER_FAMILIES_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/ir/op_registry.h"
#include "server/config/server_config.pb.h"

namespace tensord {
struct DeviceKernels;  // engine/families/family_plugin.h
struct FamilyPlugin;
}  // namespace tensord

namespace tensord::server {

// The families of one server: the built-in ones, and those of the plugins that its configuration names. Immutable, so
// thread-safe.
class ServerFamilies {
 public:
  // Loads the families. INVALID_ARGUMENT, with the path, if a plugin cannot be used. `audit_kernels` knows the tables
  // of a backend, and checks a plugin's.
  static absl::StatusOr<std::unique_ptr<const ServerFamilies>> Load(
      const ServerConfig& config, absl::FunctionRef<absl::Status(const FamilyPlugin&)> audit_kernels);

  const OpRegistry& registry() const { return *registry_; }
  // Returns the plugins' kernels for a kind of device: "cpu".
  std::vector<DeviceKernels> KernelsOf(absl::string_view device_kind) const;
  // "sample of /usr/lib/tensord/sample.so"; one a plugin.
  const std::vector<std::string>& loaded() const { return loaded_; }

 private:
  ServerFamilies() = default;

  std::vector<absl::Span<const OpDef>> families_;
  std::vector<const FamilyPlugin*> plugins_;
  std::vector<std::string> loaded_;
  std::optional<OpRegistry> registry_;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_SERVER_FAMILIES_H_
