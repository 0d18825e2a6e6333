#ifndef TENSORD_CLIENTS_CLI_BENCH_BENCH_FLAGS_H_
#define TENSORD_CLIENTS_CLI_BENCH_BENCH_FLAGS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cli/shell/arguments.h"
#include "clients/load/load_plan.h"
#include "clients/load/workload.h"
#include "tensord/client.h"
#include "tensord/dtype.h"

namespace tensord::cli {

// The gates that `bench` must keep to, so that it may stand in a script.
struct BenchGates {
  std::optional<absl::Duration> largest_p99;
  std::optional<absl::Duration> largest_refusal_p99;
  std::optional<double> least_goodput_ratio;  // with an overload
};

// The command line of `bench`: each workload of each size and dtype runs under each concurrency or rate.
struct BenchFlagValues {
  client::ExecuteOptions options;
  load::LoadPlan plan;  // what all runs share
  std::vector<load::WorkloadSpec> workloads;
  std::vector<int64_t> sizes;                // of workloads that name none; empty: their own
  std::vector<client::DType> dtypes;         // of built-in workloads; never empty
  std::map<std::string, std::string> files;  // values of graph inputs, by name
  std::map<std::string, int64_t> symbols;
  std::vector<int> concurrencies;  // empty: an open loop, or an overload that finds its own
  std::vector<double> rates;
  std::optional<double> overload;
  BenchGates gates;
};

std::vector<FlagSpec> BenchFlags();

// Parses the flags. INVALID_ARGUMENT names the flag whose value cannot be read, or that does not go with another one.
absl::StatusOr<BenchFlagValues> ParseBenchFlags(const Arguments& arguments);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_BENCH_BENCH_FLAGS_H_
