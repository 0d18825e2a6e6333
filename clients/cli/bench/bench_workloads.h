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

// What the files on the command line of `bench` hold.
struct BenchFiles {
  std::map<std::string, v1::Graph> graphs;  // by path
  std::map<std::string, client::HostTensor> tensors;
};

absl::StatusOr<BenchFiles> ReadBenchFiles(const BenchFlagValues& values);

// INVALID_ARGUMENT where --input or --symbol has a name that is in no graph.
absl::Status CheckBenchNames(const BenchFlagValues& values, const BenchFiles& files);

// What is called by turns in one run; as many as `values.workloads`, whose weights they have.
using BenchMix = std::vector<load::Workload>;

// One mix for each size and dtype.
absl::StatusOr<std::vector<BenchMix>> MakeBenchMixes(const BenchFlagValues& values, const BenchFiles& files);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_BENCH_BENCH_WORKLOADS_H_
