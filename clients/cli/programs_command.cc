#include <string>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "clients/cli/admin_connection.h"
#include "clients/cli/command.h"

namespace tensord::cli {
namespace {

constexpr size_t kShownDigits = 12;

std::string ProgramLine(const v1::ProgramEntry& entry) {
  const bool is_in_memory = !entry.program().device().empty();
  std::string used = "-";
  if (entry.has_last_used()) {
    const absl::Time time = absl::FromUnixSeconds(entry.last_used().seconds());
    used = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
  }
  const absl::string_view place = !is_in_memory ? "disk" : entry.on_disk() ? "memory, disk" : "memory";
  return absl::StrFormat("%s %-12s %-8s %12d bytes %9d runs  %-20s %s\n",
                         entry.program().fingerprint().substr(0, kShownDigits), place, entry.program().device(),
                         entry.bytes(), entry.run_count(), used, entry.graph_name());
}

int ListPrograms(const Arguments& arguments, Console& console) {
  return WithAdmin("programs", arguments, console, [&console](client::AdminClient& admin) {
    absl::StatusOr<v1::ListProgramsResponse> programs = admin.ListPrograms();
    if (!programs.ok()) return console.Fail(programs.status());
    if (console.is_json()) return console.PrintJson(*programs);
    for (const v1::ProgramEntry& entry : programs->programs()) console.out() << ProgramLine(entry);
    return kExitOk;
  });
}

}  // namespace

Command ProgramsCommand() {
  return {.name = "programs",
          .operands = "",
          .summary = "List the programs that the server keeps",
          .details = "One line each: fingerprint, where it is, device, memory, runs, last use, the graph's name.\n",
          .flags = AdminFlags(),
          .run = &ListPrograms};
}

}  // namespace tensord::cli
