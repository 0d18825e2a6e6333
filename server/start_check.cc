#include "server/start_check.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "engine/runtime/programs/program_folder.h"
#include "proto/graph_file/graph_file.h"
#include "server/config/config_file.h"
#include "server/devices.h"
#include "server/identity/identity_policy.h"
#include "server/identity/tls_material.h"
#include "server/server_addresses.h"
#include "server/tracing/tracer_options.h"
#include "server/version.h"

namespace tensord::server {
namespace {

// Not opened: it may be a pipe, whose other end would hear of it.
absl::Status CheckReadable(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || access(path.c_str(), R_OK) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("cannot be read: ", std::strerror(errno)));
  }
  if (S_ISDIR(info.st_mode)) return absl::InvalidArgumentError("is a folder");
  return absl::OkStatus();
}

absl::Status CheckGraphs(const ServerConfig::WarmUp& config) {
  if (!config.required()) return absl::OkStatus();
  for (const std::string& path : config.graphs()) {
    const absl::Status format = wire::GraphFormatOf(path).status();
    if (!format.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("setting warm_up.graphs, ", path, ": ", format.message()));
    }
    const absl::Status readable = CheckReadable(path);
    if (!readable.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("setting warm_up.graphs, ", path, ": ", readable.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPlugins(const ServerConfig::Families& config) {
  for (const std::string& path : config.plugins()) {
    const absl::Status found = absl::StrContains(path, '/')
                                   ? CheckReadable(path)
                                   : absl::InvalidArgumentError("name it by a path with a folder");
    if (found.ok()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the plugin ", path, " cannot be loaded: ", found.message(), " (setting families.plugins)"));
  }
  return absl::OkStatus();
}

absl::Status CheckDiskPath(const std::string& path) {
  const absl::Status folder = path.empty() ? absl::OkStatus() : CheckProgramFolder(path);
  if (folder.ok()) return folder;
  return absl::InvalidArgumentError(absl::StrCat("setting program_cache.disk_path: ", folder.message()));
}

// If memory is counted strictly, pages that a client gave back of a region may be gone when the server writes there.
absl::Status CheckSharedMemory(const ServerConfig::SharedMemory& config) {
  if (config.listen().empty()) return absl::OkStatus();
  std::ifstream file("/proc/sys/vm/overcommit_memory");
  int mode = 0;
  if (!(file >> mode) || mode != 2) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "setting shared_memory.listen: with vm.overcommit_memory=2 the system may refuse memory that is mapped, which "
      "would end the server; set it to 0 or 1, or share none");
}

}  // namespace

absl::Status CheckStart(const ServerConfig& config, const TlsMaterial* running) {
  RETURN_IF_ERROR(ValidateConfig(config));
  RETURN_IF_ERROR(CheckDeviceSettings(config));
  RETURN_IF_ERROR(ParseServerAddresses(config).status());
  RETURN_IF_ERROR(CheckSharedMemory(config.shared_memory()));
  RETURN_IF_ERROR(LoadIdentityPolicy(config).status());
  if (!config.tls().certificate().empty()) {
    RETURN_IF_ERROR(LoadTlsMaterial(config.tls(), absl::Now(), running).status());
  }
  if (!config.tracing().endpoint().empty()) RETURN_IF_ERROR(LoadTracerOptions(config.tracing(), Version()).status());
  RETURN_IF_ERROR(CheckDiskPath(config.program_cache().disk_path()));
  RETURN_IF_ERROR(CheckGraphs(config.warm_up()));
  return CheckPlugins(config.families());
}

}  // namespace tensord::server
