#ifndef TENSORD_TESTS_BENCH_SUITE_GRAPH_WORK_H_
#define TENSORD_TESTS_BENCH_SUITE_GRAPH_WORK_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ops/core_ops.h"
#include "tests/bench/suite/matrix_limit.h"

namespace tensord {

// The work of a graph, however it is done: values that do not depend on an input are left out.
struct GraphWork {
  double arithmetic_f32 = 0;  // additions, products, comparisons and the like outside matrix products
  double arithmetic_f64 = 0;
  std::map<std::pair<CoreOp, DType>, double> math;  // elements by op that costs more than those
  std::vector<MatrixSizes> products;
  std::map<std::pair<Algebra, DType>, double> semiring_products;  // of single elements, in other algebras
};

// Returns the work of a graph without symbols.
GraphWork WorkOf(const Graph& graph);

}  // namespace tensord

#endif  // TENSORD_TESTS_BENCH_SUITE_GRAPH_WORK_H_
