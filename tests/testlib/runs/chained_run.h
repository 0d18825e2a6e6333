#ifndef TENSORD_TESTS_TESTLIB_RUNS_CHAINED_RUN_H_
#define TENSORD_TESTS_TESTLIB_RUNS_CHAINED_RUN_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/exec/backend/backend.h"
#include "engine/ir/graph.h"
#include "engine/tensor/literal.h"

namespace tensord {

// The results of a graph, and its segments that ran together.
struct ChainedRun {
  std::vector<Literal> results;
  size_t segments = 0;
  size_t chained = 0;  // of these: in chains
  int64_t temporary_bytes = 0;
  std::string kernels;  // of the last segment of each chain, a line each
  std::vector<JoinCount> joins;
};

absl::StatusOr<ChainedRun> RunChained(Backend* backend, Graph graph, const std::vector<std::string>& disabled_passes,
                                      const std::vector<Literal>& arguments, bool donates);

// Returns arguments of a graph without symbols.
std::vector<Literal> ArgumentsOf(const Graph& graph, std::mt19937_64* random);

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_RUNS_CHAINED_RUN_H_
