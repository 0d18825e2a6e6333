#ifndef TENSORD_TESTS_GOLDEN_EXPLAIN_CASES_H_
#define TENSORD_TESTS_GOLDEN_EXPLAIN_CASES_H_

#include <string>

#include "absl/status/statusor.h"

namespace tensord {

// Returns the text of Explain for a program on a device that the tests make (hidden_memory_backend.h). The case's first
// line is a comment with the order of its bytes on the wire and its passes, as in pass_cases.h; the graph's text
// follows. "row_major vjp: …" is the program of the graph's VJP.
absl::StatusOr<std::string> RunExplainCase(const std::string& input);

}  // namespace tensord

#endif  // TENSORD_TESTS_GOLDEN_EXPLAIN_CASES_H_
