#include "clients/cli/shell/connection.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tensord/access.h"

namespace tensord::cli {

std::vector<FlagSpec> ConnectionFlags(absl::Duration deadline) {
  return {{.name = "target",
           .placeholder = "ADDRESS",
           .help = "Server, \"unix:/path\" or \"host:port\"; default TENSORD_TARGET, or the user's own socket"},
          {.name = "tls", .help = "Connect by TLS; --ca, --certificate and TENSORD_TLS=1 mean it too"},
          {.name = "ca", .placeholder = "FILE", .help = "Who signs the server's certificate; or TENSORD_CA_FILE"},
          {.name = "certificate", .placeholder = "FILE", .help = "To show the server; or TENSORD_CERTIFICATE_FILE"},
          {.name = "key", .placeholder = "FILE", .help = "That certificate's key; or TENSORD_KEY_FILE"},
          {.name = "token-file", .placeholder = "FILE", .help = "To be let in; or TENSORD_TOKEN_FILE, TENSORD_TOKEN"},
          {.name = "deadline",
           .placeholder = "TIME",
           .help = absl::StrCat("Give up a call after this long, for example 90s or 500ms; default ",
                                absl::FormatDuration(deadline))},
          {.name = "json", .help = "Print the result as JSON"}};
}

absl::StatusOr<client::ConnectOptions> ParseConnection(const Arguments& arguments, absl::Duration deadline) {
  client::ConnectOptions options;
  options.deadline = deadline;
  options.target = arguments.Value("target").value_or("");
  client::Access access = client::AccessFromEnvironment();
  if (arguments.Has("tls")) access.tls = true;
  for (const auto& [flag, file] :
       {std::make_pair("ca", &access.ca_file), std::make_pair("certificate", &access.certificate_file),
        std::make_pair("key", &access.key_file), std::make_pair("token-file", &access.token_file)}) {
    if (const std::optional<std::string> value = arguments.Value(flag)) *file = *value;
  }
  // A flag wins over the environment.
  if (arguments.Has("token-file")) access.token.clear();
  const absl::Status set = client::SetAccess(access, &options);
  if (!set.ok()) return set;
  if (const std::optional<std::string> value = arguments.Value("deadline")) {
    const absl::StatusOr<absl::Duration> given = ParseTime("deadline", *value, absl::Nanoseconds(1));
    if (!given.ok()) return given.status();
    options.deadline = *given;
    options.connect_timeout = *given;
  }
  return options;
}

}  // namespace tensord::cli
