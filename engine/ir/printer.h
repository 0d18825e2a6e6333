#ifndef TENSORD_ENGINE_IR_PRINTER_H_
#define TENSORD_ENGINE_IR_PRINTER_H_

#include <string>

#include "engine/ir/graph.h"

namespace tensord {

// Returns the text form of a graph, which ParseGraph (parser.h) reads back:
//
//   graph "affine" {
//     %x = input : f32[n,3]
//     %t = transpose(%x) {permutation = [1, 0]} : f32[3,n]
//     output "y" = %t
//   }
//
// An algebra other than the standard one stands after the name: `graph "g" algebra max_plus {`. Names that are no words
// are quoted, a node with several results is `%x:2`, and its second result `%x:1`. Attributes that are unset or empty
// are left out, and so are types that nobody has inferred yet.
std::string PrintGraph(const Graph& graph);

// Returns one node of it, without indentation or line end.
std::string PrintNode(const Graph& graph, const Node& node);

// Returns the attributes as PrintNode prints them: "{permutation = [1, 0]}"; empty if all are unset.
std::string AttributesText(const OpDef& op, const Attributes& attrs);

// "standard", "max_plus", …
absl::string_view Name(Algebra algebra);

}  // namespace tensord

#endif  // TENSORD_ENGINE_IR_PRINTER_H_
