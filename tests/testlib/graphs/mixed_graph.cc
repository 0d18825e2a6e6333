#include "tests/testlib/graphs/mixed_graph.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ops/core_ops.h"

namespace tensord {
namespace {

constexpr int64_t kRows = 8, kColumns = 16, kWeights = 4;

class MixedGraphBuilder {
 public:
  explicit MixedGraphBuilder(const MixedGraphOptions& options)
      : nodes_(static_cast<size_t>(options.nodes)), rows_(options.symbolic ? DimExpr::Symbol("n") : DimExpr(kRows)) {
    graph_.set_name("mixed");
    x_ = graph_.AddInput("x", Type({rows_, kColumns}));
    older_ = x_;
    for (int64_t i = 0; i < kWeights; ++i) {
      weights_.push_back(graph_.AddInput(absl::StrCat("w", i), Type({kColumns, kColumns})));
    }
  }

  Graph Build() && {
    while (nodes_ - graph_.nodes().size() >= kBlockNodes) AppendBlock();
    while (graph_.nodes().size() < nodes_)
      x_ = Append(graph_.nodes().size() % 2 == 0 ? CoreOp::kTanh : CoreOp::kSin, {x_});
    graph_.AddOutput("y", x_);
    return std::move(graph_);
  }

 private:
  static constexpr size_t kBlockNodes = 24;

  TensorType Type(std::vector<DimExpr> sizes) {
    TensorType type{.dtype = DType::kF32};
    for (DimExpr& size : sizes) type.shape.push_back(Dim(std::move(size)));
    return type;
  }

  ValueId Append(CoreOp op, std::vector<ValueId> operands, Attributes attrs) {
    Node node{
        .name = absl::StrCat(Def(op).name, "_", graph_.nodes().size()), .op = &Def(op), .attrs = std::move(attrs)};
    node.operands.assign(operands.begin(), operands.end());
    return graph_.AddNode(std::move(node));
  }
  ValueId Append(CoreOp op, std::vector<ValueId> operands) {
    return Append(op, std::move(operands), Attributes(Def(op).attrs));
  }

  ValueId Dot(ValueId lhs, int64_t lhs_axis, ValueId rhs, int64_t rhs_axis) {
    Attributes attrs(Def(CoreOp::kDotGeneral).attrs);
    attrs.Set("lhs_contracting_dimensions", std::vector<int64_t>{lhs_axis});
    attrs.Set("rhs_contracting_dimensions", std::vector<int64_t>{rhs_axis});
    return Append(CoreOp::kDotGeneral, {lhs, rhs}, std::move(attrs));
  }
  ValueId Broadcast(ValueId operand, std::vector<int64_t> dimensions, std::vector<DimExpr> shape) {
    Attributes attrs(Def(CoreOp::kBroadcastInDim).attrs);
    attrs.Set("broadcast_dimensions", std::move(dimensions)).Set("shape", std::move(shape));
    return Append(CoreOp::kBroadcastInDim, {operand}, std::move(attrs));
  }
  ValueId Reduce(ReduceKind kind, ValueId operand, int64_t axis) {
    Attributes attrs(Def(CoreOp::kReduce).attrs);
    attrs.Set("kind", static_cast<int64_t>(kind)).Set("dimensions", std::vector<int64_t>{axis});
    return Append(CoreOp::kReduce, {operand}, std::move(attrs));
  }
  ValueId Transpose(ValueId operand) {
    Attributes attrs(Def(CoreOp::kTranspose).attrs);
    attrs.Set("permutation", std::vector<int64_t>{1, 0});
    return Append(CoreOp::kTranspose, {operand}, std::move(attrs));
  }
  ValueId Reshape(ValueId operand, std::vector<DimExpr> shape) {
    Attributes attrs(Def(CoreOp::kReshape).attrs);
    attrs.Set("shape", std::move(shape));
    return Append(CoreOp::kReshape, {operand}, std::move(attrs));
  }
  ValueId Constant(float value) {
    Attributes attrs(Def(CoreOp::kConstant).attrs);
    attrs.Set("value", std::make_shared<const Literal>(Literal::Scalar<float>(value)));
    return Append(CoreOp::kConstant, {}, std::move(attrs));
  }

  // kBlockNodes nodes. Reads x_ and older_, and leaves a new x_, all of shape [rows, columns].
  void AppendBlock() {
    const size_t block = graph_.nodes().size() / kBlockNodes;
    const std::vector<DimExpr> shape = {rows_, kColumns};
    const ValueId weight = weights_[block % weights_.size()];
    const ValueId bias = Reduce(ReduceKind::kSum, older_, 0);
    const ValueId product = Dot(x_, 1, weight, 0);
    const ValueId sum = Append(CoreOp::kAdd, {product, Broadcast(bias, {1}, shape)});
    const ValueId active = Append(CoreOp::kTanh, {sum});
    const ValueId largest = Broadcast(Reduce(ReduceKind::kMax, active, 1), {0}, shape);
    const ValueId power = Append(CoreOp::kExp, {Append(CoreOp::kSubtract, {active, largest})});
    const ValueId total = Broadcast(Reduce(ReduceKind::kSum, power, 1), {0}, shape);
    const ValueId share = Append(CoreOp::kDivide, {power, total});
    const ValueId turned = Transpose(share);          // [columns, rows]
    const ValueId mixed = Dot(turned, 0, weight, 1);  // [rows, columns]
    const ValueId logs = Append(CoreOp::kLog1p, {Append(CoreOp::kAbs, {mixed})});
    const ValueId split = Reshape(logs, {rows_, 4, kColumns / 4});
    const ValueId joined = Reshape(Append(CoreOp::kNegate, {split}), shape);
    const ValueId scale = Broadcast(Constant(0.5f + static_cast<float>(block)), {}, shape);
    const ValueId scaled = Append(CoreOp::kMultiply, {joined, scale});
    const ValueId next = Append(CoreOp::kMaximum, {Append(CoreOp::kAdd, {scaled, x_}), older_});
    older_ = x_;
    x_ = next;
  }

  const size_t nodes_;
  const DimExpr rows_;
  Graph graph_;
  ValueId x_, older_;
  std::vector<ValueId> weights_;
};

}  // namespace

Graph MixedGraph(const MixedGraphOptions& options) { return MixedGraphBuilder(options).Build(); }

}  // namespace tensord
