#ifndef TENSORD_TESTS_TESTLIB_PROPERTY_NODE_RADIUS_H_
#define TENSORD_TESTS_TESTLIB_PROPERTY_NODE_RADIUS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "tests/testlib/property/reference_bounds.h"

namespace tensord::property {

// The radii of a node's result, whose value is given: of what its operands may differ by, and what the op itself leaves
// open. Empty: all 0.
absl::StatusOr<std::vector<double>> NodeRadius(const Node& node, absl::Span<const BoundedLiteral* const> operands,
                                               const Literal& result);

}  // namespace tensord::property

#endif  // TENSORD_TESTS_TESTLIB_PROPERTY_NODE_RADIUS_H_
