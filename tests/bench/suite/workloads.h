#ifndef TENSORD_TESTS_BENCH_SUITE_WORKLOADS_H_
#define TENSORD_TESTS_BENCH_SUITE_WORKLOADS_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"

namespace tensord {

// Numbers of an input: evenly spread over [low, high), whole ones for an integer dtype; a BOOL is true from 1 on.
struct Range {
  double low = -1;
  double high = 1;
};

// A graph with what its inputs are to be.
struct Workload {
  std::string name;  // "G07_2d": what a filter begins with
  std::function<Graph()> graph;
  Range range{};  // of inputs that are not named below
  std::vector<std::pair<std::string, Range>> ranges{};
  // Inputs that a run may write over: those of a model's state, whose successors are results of the same name.
  std::vector<std::string> state{};
  bool rewrites_state = false;  // all of it in each run, rather than a small part
  bool is_one_kernel = false;   // it is to be one fused kernel
  // Inputs of square matrices that are made symmetric and positive definite, none far from singular.
  std::vector<std::string> definite{};
};

// All of them, in the order in which they are shown.
std::vector<Workload> AllWorkloads();

// One sum of products as a file of numbers describes it, separated by white space: how many operands, and the mean of
// their elements; of each operand its rank, its labels and its sizes; the result's rank and labels. INVALID_ARGUMENT
// if it does not.
absl::StatusOr<Workload> ReadNetwork(std::string name, const std::string& file);

}  // namespace tensord

#endif  // TENSORD_TESTS_BENCH_SUITE_WORKLOADS_H_
