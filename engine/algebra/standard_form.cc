#include "engine/algebra/standard_form.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"
#include "engine/ir/graph_builder.h"
#include "engine/ir/verifier.h"
#include "engine/ops/contraction.h"
#include "engine/ops/core_ops.h"
#include "engine/ops/reduction.h"
#include "engine/ops/scattering.h"
#include "engine/ops/selection.h"
#include "engine/ops/semiring.h"

namespace tensord {
namespace {

// Returns the zero, or for `of` 0, the least or the greatest integer, as a tensor of rank 0.
Literal ZeroOf(Algebra algebra, DType dtype) {
  return VisitDType(dtype, [&]<typename T>(TypeTag<T>) { return Literal::Scalar<T>(SemiringZero<T>(algebra)); });
}

// The nodes that stand for one node of another algebra.
class NodeReading {
 public:
  NodeReading(Algebra algebra, Graph* graph, const Node& node)
      : algebra_(algebra), node_(node), graph_(graph, node.name) {}

  // Returns the value that takes the place of the node's result.
  absl::StatusOr<ValueId> Read() {
    const bool fills_with_zero = algebra_ == Algebra::kMaxTimes || algebra_ == Algebra::kOrAnd;
    switch (static_cast<CoreOp>(node_.op->index)) {
      case CoreOp::kAdd:
        return graph_.Add(Def(sum_op()), node_.operands);
      case CoreOp::kMultiply:
        return Product();
      case CoreOp::kReduce:
        return Sum();
      case CoreOp::kDotGeneral:
        return Dot();
      case CoreOp::kScatter:
        return Scattered();
      case CoreOp::kTril:
      case CoreOp::kTriu:
      case CoreOp::kEmbedDiag:
      case CoreOp::kPadToMatch:
        return fills_with_zero ? Same() : Filled();
      default:
        return Same();
    }
  }

 private:
  CoreOp sum_op() const {
    if (algebra_ == Algebra::kOrAnd) return CoreOp::kOr;
    return algebra_ == Algebra::kMinPlus ? CoreOp::kMinimum : CoreOp::kMaximum;
  }

  absl::StatusOr<ValueId> Same() { return graph_.Add(*node_.op, node_.attrs, node_.operands); }

  absl::StatusOr<ValueId> Product() {
    if (algebra_ == Algebra::kOrAnd) return graph_.Add(Def(CoreOp::kAnd), node_.operands);
    if (algebra_ == Algebra::kMaxTimes) return Same();
    const bool saturates = kIntegers.Contains(graph_.type(node_.operands[0]).dtype);
    return saturates ? SaturatedSum(node_.operands[0], node_.operands[1])
                     : graph_.Add(Def(CoreOp::kAdd), node_.operands);
  }

  // Returns x + y, held between the least and the greatest integer; the algebra's zero if either is that.
  absl::StatusOr<ValueId> SaturatedSum(ValueId x, ValueId y) {
    const DType dtype = graph_.type(x).dtype;
    ASSIGN_OR_RETURN(const ValueId zero, Spread(ZeroOf(algebra_, dtype), x));
    ASSIGN_OR_RETURN(const ValueId naught, Spread(ZeroOf(Algebra::kMaxTimes, dtype), x));
    ASSIGN_OR_RETURN(const ValueId least, Spread(ZeroOf(Algebra::kMaxPlus, dtype), x));
    ASSIGN_OR_RETURN(const ValueId greatest, Spread(ZeroOf(Algebra::kMinPlus, dtype), x));
    ASSIGN_OR_RETURN(const ValueId sum, graph_.Add(Def(CoreOp::kAdd), {x, y}));
    // The sum has wrapped around if both signs differ from its own.
    ASSIGN_OR_RETURN(const ValueId x_differs, graph_.Add(Def(CoreOp::kXor), {x, sum}));
    ASSIGN_OR_RETURN(const ValueId y_differs, graph_.Add(Def(CoreOp::kXor), {y, sum}));
    ASSIGN_OR_RETURN(const ValueId signs, graph_.Add(Def(CoreOp::kAnd), {x_differs, y_differs}));
    ASSIGN_OR_RETURN(const ValueId wrapped, Compared(CompareDirection::kLt, signs, naught));
    ASSIGN_OR_RETURN(const ValueId is_negative, Compared(CompareDirection::kLt, x, naught));
    ASSIGN_OR_RETURN(const ValueId end, graph_.Add(Def(CoreOp::kSelect), {is_negative, least, greatest}));
    ASSIGN_OR_RETURN(const ValueId held, graph_.Add(Def(CoreOp::kSelect), {wrapped, end, sum}));
    ASSIGN_OR_RETURN(const ValueId x_absorbs, Compared(CompareDirection::kEq, x, zero));
    ASSIGN_OR_RETURN(const ValueId y_absorbs, Compared(CompareDirection::kEq, y, zero));
    ASSIGN_OR_RETURN(const ValueId absorbs, graph_.Add(Def(CoreOp::kOr), {x_absorbs, y_absorbs}));
    return graph_.Add(Def(CoreOp::kSelect), {absorbs, zero, held});
  }

  absl::StatusOr<ValueId> Compared(CompareDirection direction, ValueId x, ValueId y) {
    const OpDef& op = Def(CoreOp::kCompare);
    return graph_.Add(op, Attributes(op.attrs).Set("direction", static_cast<int64_t>(direction)), {x, y});
  }

  absl::StatusOr<ValueId> Sum() {
    const ReduceKind kind = algebra_ == Algebra::kOrAnd     ? ReduceKind::kOr
                            : algebra_ == Algebra::kMinPlus ? ReduceKind::kMin
                                                            : ReduceKind::kMax;
    Attributes attrs = node_.attrs;
    attrs.Set("kind", static_cast<int64_t>(kind));
    ASSIGN_OR_RETURN(const ValueId sum, graph_.Add(*node_.op, std::move(attrs), node_.operands));
    if (algebra_ != Algebra::kMaxTimes || !MayBeOverNothing()) return sum;
    // The maximum of nothing is not the zero of numbers of at least 0.
    ASSIGN_OR_RETURN(const ValueId zeros, Spread(ZeroOf(algebra_, graph_.type(sum).dtype), sum));
    return graph_.Add(Def(CoreOp::kMaximum), {sum, zeros});
  }

  bool MayBeOverNothing() const {
    const SymbolicShape& shape = graph_.type(node_.operands[0]).shape;
    const auto& axes = node_.attrs.Ints("dimensions");
    return std::any_of(axes.begin(), axes.end(), [&](int64_t axis) {
      const Dim& dim = shape[static_cast<size_t>(axis)];
      return !dim.is_static() || dim.size.constant() == 0;
    });
  }

  absl::StatusOr<ValueId> Dot() {
    Attributes attrs = node_.attrs;
    attrs.Set("algebra", static_cast<int64_t>(algebra_));
    return graph_.Add(*node_.op, std::move(attrs), node_.operands);
  }

  absl::StatusOr<ValueId> Scattered() {
    if (static_cast<ScatterCombiner>(node_.attrs.Int("combiner")) == ScatterCombiner::kSet) return Same();
    const auto combiner = algebra_ == Algebra::kMinPlus ? ScatterCombiner::kMinimum : ScatterCombiner::kMaximum;
    Attributes attrs = node_.attrs;
    attrs.Set("combiner", static_cast<int64_t>(combiner));
    return graph_.Add(*node_.op, std::move(attrs), node_.operands);
  }

  // Returns the op's result with the algebra's zero where the op fills with 0: where it makes false of true.
  absl::StatusOr<ValueId> Filled() {
    ASSIGN_OR_RETURN(const ValueId result, Same());
    ASSIGN_OR_RETURN(const ValueId all, Spread(Literal::Scalar(Bool(true)), node_.operands[0]));
    absl::InlinedVector<ValueId, 3> operands = node_.operands;
    operands[0] = all;
    ASSIGN_OR_RETURN(const ValueId is_element, graph_.Add(*node_.op, node_.attrs, operands));
    ASSIGN_OR_RETURN(const ValueId zeros, Spread(ZeroOf(algebra_, graph_.type(result).dtype), result));
    return graph_.Add(Def(CoreOp::kSelect), {is_element, result, zeros});
  }

  // Returns a number in the shape of a value.
  absl::StatusOr<ValueId> Spread(Literal number, ValueId like) {
    const OpDef &constant = Def(CoreOp::kConstant), &broadcast = Def(CoreOp::kBroadcastInDim);
    ASSIGN_OR_RETURN(
        const ValueId value,
        graph_.Add(
            constant,
            Attributes(constant.attrs).Set("value", LiteralPtr(std::make_shared<const Literal>(std::move(number)))),
            {}));
    if (graph_.type(like).rank() == 0) return value;
    std::vector<DimExpr> shape;
    absl::InlinedVector<ValueId, 2> operands = {value};
    for (const Dim& dim : graph_.type(like).shape) {
      const auto axis = static_cast<int64_t>(shape.size());
      shape.push_back(dim.is_static() ? dim.size : DimExpr::OperandAxis(1, axis));
      if (!dim.is_static() && operands.size() == 1) operands.push_back(like);
    }
    return graph_.Add(broadcast, Attributes(broadcast.attrs).Set("shape", std::move(shape)), operands);
  }

  const Algebra algebra_;
  const Node& node_;  // its operands are values of the new graph
  GraphBuilder graph_;
};

// Tells whether the op computes in the algebra; the others are taken over as they are.
bool IsRead(const Node& node) {
  switch (static_cast<CoreOp>(node.op->index)) {
    case CoreOp::kAdd:
    case CoreOp::kMultiply:
    case CoreOp::kReduce:
    case CoreOp::kDotGeneral:
    case CoreOp::kScatter:
    case CoreOp::kTril:
    case CoreOp::kTriu:
    case CoreOp::kEmbedDiag:
    case CoreOp::kPadToMatch:
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::StatusOr<ValueId> AppendInStandardForm(Algebra algebra, Node node, absl::Span<const TensorType> types,
                                             Graph* graph) {
  if (IsRead(node)) return NodeReading(algebra, graph, node).Read();
  const ValueId first = graph->AddNode(std::move(node));
  for (size_t i = 0; i < types.size(); ++i) graph->set_type({first.index + static_cast<int32_t>(i)}, types[i]);
  return first;
}

absl::Status WriteInStandardForm(Graph* graph, int64_t most_nodes) {
  const Algebra algebra = graph->algebra();
  if (algebra == Algebra::kStandard) return absl::OkStatus();
  const std::vector<GraphOutput> outputs = graph->outputs();
  Graph written = Graph::EmptyLike(*graph);
  written.set_algebra(Algebra::kStandard);
  std::vector<Node> nodes = graph->TakeNodes();
  std::vector<TensorType> types = graph->TakeTypes();
  std::vector<ValueId> map;  // new value by old one
  map.reserve(types.size());
  for (const GraphInput& input : graph->inputs()) map.push_back(written.AddInput(input.name, input.type));
  bool types_changed = false;
  for (Node& node : nodes) {
    RETURN_IF_ERROR(CheckStopped());
    for (ValueId& operand : node.operands) operand = map[static_cast<size_t>(operand.index)];
    const std::string name = node.name;
    const absl::string_view op = node.op->name;
    const absl::Span<const TensorType> own(&types[map.size()], static_cast<size_t>(node.num_results));
    const absl::StatusOr<ValueId> first = AppendInStandardForm(algebra, std::move(node), own, &written);
    if (!first.ok()) return WithNode(first.status(), name, op);
    if (absl::Status bounded = CheckWrittenOut(written, most_nodes); !bounded.ok()) return WithNode(bounded, name, op);
    for (size_t i = 0; i < own.size(); ++i) {
      map.push_back({first->index + static_cast<int32_t>(i)});
      types_changed = types_changed || !(written.type(map.back()) == own[i]);
    }
  }
  for (const GraphOutput& output : outputs) {
    written.AddOutput(output.name, map[static_cast<size_t>(output.value.index)]);
  }
  *graph = std::move(written);
  return types_changed ? InferTypes(graph).status() : absl::OkStatus();
}

}  // namespace tensord
