#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/admin_connection.h"
#include "clients/cli/command.h"

namespace tensord::cli {
namespace {

constexpr size_t kFingerprintDigits = 64;

// Replaces beginnings of fingerprints by the one program's that begins so.
absl::Status Complete(client::AdminClient& admin, v1::EvictProgramsRequest* request) {
  bool complete = true;
  for (const std::string& given : request->fingerprints()) complete &= given.size() == kFingerprintDigits;
  if (complete) return absl::OkStatus();
  absl::StatusOr<v1::ListProgramsResponse> programs = admin.ListPrograms();
  if (!programs.ok()) return programs.status();
  for (std::string& given : *request->mutable_fingerprints()) {
    std::vector<std::string> found;
    for (const v1::ProgramEntry& entry : programs->programs()) {
      if (absl::StartsWith(entry.program().fingerprint(), given)) found.push_back(entry.program().fingerprint());
    }
    if (found.size() != 1) {
      return absl::InvalidArgumentError(absl::StrCat(found.size(), " programs begin with ", given));
    }
    given = std::move(found.front());
  }
  return absl::OkStatus();
}

int Evict(const Arguments& arguments, Console& console) {
  v1::EvictProgramsRequest request;
  for (const std::string& fingerprint : arguments.positional()) request.add_fingerprints(fingerprint);
  request.set_all(arguments.Has("all"));
  request.set_disk_too(arguments.Has("disk"));
  if (request.all() == (request.fingerprints_size() > 0)) {
    return console.Usage("evict", "name the programs to forget, or --all");
  }
  for (const std::string& fingerprint : request.fingerprints()) {
    // Every program begins with nothing, and where there is one it would be that.
    if (fingerprint.empty()) return console.Usage("evict", "a fingerprint is empty; --all forgets all programs");
  }
  return WithAdmin("evict", arguments, console, [&](client::AdminClient& admin) {
    const absl::Status completed = Complete(admin, &request);
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
