#ifndef TENSORD_CLIENTS_CLI_BENCH_BENCH_WORKLOADS_H_
#define TENSORD_CLIENTS_CLI_BENCH_BENCH_WORKLOADS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clients/cli/bench/bench_flags.h"
#include "clients/load/workload.h"

namespace tensord::cli {

// The contents of the files on the command line of `bench`.
struct BenchFiles {
  std::map<std::string, v1::Graph> graphs;  // by path
  std::map<std::string, client::HostTensor> tensors;
};

absl::StatusOr<BenchFiles> ReadBenchFiles(const BenchFlagValues& values);

// Checks names. INVALID_ARGUMENT if --input or --symbol has a name that is in no graph.
absl::Status CheckBenchNames(const BenchFlagValues& values, const BenchFiles& files);

// The workloads called by turns in one run; as many as `values.workloads`, with their weights.
using BenchMix = std::vector<load::Workload>;

// Returns one mix for each size and dtype.
absl::StatusOr<std::vector<BenchMix>> MakeBenchMixes(const BenchFlagValues& values, const BenchFiles& files);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_BENCH_BENCH_WORKLOADS_H_
