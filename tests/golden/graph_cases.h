#ifndef TENSORD_TESTS_GOLDEN_GRAPH_CASES_H_
#define TENSORD_TESTS_GOLDEN_GRAPH_CASES_H_

#include <string>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"

namespace tensord {

// The graph of a case other than one of passes/: its text form, or a tensord.v1.Graph in Protocol Buffers' text format.
// Types are not inferred yet.
absl::StatusOr<Graph> ReadGraphCase(const std::string& input);

// Returns the text that the golden cases of a folder show of their input. A case whose input is wrong shows the refusal
// instead:
//
//   ir/          the text form of a graph, which is parsed, inferred and printed
//   wire/        a tensord.v1.Graph in Protocol Buffers' text format, which is decoded, inferred and printed
//   algebra/     the graph in its standard form, or why it has none
//   derivatives/ its JVP and its VJP, or why it has none
//   refusals/    either of the two
//   canonical/   the text form of a graph, of which the fingerprint is shown
std::string RunGraphCase(const std::string& folder, const std::string& input);

}  // namespace tensord

#endif  // TENSORD_TESTS_GOLDEN_GRAPH_CASES_H_
