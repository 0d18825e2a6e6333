#ifndef TENSORD_TESTS_BENCH_FUSED_FUSED_WORKLOADS_H_
#define TENSORD_TESTS_BENCH_FUSED_FUSED_WORKLOADS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ops/core_ops.h"

namespace tensord {

// A graph that is to be one fused kernel.
struct FusedWorkload {
  std::string name;
  std::function<Graph()> graph;
  // The ops that cost more than the memory traffic may hide, by how often each result element needs them.
  std::vector<CoreOp> math;
  DType dtype;
};

// G01, G01_gelu, G03, G04, G05, and each op of G01b alone, as G01b_exp_f64.
std::vector<FusedWorkload> FusedWorkloads();

// One unary or binary op on vectors of that length.
Graph OneOpGraph(CoreOp op, DType dtype, int64_t elements);

}  // namespace tensord

#endif  // TENSORD_TESTS_BENCH_FUSED_FUSED_WORKLOADS_H_
