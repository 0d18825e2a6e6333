#ifndef TENSORD_ENGINE_IR_PARSER_H_
#define TENSORD_ENGINE_IR_PARSER_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/ir/graph.h"
#include "engine/ir/op_registry.h"

namespace tensord {

// More text than that is refused.
inline constexpr size_t kMaxGraphTextBytes = size_t{64} << 20;

// Parses a graph in the form of PrintGraph (printer.h). The types of nodes may be left out. If a node has one, types
// are inferred and must equal the written ones, and the graph comes with all its types. Comments run from "//" to the
// end of the line.
//
// Refused with TEXT_SYNTAX, NAME_DUPLICATE, NAME_INVALID, VALUE_UNKNOWN or OP_UNKNOWN, at a line and a column, and with
// the refusals of InferTypes. Takes time and memory in proportion to the text, whatever it says.
absl::StatusOr<Graph> ParseGraph(absl::string_view text, const OpRegistry& registry);

}  // namespace tensord

#endif  // TENSORD_ENGINE_IR_PARSER_H_
