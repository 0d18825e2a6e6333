#ifndef TENSORD_TESTS_GOLDEN_EXPLAIN_CASES_H_
#define TENSORD_TESTS_GOLDEN_EXPLAIN_CASES_H_

#include <string>

#include "absl/status/statusor.h"

namespace tensord {

// What Explain says of a program on a device that the tests make (hidden_memory_backend.h). The case's first line is a
// comment that says how its bytes cross the wire and which passes run, as in pass_cases.h; the graph's text follows.
absl::StatusOr<std::string> RunExplainCase(const std::string& input);

}  // namespace tensord

#endif  // TENSORD_TESTS_GOLDEN_EXPLAIN_CASES_H_
