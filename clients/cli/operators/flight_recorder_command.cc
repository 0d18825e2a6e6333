#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "clients/cli/operators/admin_connection.h"
#include "clients/cli/shell/command.h"
#include "clients/cpp/wire/duration.h"

namespace tensord::cli {
namespace {

void AddNamed(absl::string_view name, absl::string_view value, std::string* line) {
  if (!value.empty()) absl::StrAppend(line, " ", name, "=", value);
}

std::string EntryLine(const v1::FlightEntry& entry) {
  const absl::Time time = absl::FromUnixSeconds(entry.time().seconds()) + absl::Nanoseconds(entry.time().nanos());
  std::string line = absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ ", time, absl::UTCTimeZone());
  if (entry.method().empty()) return absl::StrCat(line, entry.event(), " ", entry.message(), "\n");
  absl::StrAppendFormat(&line, "%s %s %.3f ms", entry.method(),
                        absl::StatusCodeToString(static_cast<absl::StatusCode>(entry.code())),
                        absl::ToDoubleMilliseconds(client::ToAbslDuration(entry.total())));
  AddNamed("reason", entry.reason(), &line);
  AddNamed("tenant", entry.tenant(), &line);
  AddNamed("request_id", entry.request_id(), &line);
  AddNamed("trace_id", entry.trace_id(), &line);
  AddNamed("program", entry.fingerprint(), &line);
  for (const v1::StageTime& stage : entry.stages()) {
    const int64_t micros = absl::ToInt64Microseconds(client::ToAbslDuration(stage.duration()));
    if (micros > 0) absl::StrAppend(&line, " ", stage.name(), "=", micros, "us");
  }
  return line + "\n";
}

int DumpFlightRecorder(const Arguments& arguments, Console& console) {
  v1::DumpFlightRecorderRequest request;
  request.set_notable_only(arguments.Has("notable"));
  if (const auto limit = arguments.Value("limit")) {
    int64_t parsed = 0;
    if (!absl::SimpleAtoi(*limit, &parsed) || parsed < 1) {
      return console.Usage("flight-recorder", absl::StrCat("--limit is a number of entries, not ", *limit));
    }
    request.set_limit(parsed);
  }
  return WithAdmin("flight-recorder", arguments, console, [&](client::AdminClient& admin) {
    const absl::StatusOr<v1::DumpFlightRecorderResponse> dump = admin.DumpFlightRecorder(request);
    if (!dump.ok()) return console.Fail(dump.status());
    if (console.is_json()) return console.PrintJson(*dump);
    for (const v1::FlightEntry& entry : dump->entries()) console.Print(EntryLine(entry));
    return kExitOk;
  });
}

}  // namespace

Command FlightRecorderCommand() {
  std::vector<FlagSpec> flags = {
      {.name = "limit", .placeholder = "N", .help = "The last so many entries (1000, at most 5000)"},
      {.name = "notable", .help = "Only what was refused or slow, and events"}};
  for (FlagSpec& flag : AdminFlags()) flags.push_back(std::move(flag));
  return {
      .name = "flight-recorder",
      .operands = "",
      .summary = "Show the last calls and events of the server",
      .details =
          "One line each, the oldest first: when it ended, the method, how it ended, its time and where that went.\n",
      .flags = std::move(flags),
      .run = &DumpFlightRecorder};
}

}  // namespace tensord::cli
