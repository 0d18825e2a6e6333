#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "clients/cli/operators/admin_connection.h"
#include "clients/cli/operators/named_programs.h"
#include "clients/cli/shell/command.h"
#include "clients/cli/shell/short_text.h"
#include "clients/cli/shell/table.h"

namespace tensord::cli {
namespace {

constexpr size_t kShownDigits = 12;

// "signal 8 in its compile, 2026-11-28T10:00:00Z"; "beside" for one that is only suspected.
std::string WhyQuarantined(const v1::Quarantine& quarantine) {
  std::string work = "run";
  if (quarantine.work() == v1::Quarantine::WORK_COMPILE) work = "compilation";
  if (quarantine.work() == v1::Quarantine::WORK_RESTORE) work = "restoring";
  return absl::StrFormat(
      "signal %d %s its %s, %s", quarantine.signal(), quarantine.known() ? "in" : "during", work,
      absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixSeconds(quarantine.since().seconds()), absl::UTCTimeZone()));
}

std::vector<std::string> ProgramCells(const v1::ProgramEntry& entry) {
  const bool is_in_memory = !entry.program().device().empty();
  std::string used;
  if (entry.has_last_used()) {
    const absl::Time time = absl::FromUnixSeconds(entry.last_used().seconds());
    used = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
  }
  const std::string place = entry.has_quarantine() ? "quarantine"
                            : !is_in_memory        ? "disk"
                            : entry.on_disk()      ? "memory,disk"
                                                   : "memory";
  std::string mean;
  if (entry.has_mean_run_time()) {
    mean = ShortTime(absl::Seconds(entry.mean_run_time().seconds()) + absl::Nanoseconds(entry.mean_run_time().nanos()));
  }
  return {entry.program().fingerprint().substr(0, kShownDigits),
          place,
          entry.program().device(),
          absl::StrCat(entry.bytes()),
          absl::StrCat(entry.run_count()),
          mean,
          used,
          entry.tenant(),
          entry.has_quarantine() ? WhyQuarantined(entry.quarantine()) : entry.graph_name()};
}

std::string ProgramsText(const v1::ListProgramsResponse& programs) {
  Table table({"PROGRAM", "PLACE", "DEVICE", ">BYTES", ">RUNS", ">MEAN RUN", "LAST USED", "TENANT", "GRAPH"});
  for (const v1::ProgramEntry& entry : programs.programs()) table.Add(ProgramCells(entry));
  return table.Text();
}

int Release(const Arguments& arguments, Console& console) {
  v1::ReleaseProgramsRequest request;
  for (const std::string& fingerprint : arguments.positional()) request.add_fingerprints(fingerprint);
  request.set_all(arguments.Has("all"));
  const absl::Status named = CheckNamed(request.fingerprints(), request.all());
  if (!named.ok()) return console.Usage("programs", named.message());
  return WithAdmin("programs", arguments, console, [&](client::AdminClient& admin) {
    const absl::Status completed = CompleteFingerprints(admin, request.mutable_fingerprints());
    if (!completed.ok()) return console.Fail(completed);
    const absl::StatusOr<int64_t> released = admin.ReleasePrograms(request);
    if (!released.ok()) return console.Fail(released.status());
    if (console.is_json()) {
      v1::ReleaseProgramsResponse response;
      response.set_released(*released);
      return console.PrintJson(response);
    }
    console.out() << "released " << *released << "\n";
    return kExitOk;
  });
}

int ListPrograms(const Arguments& arguments, Console& console) {
  return WithAdmin("programs", arguments, console, [&console](client::AdminClient& admin) {
    absl::StatusOr<v1::ListProgramsResponse> programs = admin.ListPrograms();
    if (!programs.ok()) return console.Fail(programs.status());
    if (console.is_json()) return console.PrintJson(*programs);
    console.out() << ProgramsText(*programs);
    return kExitOk;
  });
}

int Programs(const Arguments& arguments, Console& console) {
  if (arguments.Has("release")) return Release(arguments, console);
  if (!arguments.positional().empty()) {
    return console.Usage("programs", absl::StrCat("unexpected argument: ", arguments.positional()[0],
                                                  "; programs are named to be released, with --release"));
  }
  if (arguments.Has("all")) return console.Usage("programs", "--all goes with --release");
  return ListPrograms(arguments, console);
}

}  // namespace

Command ProgramsCommand() {
  std::vector<FlagSpec> flags = {
      {.name = "release", .help = "Let the programs named out of quarantine instead of listing all"},
      {.name = "all", .help = "With --release: all that are there"}};
  for (FlagSpec& flag : AdminFlags()) flags.push_back(std::move(flag));
  return {.name = "programs",
          .operands = "[FINGERPRINT…]",
          .summary = "List the programs that the server keeps, or release them from quarantine",
          .details =
              "MEAN RUN is that of the latest runs, TENANT the one whose run was the last. A program in quarantine has "
              "the reason in place of its graph.\n"
              "A fingerprint may be shortened to what tells it from others.\n",
          .flags = std::move(flags),
          .run = &Programs};
}

}  // namespace tensord::cli
