#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "clients/cli/files/file.h"
#include "clients/cli/operators/admin_connection.h"
#include "clients/cli/programs/profile_table.h"
#include "clients/cli/shell/command.h"

namespace tensord::cli {
namespace {

constexpr size_t kRows = 30;

// A whole number from 1 on; the default where the flag is not given.
bool ReadNumber(const Arguments& arguments, absl::string_view flag, int32_t* number) {
  const std::optional<std::string> text = arguments.Value(flag);
  return !text.has_value() || (absl::SimpleAtoi(*text, number) && *number > 0);
}

int Profile(const Arguments& arguments, Console& console) {
  int32_t seconds = 5, rate = 0;
  if (!ReadNumber(arguments, "seconds", &seconds))
    return console.Usage("profile", "--seconds takes a number from 1 on");
  if (!ReadNumber(arguments, "rate", &rate)) return console.Usage("profile", "--rate takes a number from 1 on");
  const auto capture = [&](client::AdminClient& admin) {
    v1::CaptureProfileRequest request;
    request.mutable_duration()->set_seconds(seconds);
    request.set_samples_per_second(rate);
    const absl::StatusOr<v1::CaptureProfileResponse> response = admin.CaptureProfile(request);
    if (!response.ok()) return console.Fail(response.status());
    if (const std::optional<std::string> path = arguments.Value("output")) {
      const absl::Status written = WriteFile(*path, response->profile());
      if (!written.ok()) return console.Fail(written);
      if (*path == "-") return kExitOk;
    }
    if (console.is_json()) return console.PrintJson(*response);
    perftools::profiles::Profile profile;
    if (!profile.ParseFromString(response->profile())) {
      return console.Fail(absl::DataLossError("the server's profile cannot be read"));
    }
    console.out() << response->sample_count() << " samples in " << seconds << " s\n";
    if (response->dropped_count() > 0) {
      console.Complain(absl::StrCat(response->dropped_count(), " samples are left out: lower --rate or --seconds"));
    }
    console.Print(ProfileTable(profile, kRows));
    return kExitOk;
  };
  return WithAdmin("profile", arguments, console, capture, absl::Seconds(seconds) + kLookDeadline);
}

}  // namespace

Command ProfileCommand() {
  std::vector<FlagSpec> flags = {
      {.name = "seconds", .placeholder = "N", .help = "For how long, at most 60; 5 if not given"},
      {.name = "rate", .placeholder = "N", .help = "Samples a second of processor time, at most 1000; 99 if not given"},
      {.name = "output",
       .placeholder = "FILE",
       .help = "Also write the profile there, for pprof; \"-\" writes it to standard output and nothing else",
       .letter = 'o'}};
  for (FlagSpec& flag : AdminFlags()) {
    if (flag.name == "deadline")
      flag.help = absl::StrCat("Give up after this long; default --seconds and ", absl::FormatDuration(kLookDeadline));
    flags.push_back(std::move(flag));
  }
  return {.name = "profile",
          .operands = "",
          .summary = "Show where the server spends its processors' time",
          .details = "A line a function: time in itself, time with what it called. Idle threads take no part.\n",
          .flags = std::move(flags),
          .run = &Profile};
}

}  // namespace tensord::cli
