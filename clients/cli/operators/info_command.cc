#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "clients/cli/programs/program_text.h"
#include "clients/cli/shell/command.h"
#include "clients/cli/shell/connection.h"
#include "tensord/client.h"
#include "tensord/messages.h"

namespace tensord::cli {
namespace {

std::string DeviceLine(const v1::Device& device) {
  return absl::StrFormat("device %s: %s, %s, %d executors, %d of %d bytes used\n", device.name(), device.kind(),
                         device.ready() ? "ready" : "not ready", device.executors(), device.memory_used_bytes(),
                         device.memory_bytes());
}

std::string LibraryLines(const v1::Device& device) {
  std::string lines;
  for (const v1::Device::Library& library : device.libraries()) {
    lines +=
        absl::StrFormat("library %s: %s %s, %s\n", device.name(), library.name(), library.version(), library.path());
  }
  return lines;
}

std::string CapabilityLine(const v1::Capability& capability) {
  std::vector<std::string> dtypes;
  for (const int dtype : capability.dtypes()) dtypes.push_back(DTypeText(static_cast<v1::DType>(dtype)));
  return absl::StrFormat("%-8s %-32s %s\n", capability.device(), capability.op(), absl::StrJoin(dtypes, " "));
}

int Info(const Arguments& arguments, Console& console) {
  absl::StatusOr<client::ConnectOptions> options = ParseConnection(arguments, kLookDeadline);
  if (!options.ok()) return console.Usage("info", options.status().message());
  absl::StatusOr<std::unique_ptr<client::Client>> client = client::Client::Connect(*std::move(options));
  if (!client.ok()) return console.Fail(client.status());
  absl::StatusOr<v1::ServerInfo> info = (*client)->GetServerInfo(arguments.Has("capabilities"));
  if (!info.ok()) return console.Fail(info.status());
  if (console.is_json()) return console.PrintJson(*info);

  console.Print(absl::StrCat("tensord ", info->version(), " at ", (*client)->target(), "\n"));
  for (const v1::Device& device : info->devices())
    console.Print(absl::StrCat(DeviceLine(device), LibraryLines(device)));
  for (const std::string& family : info->families()) console.Print(absl::StrCat("family ", family, "\n"));
  for (const v1::Limit& limit : info->limits())
    console.Print(absl::StrCat("limit ", limit.name(), " = ", limit.value(), "\n"));
  for (const v1::Capability& capability : info->capabilities()) console.Print(CapabilityLine(capability));
  return kExitOk;
}

}  // namespace

Command InfoCommand() {
  std::vector<FlagSpec> flags = {
      {.name = "capabilities", .help = "Also list which operation runs on which device for which dtypes"}};
  for (FlagSpec& flag : ConnectionFlags(kLookDeadline)) flags.push_back(std::move(flag));
  return {.name = "info",
          .operands = "",
          .summary = "Show the server's version, devices, families and limits",
          .details = "",
          .flags = std::move(flags),
          .run = &Info};
}

}  // namespace tensord::cli
