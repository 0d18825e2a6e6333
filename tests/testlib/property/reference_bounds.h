#ifndef TENSORD_TESTS_TESTLIB_PROPERTY_REFERENCE_BOUNDS_H_
#define TENSORD_TESTS_TESTLIB_PROPERTY_REFERENCE_BOUNDS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "engine/tensor/literal.h"

namespace tensord::property {

// The right values: the reference's numbers, and the radius around each in which a correct program's may lie.
//
//   0         the same bits (any NaN for a NaN), the sign of a zero included
//   finite    that far at most, in the real and in the imaginary part; an infinity counts as the first number past the
//             largest finite one
//   infinite  nothing is known, and nothing is compared: the number depends on a rounding that the contract leaves open
//             (an overflow on one way of adding up, a branch cut within the error)
//
// Integers and BOOL have radius 0 or infinity.
struct BoundedLiteral {
  Literal value;
  std::vector<double> radius;  // by element; empty: 0 everywhere

  double radius_at(size_t i) const { return radius.empty() ? 0 : radius[i]; }
};

// Runs the graph by the reference evaluator and follows, from node to node and element by element, how much two correct
// programs may differ: the rounding of each operation (4 ulp for an elementary function, n·u·Σ|x| for a sum in any
// order, nothing for what IEEE 754 rounds correctly), and how each operation magnifies what its operands may differ by.
// A bound, not an estimate: what lies outside is wrong. Outputs in order. `graph` has its types, and `guards` come from
// InferTypes.
absl::StatusOr<std::vector<BoundedLiteral>> EvaluateBounded(const Graph& graph, absl::Span<const ShapeGuard> guards,
                                                            absl::Span<const Literal> arguments);

// Empty if `got` is within the bounds; else the first difference in words.
std::string DifferenceFrom(const Literal& got, const BoundedLiteral& want);

// Distance between neighbouring numbers of a float dtype (the parts of a complex one) at x; x may be infinite.
double SpacingAt(DType dtype, double x);

}  // namespace tensord::property

#endif  // TENSORD_TESTS_TESTLIB_PROPERTY_REFERENCE_BOUNDS_H_
