#ifndef TENSORD_TESTS_TESTLIB_GRAPHS_WINDOW_CASES_H_
#define TENSORD_TESTS_TESTLIB_GRAPHS_WINDOW_CASES_H_

#include <vector>

#include "tests/testlib/graphs/node_case.h"

namespace tensord {

// Cases of Gather, GatherDynamicSliceSizes and Scatter on every dtype, with indices of both dtypes and every combiner.
// Without names.
std::vector<NodeCase> GatherCases();
std::vector<NodeCase> ScatterCases();

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_GRAPHS_WINDOW_CASES_H_
