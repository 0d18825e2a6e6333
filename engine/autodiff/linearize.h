#ifndef TENSORD_ENGINE_AUTODIFF_LINEARIZE_H_
#define TENSORD_ENGINE_AUTODIFF_LINEARIZE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/ir/derivative_builder.h"
#include "engine/ir/graph.h"

namespace tensord {

// A graph with the tangents of its values: its inputs, then a tangent for each wrt; its nodes, and those of tangents
// each behind the node that they differentiate. It has no outputs.
struct LinearizedGraph {
  Graph graph;
  std::vector<ValueId> values;          // by value of the source
  std::vector<ValueId> tangents;        // by value of the source; unset: zero, or nobody asks for it
  std::vector<ValueId> wrt;             // the tangents that are inputs
  std::vector<bool> is_linear;          // by value of the graph: depends on a tangent, and so is linear in them
  std::vector<int32_t> differentiated;  // by node of the graph: the source's node that it differentiates; -1: its copy
};

// Linearizes a typed graph with respect to inputs. Nodes that no output of a differentiable dtype reads, or that no wrt
// reaches, get no tangents and need no rule. `taken` are names that are not given to what is added.
absl::StatusOr<LinearizedGraph> Linearize(const Graph& source, absl::Span<const ValueId> wrt,
                                          absl::Span<const absl::string_view> taken, const DerivativeBounds& bounds);

// Refuses an op without a rule, of a client's node, with UNIMPLEMENTED.
absl::Status RefuseWithoutRule(const OpDef& op, absl::string_view node, absl::string_view why);

}  // namespace tensord

#endif  // TENSORD_ENGINE_AUTODIFF_LINEARIZE_H_
