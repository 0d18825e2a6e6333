#include "server/config/device_names.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/base/status_macros.h"

namespace tensord::server {
namespace {

// More are in no machine. The number bounds what is printed and compared, nothing else.
constexpr int kMostOfAKind = 1024;

// Reads "cpu", "cuda" or "cuda:1"; without a number it is the first of its kind.
absl::StatusOr<DeviceName> Parse(absl::string_view setting, absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  DeviceName name{.kind = std::string(parts.first)};
  const bool has_number = parts.first.size() < text.size();
  const bool is_number = std::all_of(parts.second.begin(), parts.second.end(), absl::ascii_isdigit) &&
                         absl::SimpleAtoi(parts.second, &name.ordinal) && name.ordinal < kMostOfAKind;
  const bool is_known = name.kind == kCudaKind || (name.kind == kCpuKind && name.ordinal == 0);
  if (is_known && (is_number || !has_number)) return name;
  return absl::InvalidArgumentError(
      absl::StrCat("setting ", setting, " takes \"cpu\" and \"cuda:N\", not \"", text, "\""));
}

}  // namespace

std::string DeviceName::full() const { return absl::StrCat(kind, ":", ordinal); }

absl::StatusOr<std::vector<DeviceName>> DevicesOf(const ServerConfig& config) {
  std::vector<DeviceName> devices;
  for (const std::string& text : config.devices()) {
    ASSIGN_OR_RETURN(DeviceName device, Parse("devices", text));
    if (std::find(devices.begin(), devices.end(), device) != devices.end()) {
      return absl::InvalidArgumentError(absl::StrCat("setting devices has ", device.full(), " twice"));
    }
    devices.push_back(std::move(device));
  }
  if (devices.empty()) devices.push_back({.kind = kCpuKind});
  if (config.default_device().empty()) return devices;
  ASSIGN_OR_RETURN(const DeviceName first, Parse("default_device", config.default_device()));
  const auto it = std::find(devices.begin(), devices.end(), first);
  if (it == devices.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("setting default_device: ", first.full(), " is not among the devices; add it to devices"));
  }
  std::rotate(devices.begin(), it, it + 1);
  return devices;
}

bool HasDevice(const ServerConfig& config, absl::string_view kind) {
  const absl::StatusOr<std::vector<DeviceName>> devices = DevicesOf(config);
  return devices.ok() && std::any_of(devices->begin(), devices->end(),
                                     [kind](const DeviceName& device) { return device.kind == kind; });
}

}  // namespace tensord::server
