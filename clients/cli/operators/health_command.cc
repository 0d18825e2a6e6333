#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "clients/cli/shell/command.h"
#include "clients/cli/shell/connection.h"
#include "google/protobuf/struct.pb.h"
#include "tensord/client.h"

namespace tensord::cli {
namespace {

// A probe that hangs is worse than one that fails.
constexpr absl::Duration kHealthDeadline = absl::Seconds(5);

int CheckHealth(const Arguments& arguments, Console& console) {
  absl::StatusOr<client::ConnectOptions> options = ParseConnection(arguments, kHealthDeadline);
  if (!options.ok()) return console.Usage("health", options.status().message());
  absl::StatusOr<std::unique_ptr<client::Client>> client = client::Client::Connect(*std::move(options));
  if (!client.ok()) return console.Fail(client.status());
  absl::StatusOr<client::Health> health = (*client)->CheckHealth(arguments.Value("service").value_or(""));
  if (!health.ok()) return console.Fail(health.status());
  const std::string name(client::HealthName(*health));
  if (console.is_json()) {
    google::protobuf::Struct result;
    (*result.mutable_fields())["status"].set_string_value(name);
    console.PrintJson(result);
  } else {
    console.out() << name << "\n";
  }
  return *health == client::Health::kServing ? kExitOk : kExitFailed;
}

}  // namespace

Command HealthCommand() {
  std::vector<FlagSpec> flags = {{.name = "service",
                                  .placeholder = "NAME",
                                  .help = "Ask about one service, for example tensord.v1.Compute; default the server"}};
  for (FlagSpec& flag : ConnectionFlags(kHealthDeadline)) flags.push_back(std::move(flag));
  return {.name = "health",
          .operands = "",
          .summary = "Ask whether the server serves (grpc.health.v1)",
          .details = "Exit status 0 only where the answer is SERVING, so that it may serve as a container's probe.\n",
          .flags = std::move(flags),
          .run = &CheckHealth};
}

}  // namespace tensord::cli
