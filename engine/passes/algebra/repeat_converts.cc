#include "engine/passes/algebra/repeat_converts.h"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "engine/passes/rewriting/graph_rewriter.h"

namespace tensord {
namespace {

class Repetition {
 public:
  std::optional<ValueId> Rewrite(const Node& node, GraphRewriter& graph) {
    if (Is(*node.op, CoreOp::kReduce)) return RewriteReduce(node, graph);
    if (Is(*node.op, CoreOp::kSlice)) return RewriteSlice(node, graph);
    return std::nullopt;
  }

 private:
  static const Node* WideningConvert(ValueId value, GraphRewriter& graph) {
    const Node* const convert = graph.producer_if(value, CoreOp::kConvert);
    if (convert == nullptr || graph.type(value).rank() == 0) return nullptr;
    const DType from = graph.type(convert->operands[0]).dtype;
    return SizeOf(graph.type(value).dtype) > SizeOf(from) ? convert : nullptr;
  }

  // A kernel reduces along one set of axes: the first one keeps the convert that is there.
  std::optional<ValueId> RewriteReduce(const Node& node, GraphRewriter& graph) {
    const ValueId wide = node.operands[0];
    const Node* const convert = WideningConvert(wide, graph);
    if (convert == nullptr) return std::nullopt;
    const std::vector<int64_t>& axes = node.attrs.Ints("dimensions");
    const bool is_first = by_axes_[wide.index].empty();
    const auto [own, is_new] = by_axes_[wide.index].try_emplace(axes, wide);
    if (is_new && !is_first) {
      const ValueId copy = graph.Add(Node(*convert), graph.type(wide));
      own->second = copy;
      by_axes_[copy.index].emplace(axes, copy);
    }
    if (own->second == wide) return std::nullopt;
    Node reduce = node;
    reduce.operands[0] = own->second;
    return graph.Add(std::move(reduce), graph.result_type());
  }

  static std::optional<ValueId> RewriteSlice(const Node& node, GraphRewriter& graph) {
    const Node* const found = WideningConvert(node.operands[0], graph);
    if (found == nullptr || graph.uses(node.operands[0]) == 1) return std::nullopt;
    Node convert = *found;
    Node slice = node;
    slice.operands[0] = convert.operands[0];
    TensorType type = graph.result_type();
    type.dtype = graph.type(convert.operands[0]).dtype;
    convert.operands[0] = graph.Add(std::move(slice), std::move(type));
    return graph.Add(std::move(convert), graph.result_type());
  }

  // By a convert, the converts of its operand for reductions, by the axes that these reduce.
  std::map<int32_t, std::map<std::vector<int64_t>, ValueId>> by_axes_;
};

}  // namespace

absl::StatusOr<bool> RepeatConverts(Graph* graph, const PassOptions& options) {
  if (!options.fuses) return false;
  Repetition repetition;
  return GraphRewriter::Run(
      graph, [&](const Node& node, GraphRewriter& rewriter) { return repetition.Rewrite(node, rewriter); },
      GraphRewriter::kCountUses);
}

}  // namespace tensord
