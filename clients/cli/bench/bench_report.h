#ifndef TENSORD_CLIENTS_CLI_BENCH_BENCH_REPORT_H_
#define TENSORD_CLIENTS_CLI_BENCH_BENCH_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "clients/cli/bench/bench_flags.h"
#include "clients/load/load_plan.h"
#include "clients/load/load_result.h"
#include "clients/load/overload.h"
#include "google/protobuf/struct.pb.h"

namespace tensord::cli {

// One run of `bench` and its outcome.
struct BenchRun {
  // The peak before an overload, and its multiple that was offered.
  struct Overload {
    int peak_concurrency = 0;
    double peak_goodput = 0;
    double goodput_ratio = 0;
  };

  std::string workload;  // "tiny f32", or those of a mix
  int connections = 1;
  int concurrency = 0;         // of a closed loop
  std::optional<double> rate;  // of an open one
  std::optional<Overload> overload;
  load::LoadResult result;
};

// Returns the description of the run: "tiny f32, closed loop of 16 on 1 connection".
std::string RunTitle(const BenchRun& run);
// Returns the state of a run for people, its figures first: "3s of 11s, 12.3k ok, 5 not: tiny f32, closed loop of 16".
std::string ProgressText(const load::LoadProgress& progress, absl::string_view title);
// Lines for people.
std::string RunText(const BenchRun& run);
// The same for programs; times in milliseconds.
google::protobuf::Struct RunJson(const BenchRun& run);
// Adds one to a report's `runs`. The report itself has the summary of the last, and the highest peak of all.
void AddRunJson(const google::protobuf::Struct& run, google::protobuf::Struct* json);

// Returns the reasons why the run fell short: no call succeeded, or a gate is missed; a line each.
std::vector<std::string> MissedGates(const BenchRun& run, const BenchGates& gates);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_BENCH_BENCH_REPORT_H_
