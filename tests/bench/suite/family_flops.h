#ifndef TENSORD_TESTS_BENCH_SUITE_FAMILY_FLOPS_H_
#define TENSORD_TESTS_BENCH_SUITE_FAMILY_FLOPS_H_

#include "engine/ir/graph.h"

namespace tensord {

// Additions and products of real numbers that a node of linear algebra or of a Fourier transform takes by the usual
// algorithms, as LAPACK Working Note 41 counts them; 5 n log2 n for a transform, half of that for a real one. 0 for any
// other node.
double FamilyFlops(const Graph& graph, const Node& node);

}  // namespace tensord

#endif  // TENSORD_TESTS_BENCH_SUITE_FAMILY_FLOPS_H_
