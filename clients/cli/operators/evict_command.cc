#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "clients/cli/operators/admin_connection.h"
#include "clients/cli/operators/named_programs.h"
#include "clients/cli/shell/command.h"

namespace tensord::cli {
namespace {

int Evict(const Arguments& arguments, Console& console) {
  v1::EvictProgramsRequest request;
  for (const std::string& fingerprint : arguments.positional()) request.add_fingerprints(fingerprint);
  request.set_all(arguments.Has("all"));
  request.set_disk_too(arguments.Has("disk"));
  const absl::Status named = CheckNamed(request.fingerprints(), request.all());
  if (!named.ok()) return console.Usage("evict", named.message());
  return WithAdmin("evict", arguments, console, [&](client::AdminClient& admin) {
    const absl::Status completed = CompleteFingerprints(admin, request.mutable_fingerprints());
    if (!completed.ok()) return console.Fail(completed);
    const absl::StatusOr<int64_t> evicted = admin.EvictPrograms(request);
    if (!evicted.ok()) return console.Fail(evicted.status());
    if (console.is_json()) {
      v1::EvictProgramsResponse response;
      response.set_evicted(*evicted);
      return console.PrintJson(response);
    }
    console.out() << "evicted " << *evicted << "\n";
    return kExitOk;
  });
}

}  // namespace

Command EvictCommand() {
  std::vector<FlagSpec> flags = {{.name = "all", .help = "All programs"},
                                 {.name = "disk", .help = "From the disk too"}};
  for (FlagSpec& flag : AdminFlags()) flags.push_back(std::move(flag));
  return {
      .name = "evict",
      .operands = "[FINGERPRINT…]",
      .summary = "Make the server forget programs",
      .details = "A fingerprint may be shortened to what tells it from others. Runs in progress keep their program.\n",
      .flags = std::move(flags),
      .run = &Evict};
}

}  // namespace tensord::cli
