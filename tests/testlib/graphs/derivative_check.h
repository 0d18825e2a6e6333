#ifndef TENSORD_TESTS_TESTLIB_GRAPHS_DERIVATIVE_CHECK_H_
#define TENSORD_TESTS_TESTLIB_GRAPHS_DERIVATIVE_CHECK_H_

#include <random>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/tensor/literal.h"

namespace tensord {

// The errors of a graph's derivatives at one point, in one random direction. Each is relative to the larger of 1 and
// the numbers that are compared.
struct DerivativeErrors {
  double jvp = 0;      // against central differences of the reference evaluator
  double adjoint = 0;  // of <ct, JVP(t)> = <VJP(ct), t>
};

// Measures them for a typed graph whose differentiable inputs and outputs are F64 and C128.
absl::StatusOr<DerivativeErrors> MeasureDerivatives(const Graph& graph, const std::vector<Literal>& arguments,
                                                    std::mt19937_64* random);

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_GRAPHS_DERIVATIVE_CHECK_H_
