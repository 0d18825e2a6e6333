#include "clients/cli/programs/program_flags.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/shell/connection.h"

namespace tensord::cli {

std::vector<FlagSpec> ProgramFlags() {
  std::vector<FlagSpec> flags = {
      {.name = "device", .placeholder = "DEVICE", .help = "cpu, cuda, xla or one device, cuda:0; default the server's"},
      {.name = "order", .placeholder = "row|column", .help = "Order of the elements in results; default row"},
      {.name = "disable-pass", .placeholder = "PASS", .help = "Leave an optimizer pass out", .is_repeatable = true}};
  for (FlagSpec& flag : ConnectionFlags(kWorkDeadline)) flags.push_back(std::move(flag));
  return flags;
}

absl::StatusOr<ProgramFlagValues> ParseProgramFlags(const Arguments& arguments) {
  if (arguments.positional().size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("needs exactly one graph file, ", arguments.positional().size(), " given"));
  }
  absl::StatusOr<ProgramFlagValues> values = ParseProgramOptions(arguments);
  if (values.ok()) values->graph_path = arguments.positional().front();
  return values;
}

absl::StatusOr<ProgramFlagValues> ParseProgramOptions(const Arguments& arguments) {
  ProgramFlagValues values;
  absl::StatusOr<client::ConnectOptions> connection = ParseConnection(arguments, kWorkDeadline);
  if (!connection.ok()) return connection.status();
  values.connection = *std::move(connection);
  values.options.device = arguments.Value("device").value_or("");
  values.options.disabled_passes = arguments.Values("disable-pass");
  const std::string order = arguments.Value("order").value_or("row");
  if (order != "row" && order != "column") {
    return absl::InvalidArgumentError(absl::StrCat("flag needs row or column: --order=", order));
  }
  values.options.order = order == "row" ? client::MemoryOrder::kRowMajor : client::MemoryOrder::kColumnMajor;
  return values;
}

}  // namespace tensord::cli
