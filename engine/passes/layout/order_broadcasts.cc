#include "engine/passes/layout/order_broadcasts.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/at.h"
#include "engine/passes/rewriting/graph_rewriter.h"

namespace tensord {
namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kFewRepetitions = 4;  // the transpose reads and writes the tensor, too

int64_t SizeAt(const TensorType& type, size_t axis) { return type.shape[axis].size.constant(); }

size_t FirstAxis(const TensorType& type) {
  size_t axis = 0;
  while (axis < type.shape.size() && SizeAt(type, axis) == 1) ++axis;
  return axis;
}

// Tells whether neighbours in the result are not neighbours in the operand.
bool IsReadAcross(const TensorType& from, const TensorType& to, const Ints& dimensions) {
  const size_t first = FirstAxis(to);
  for (size_t axis = 0; axis < dimensions.size(); ++axis) {
    if (At(dimensions[axis]) == first && SizeAt(from, axis) != 1) return axis != FirstAxis(from);
  }
  return false;
}

bool IsRepeatedOften(const TensorType& from, const TensorType& to, const Ints& dimensions) {
  std::vector<int64_t> repetitions(to.shape.size());
  for (size_t axis = 0; axis < repetitions.size(); ++axis) repetitions[axis] = SizeAt(to, axis);
  for (size_t axis = 0; axis < dimensions.size(); ++axis) {
    if (SizeAt(from, axis) != 1) repetitions[At(dimensions[axis])] = 1;
  }
  int64_t all = 1;
  for (const int64_t repetition : repetitions)
    all = std::min(all * std::min(repetition, kFewRepetitions), kFewRepetitions);
  return all == kFewRepetitions;
}

std::optional<ValueId> OrderBroadcast(const Node& node, GraphRewriter& graph) {
  if (!Is(*node.op, CoreOp::kBroadcastInDim)) return std::nullopt;
  const TensorType& from = graph.type(node.operands[0]);
  const TensorType& to = graph.result_type();
  const Ints& dimensions = node.attrs.Ints("broadcast_dimensions");
  if (!from.is_static() || !to.is_static()) return std::nullopt;
  if (!IsReadAcross(from, to, dimensions) || !IsRepeatedOften(from, to, dimensions)) return std::nullopt;

  Ints permutation(dimensions.size());
  std::iota(permutation.begin(), permutation.end(), 0);
  std::sort(permutation.begin(), permutation.end(),
            [&](int64_t a, int64_t b) { return dimensions[At(a)] < dimensions[At(b)]; });
  TensorType type{.dtype = from.dtype};
  Ints ordered;
  for (const int64_t axis : permutation) {
    type.shape.push_back(from.shape[At(axis)]);
    ordered.push_back(dimensions[At(axis)]);
  }
  // In numbers: a size may be written as one of an axis of the operand, which is another axis now.
  std::vector<DimExpr> shape;
  for (const Dim& dim : to.shape) shape.push_back(dim.size);
  Attributes attrs(Def(CoreOp::kTranspose).attrs), broadcast_attrs(node.op->attrs);
  attrs.Set("permutation", std::move(permutation));
  broadcast_attrs.Set("shape", std::move(shape)).Set("broadcast_dimensions", std::move(ordered));
  const std::string name = node.name;
  const ValueId transposed = graph.Add(CoreOp::kTranspose, name, std::move(attrs), {node.operands[0]}, std::move(type));
  return graph.Add(CoreOp::kBroadcastInDim, name, std::move(broadcast_attrs), {transposed}, graph.result_type());
}

}  // namespace

absl::StatusOr<bool> OrderBroadcasts(Graph* graph, const PassOptions& options) {
  if (!options.fuses) return false;
  return GraphRewriter::Run(graph, &OrderBroadcast);
}

}  // namespace tensord
