#ifndef TENSORD_TESTS_TESTLIB_PROPERTY_CONNECTED_CASE_H_
#define TENSORD_TESTS_TESTLIB_PROPERTY_CONNECTED_CASE_H_

#include <cstdint>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/tensor/literal.h"
#include "tests/testlib/property/random_case.h"

namespace tensord::property {

// The case of a seed: kernels that feed each other (products, gathers, scatters, einsums, slices to nothing,
// reductions, what stands between them) over axes of 0 to 300 elements, large enough to be cut into blocks, tiles and
// tasks. Equal seeds give equal cases.
RandomCase MakeConnectedCase(uint64_t seed);

// The graph for the sizes of these arguments alone, without symbols.
Graph SizedFor(const Graph& graph, const std::vector<Literal>& arguments);

// The graph on these arguments, as constants: without inputs.
Graph ConstantOf(const Graph& graph, const std::vector<Literal>& arguments);

}  // namespace tensord::property

#endif  // TENSORD_TESTS_TESTLIB_PROPERTY_CONNECTED_CASE_H_
