#ifndef TENSORD_TESTS_TESTLIB_PROPERTY_RANDOM_CASE_H_
#define TENSORD_TESTS_TESTLIB_PROPERTY_RANDOM_CASE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ops/core_ops.h"
#include "engine/tensor/literal.h"
#include "tests/testlib/property/growing_graph.h"

namespace tensord::property {

// A graph, typed, and arguments to run it on: several sets, whose sizes differ where the graph has symbols.
struct RandomCase {
  Graph graph;
  std::vector<std::vector<Literal>> arguments;
};

// The case of a seed: a graph of 1 to max_nodes nodes, or some more where a pattern came last, over all core ops and
// dtypes. Equal seeds give equal cases.
RandomCase MakeRandomCase(const GrowthOptions& options, uint64_t seed);

// How often each op was met with each dtype of its first operand that is computed with (its result, where it has none).
class OpCounts {
 public:
  void Add(const Graph& graph);
  void Add(const OpCounts& other);
  int64_t count(CoreOp op, DType dtype) const { return counts_[static_cast<size_t>(op)][static_cast<size_t>(dtype)]; }
  int64_t count(CoreOp op) const;
  // Ops, and dtypes of ops, that were not met: "exp on f16", one a line. Empty if nothing is missing.
  std::string Missing(bool every_dtype) const;
  // A table, one op a line.
  std::string ToString() const;

 private:
  std::array<std::array<int64_t, kNumDTypes + 1>, kNumCoreOps> counts_ = {};
};

}  // namespace tensord::property

#endif  // TENSORD_TESTS_TESTLIB_PROPERTY_RANDOM_CASE_H_
