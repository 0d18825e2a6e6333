#ifndef TENSORD_ENGINE_PASSES_ALGEBRA_BINARY_LAWS_H_
#define TENSORD_ENGINE_PASSES_ALGEBRA_BINARY_LAWS_H_

#include <optional>

#include "engine/passes/rewriting/graph_rewriter.h"

namespace tensord {

// The laws of simplify_algebra.h for nodes of OpClass::kBinary and for compare.
std::optional<ValueId> ApplyBinaryLaw(const Node& node, GraphRewriter& graph);
std::optional<ValueId> ApplyCompareLaw(const Node& node, GraphRewriter& graph);

// Tells whether a number (a literal of rank 0, or null) equals `value` in its dtype, the sign of a zero included.
bool IsNumber(const LiteralPtr& number, double value);
// Tells whether no value of the dtype is below (above) it. False for complex numbers.
bool IsLeast(const LiteralPtr& number);
bool IsGreatest(const LiteralPtr& number);

// Returns a number in the type of the result of the node at hand; nothing if a size is not exact.
std::optional<ValueId> AddNumber(const Node& node, double value, GraphRewriter& graph);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_ALGEBRA_BINARY_LAWS_H_
