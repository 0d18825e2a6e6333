#ifndef TENSORD_TESTS_GOLDEN_PASS_CASES_H_
#define TENSORD_TESTS_GOLDEN_PASS_CASES_H_

#include <string>

#include "absl/status/statusor.h"

namespace tensord {

// Runs passes over a graph. The case's first line is a comment with the order of its bytes on the wire and its passes:
// "// column_major: eliminate_dead_code" or "// row_major: fold_transposes eliminate_dead_code"; the graph's text
// follows. Returns the passes that changed something and the graph that they left, nodes of one name told apart by a
// number. INTERNAL if a second run of the passes changes something again.
absl::StatusOr<std::string> RunPassCase(const std::string& input);

}  // namespace tensord

#endif  // TENSORD_TESTS_GOLDEN_PASS_CASES_H_
