#ifndef TENSORD_ENGINE_PASSES_ALGEBRA_BINARY_LAWS_H_
#define TENSORD_ENGINE_PASSES_ALGEBRA_BINARY_LAWS_H_

#include <optional>

#include "engine/passes/rewriting/graph_rewriter.h"

namespace tensord {

// The laws of simplify_algebra.h for nodes of OpClass::kBinary and for compare.
std::optional<ValueId> ApplyBinaryLaw(const Node& node, GraphRewriter& graph);
std::optional<ValueId> ApplyCompareLaw(const Node& node, GraphRewriter& graph);

// Whether a number (a literal of rank 0, or null) is that one, as its dtype has it, the sign of a zero included.
bool IsNumber(const LiteralPtr& number, double value);
// Whether no value of the dtype is below (above) it. False for complex numbers.
bool IsLeast(const LiteralPtr& number);
bool IsGreatest(const LiteralPtr& number);

// A number in the type of the result of the node at hand; nothing where a size is not exact.
std::optional<ValueId> AddNumber(const Node& node, double value, GraphRewriter& graph);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_ALGEBRA_BINARY_LAWS_H_
