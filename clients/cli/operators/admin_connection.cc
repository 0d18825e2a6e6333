#include "clients/cli/operators/admin_connection.h"

#include <memory>
#include <utility>

#include "absl/status/statusor.h"

namespace tensord::cli {

std::vector<FlagSpec> AdminFlags(absl::Duration deadline) {
  std::vector<FlagSpec> flags = {
      {.name = "admin",
       .placeholder = "ADDRESS",
       .help = "The server's listener for operators, its setting admin.listen: \"unix:/path\" or "
               "\"host:port\""}};
  for (FlagSpec& flag : ConnectionFlags(deadline)) {
    if (flag.name != "target") flags.push_back(std::move(flag));
  }
  return flags;
}

int WithAdmin(absl::string_view command, const Arguments& arguments, Console& console,
              const std::function<int(client::AdminClient&)>& work, absl::Duration deadline) {
  absl::StatusOr<client::ConnectOptions> options = ParseConnection(arguments, deadline);
  if (!options.ok()) return console.Usage(command, options.status().message());
  options->target = arguments.Value("admin").value_or("");
  if (options->target.empty()) return console.Usage(command, "--admin says where the server's operators connect");
  absl::StatusOr<std::unique_ptr<client::AdminClient>> client = client::AdminClient::Connect(*std::move(options));
  if (!client.ok()) return console.Fail(client.status());
  return work(**client);
}

}  // namespace tensord::cli
