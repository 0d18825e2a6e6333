#include "engine/passes/lowering/resolve_sizes.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/base/status_macros.h"
#include "engine/ops/core_ops.h"

namespace tensord {
namespace {

class Resolver {
 public:
  explicit Resolver(const Graph& graph)
      : old_(graph), new_(Graph::EmptyLike(graph)), values_(static_cast<size_t>(graph.num_values())) {}

  // Returns true if anything became different; `graph` is the new graph then.
  absl::StatusOr<bool> Run(Graph* graph) {
    for (const GraphInput& input : old_.inputs()) {
      const ValueId value = new_.AddInput(input.name, input.type);
      values_[static_cast<size_t>(value.index)] = value;
      for (size_t axis = 0; axis < input.type.shape.size(); ++axis) {
        const auto symbol = input.type.shape[axis].size.as_symbol();
        if (symbol.has_value())
          holders_.try_emplace(std::string(*symbol), InputAxis{value, static_cast<int64_t>(axis)});
      }
    }
    for (const Node& node : old_.nodes()) RETURN_IF_ERROR(Rewrite(node));
    for (const GraphOutput& output : old_.outputs()) new_.AddOutput(output.name, At(output.value));
    if (changed_) *graph = std::move(new_);
    return changed_;
  }

 private:
  struct InputAxis {
    ValueId input;
    int64_t axis = 0;
  };

  ValueId& At(ValueId old) { return values_[static_cast<size_t>(old.index)]; }

  absl::Status Rewrite(const Node& old) {
    Node node = old;
    for (ValueId& operand : node.operands) operand = At(operand);
    if (Is(*node.op, CoreOp::kShapeOf)) {
      RewriteShapeOf(old, &node);
    } else if (Is(*node.op, CoreOp::kPadToMatch)) {
      if (IsNoPadding(old)) {
        At(old.first_result) = node.operands[0];
        changed_ = true;
        return absl::OkStatus();
      }
      RewritePadToMatch(old, &node);
    } else if (node.op->has(kShapeSources)) {
      RETURN_IF_ERROR(RewriteShapeSources(old, &node));
    }
    const ValueId result = new_.AddNode(std::move(node));
    for (int32_t r = 0; r < old.num_results; ++r) {
      const ValueId value{old.first_result.index + r}, rewritten{result.index + r};
      new_.set_type(rewritten, old_.type(value));
      At(value) = rewritten;
    }
    return absl::OkStatus();
  }

  const Dim& DimOf(ValueId old, int64_t axis) const { return old_.type(old).shape[static_cast<size_t>(axis)]; }

  // Returns the input that has the size too, if a value that is no input was asked.
  const InputAxis* HolderInsteadOf(ValueId old, const Dim& dim) const {
    const auto symbol = dim.size.as_symbol();
    if (dim.extent != Extent::kExact || !symbol.has_value() || old_.is_input(old)) return nullptr;
    const auto it = holders_.find(std::string(*symbol));
    return it == holders_.end() ? nullptr : &it->second;
  }

  static Node ConstantNamed(const std::string& name, Literal value) {
    const OpDef& op = Def(CoreOp::kConstant);
    Node node{.name = name, .op = &op, .attrs = Attributes(op.attrs)};
    node.attrs.Set("value", std::make_shared<const Literal>(std::move(value)));
    return node;
  }

  void RewriteShapeOf(const Node& old, Node* node) {
    const Dim& dim = DimOf(old.operands[0], old.attrs.Int("dimension"));
    if (dim.is_static()) {
      *node = ConstantNamed(old.name, Literal::Scalar<int64_t>(dim.size.constant()));
      changed_ = true;
    } else if (const InputAxis* holder = HolderInsteadOf(old.operands[0], dim); holder != nullptr) {
      node->operands[0] = holder->input;
      node->attrs.Set("dimension", holder->axis);
      changed_ = true;
    }
  }

  bool IsNoPadding(const Node& old) const {
    const int64_t dimension = old.attrs.Int("dimension");
    const Dim& size = DimOf(old.operands[0], dimension);
    return size.extent == Extent::kExact && size == DimOf(old.first_result, dimension);
  }

  void RewritePadToMatch(const Node& old, Node* node) {
    const int64_t dimension = old.attrs.Int("dimension");
    const Dim &from = DimOf(old.operands[0], dimension), &to = DimOf(old.first_result, dimension);
    const TensorType& operand = old_.type(old.operands[0]);
    if (from.is_static() && to.is_static() && IsExact(operand)) {
      const ValueId zero = new_.AddNode(ConstantNamed(old.name, Zero(operand.dtype)));
      new_.set_type(zero, {.dtype = operand.dtype});
      std::vector<int64_t> low(operand.shape.size()), high(operand.shape.size());
      high[static_cast<size_t>(dimension)] = to.size.constant() - from.size.constant();
      node->op = &Def(CoreOp::kPad);
      node->attrs = Attributes(node->op->attrs);
      node->attrs.Set("edge_padding_low", std::move(low)).Set("edge_padding_high", std::move(high));
      node->operands[1] = zero;
      changed_ = true;
      return;
    }
    const std::vector<int64_t>& renamed = old.attrs.Ints("reference_axis");
    const Dim& wanted = DimOf(old.operands[1], renamed.empty() ? dimension : renamed[0]);
    if (const InputAxis* holder = HolderInsteadOf(old.operands[1], wanted); holder != nullptr) {
      node->operands[1] = holder->input;
      node->attrs.Set("reference_axis",
                      holder->axis == dimension ? std::vector<int64_t>() : std::vector<int64_t>{holder->axis});
      changed_ = true;
    }
  }

  static bool IsExact(const TensorType& type) {
    for (const Dim& dim : type.shape) {
      if (dim.extent != Extent::kExact) return false;
    }
    return true;
  }

  static Literal Zero(DType dtype) {
    return VisitDType(dtype, []<typename T>(TypeTag<T>) { return Literal::Scalar<T>(T()); });
  }

  // Puts the operands' sizes into the node's own, and lets go of the sources that no size names any more.
  absl::Status RewriteShapeSources(const Node& old, Node* node) {
    bool names_source = false;
    for (size_t i = 0; i < node->op->attrs.size(); ++i) {
      if (node->op->attrs[i].kind != AttrKind::kDims) continue;
      std::vector<DimExpr> sizes = std::get<std::vector<DimExpr>>(node->attrs.at(i));
      for (DimExpr& size : sizes) {
        ASSIGN_OR_RETURN(DimExpr resolved, size.Substitute([&](const DimAtom& atom) -> absl::StatusOr<DimExpr> {
          if (atom.kind == DimAtom::Kind::kSymbol) return DimExpr::Symbol(atom.symbol);
          const Dim& dim = DimOf(old.operands[static_cast<size_t>(atom.operand)], atom.axis);
          if (dim.extent == Extent::kExact) return dim.size;
          names_source = names_source || atom.operand >= node->op->max_operands;
          return DimExpr::OperandAxis(atom.operand, atom.axis);
        }));
        changed_ = changed_ || !(resolved == size);
        size = std::move(resolved);
      }
      node->attrs.Set(i, std::move(sizes));
    }
    const size_t computed_with = static_cast<size_t>(node->op->max_operands);
    if (!names_source && node->operands.size() > computed_with) {
      node->operands.resize(computed_with);
      changed_ = true;
    }
    return absl::OkStatus();
  }

  const Graph& old_;
  Graph new_;
  std::vector<ValueId> values_;  // by old value
  absl::flat_hash_map<std::string, InputAxis>
      holders_;  // by symbol: where an input has it as the whole size of an axis
  bool changed_ = false;
};

// Tells whether the node reads the size of an operand, or has operands for their sizes alone.
bool AsksForSizes(const Node& node) {
  if (Is(*node.op, CoreOp::kShapeOf) || Is(*node.op, CoreOp::kPadToMatch)) return true;
  if (!node.op->has(kShapeSources)) return false;
  bool asks = node.operands.size() > static_cast<size_t>(node.op->max_operands);
  for (size_t i = 0; i < node.op->attrs.size(); ++i) {
    if (node.op->attrs[i].kind != AttrKind::kDims) continue;
    for (const DimExpr& size : std::get<std::vector<DimExpr>>(node.attrs.at(i))) {
      if (size.is_constant()) continue;
      size.ForEachLeaf([&](const DimAtom& atom) { asks = asks || atom.kind == DimAtom::Kind::kOperandAxis; });
    }
  }
  return asks;
}

}  // namespace

absl::StatusOr<bool> ResolveSizes(Graph* graph, const PassOptions&) {
  if (std::none_of(graph->nodes().begin(), graph->nodes().end(), AsksForSizes)) return false;
  const Graph before = *graph;
  return Resolver(before).Run(graph);
}

}  // namespace tensord
