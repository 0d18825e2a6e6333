#ifndef TENSORD_SERVER_CONFIG_DEVICE_NAMES_H_
#define TENSORD_SERVER_CONFIG_DEVICE_NAMES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/config/server_config.pb.h"

namespace tensord::server {

// The kinds of devices, which are also the groups of their settings.
inline constexpr char kCpuKind[] = "cpu";
inline constexpr char kCudaKind[] = "cuda";

// A device of a configuration.
struct DeviceName {
  std::string kind;
  int ordinal = 0;  // among those of its kind

  // Returns the name that clients see: "cpu:0".
  std::string full() const;
  friend bool operator==(const DeviceName&, const DeviceName&) = default;
};

// Returns the devices of a configuration, the default one first and the others in their order. INVALID_ARGUMENT names
// the setting: for a name of no device, a device that is there twice, and a default that is not among them.
absl::StatusOr<std::vector<DeviceName>> DevicesOf(const ServerConfig& config);

// Tells whether a device of that kind is configured.
bool HasDevice(const ServerConfig& config, absl::string_view kind);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONFIG_DEVICE_NAMES_H_
