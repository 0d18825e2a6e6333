#ifndef TENSORD_TESTS_TESTLIB_GRAPHS_LARGE_NODE_CASE_H_
#define TENSORD_TESTS_TESTLIB_GRAPHS_LARGE_NODE_CASE_H_

#include <vector>

#include "tests/testlib/graphs/node_case.h"

namespace tensord {

// Cases that a backend cuts into parts for its threads, of the ops whose cases in CoreOpCases are all too small for it.
std::vector<NodeCase> LargeCoreOpCases();

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_GRAPHS_LARGE_NODE_CASE_H_
