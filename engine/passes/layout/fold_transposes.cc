#include "engine/passes/layout/fold_transposes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "engine/base/status_macros.h"
#include "engine/ir/liveness.h"
#include "engine/ops/axis_order.h"
#include "engine/ops/core_ops.h"
#include "engine/ops/structural.h"
#include "engine/passes/rewriting/splat.h"

namespace tensord {
namespace {

bool IsRowMajorReshape(const Node& node) {
  return Is(*node.op, CoreOp::kReshape) && static_cast<Order>(node.attrs.Int("order")) == Order::kRowMajor;
}

// Counts the transposes that an output needs.
int64_t NumTransposes(const Graph& graph) {
  const std::vector<bool> live = LiveNodes(graph);
  int64_t count = 0;
  for (size_t i = 0; i < live.size(); ++i) count += live[i] && Is(*graph.nodes()[i].op, CoreOp::kTranspose);
  return count;
}

// A value of the old graph as the new one has it: old.shape[i] == stored.shape[order[i]].
struct StoredValue {
  ValueId stored;
  AxisOrder order;
};

bool AreNumbers(const std::vector<DimExpr>& sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [](const DimExpr& size) { return size.is_constant(); });
}

// Tells whether a transpose moves nothing but axes of size 1, so that the elements keep their sequence.
bool MovesUnitAxesOnly(const TensorType& from, const AxisOrder& permutation) {
  int64_t last = -1;
  for (int64_t axis : permutation) {
    if (from.shape[static_cast<size_t>(axis)].size.is(1)) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

class TransposeFolder {
 public:
  TransposeFolder(const Graph& graph, bool row_major)
      : old_(graph), row_major_(row_major), new_(Graph::EmptyLike(graph)) {
    values_.resize(static_cast<size_t>(graph.num_values()));
  }

  // Tells whether a node reads or gives something in another order than before.
  bool reorders() const { return reorders_; }

  absl::StatusOr<Graph> Run() {
    for (const GraphInput& input : old_.inputs()) {
      const ValueId value = new_.AddInput(input.name, input.type);
      values_[static_cast<size_t>(value.index)] = {value, IdentityOrder(input.type.rank())};
    }
    for (const Node& node : old_.nodes()) RETURN_IF_ERROR(Rewrite(node));
    for (const GraphOutput& output : old_.outputs()) {
      const ValueId value = InOrder(output.value, IdentityOrder(old_.type(output.value).rank()));
      new_.AddOutput(output.name, value);
    }
    return std::move(new_);
  }

 private:
  const StoredValue& At(ValueId old) const { return values_[static_cast<size_t>(old.index)]; }

  absl::Status Rewrite(const Node& node) {
    if (Is(*node.op, CoreOp::kTranspose)) {
      const StoredValue& operand = At(node.operands[0]);
      values_[static_cast<size_t>(node.first_result.index)] = {operand.stored,
                                                               Compose(operand.order, node.attrs.Ints("permutation"))};
      return absl::OkStatus();
    }
    absl::InlinedVector<const TensorType*, 4> types;
    absl::InlinedVector<AxisOrder, 3> orders;
    for (ValueId operand : node.operands) {
      types.push_back(&old_.type(operand));
      orders.push_back(At(operand).order);
    }
    PermutedCall call{.attrs = node.attrs};
    if (node.op->permute.has()) {
      call = node.op->permute.get()({.attrs = node.attrs,
                                     .operands = types,
                                     .result = old_.type(node.first_result),
                                     .orders = orders,
                                     .reversed_is_natural = row_major_});
    } else {
      for (const TensorType* type : types) call.operand_orders.push_back(IdentityOrder(type->rank()));
    }
    Node rewritten{.name = node.name,
                   .op = node.op,
                   .attrs = std::move(call.attrs),
                   .num_results = node.num_results,
                   .body = node.body};
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const size_t from = call.operand_index.empty() ? i : static_cast<size_t>(call.operand_index[i]);
      rewritten.operands.push_back(InOrder(node.operands[from], call.operand_orders[from]));
    }
    reorders_ = reorders_ || Reorders(node, call);
    RETURN_IF_ERROR(RenameOperandAxes(call.operand_orders, &rewritten.attrs));
    const ValueId result = new_.AddNode(std::move(rewritten));
    for (int32_t r = 0; r < node.num_results; ++r) {
      const ValueId old{node.first_result.index + r}, stored{result.index + r};
      const AxisOrder order = call.result_order.empty() ? IdentityOrder(old_.type(old).rank()) : call.result_order;
      new_.set_type(stored, StoredType(old_.type(old), order));
      values_[static_cast<size_t>(old.index)] = {stored, order};
    }
    return absl::OkStatus();
  }

  static bool Reorders(const Node& node, const PermutedCall& call) {
    if (!call.operand_index.empty() || !IsIdentity(call.result_order) || IsRowMajorReshape(node)) return true;
    return !std::all_of(call.operand_orders.begin(), call.operand_orders.end(),
                        [](const AxisOrder& order) { return IsIdentity(order); });
  }

  static TensorType StoredType(const TensorType& type, const AxisOrder& order) {
    return {.dtype = type.dtype, .shape = ToStored(type.shape, order)};
  }

  // Size expressions that name an operand's axis name its stored axis from now on. Ops with such attributes keep the
  // order of their operands.
  absl::Status RenameOperandAxes(absl::Span<const AxisOrder> orders, Attributes* attrs) const {
    for (size_t i = 0; i < attrs->schema().size(); ++i) {
      if (attrs->schema()[i].kind != AttrKind::kDims || AreNumbers(std::get<std::vector<DimExpr>>(attrs->at(i))))
        continue;
      std::vector<DimExpr> dims = std::get<std::vector<DimExpr>>(attrs->at(i));
      for (DimExpr& dim : dims) {
        if (dim.is_constant()) continue;
        ASSIGN_OR_RETURN(dim, dim.Substitute([&](const DimAtom& atom) -> absl::StatusOr<DimExpr> {
          if (atom.kind == DimAtom::Kind::kSymbol) return DimExpr::Symbol(atom.symbol);
          const AxisOrder& order = orders[static_cast<size_t>(atom.operand)];
          return DimExpr::OperandAxis(atom.operand, order[static_cast<size_t>(atom.axis)]);
        }));
      }
      attrs->Set(i, std::move(dims));
    }
    return absl::OkStatus();
  }

  // Returns the value of the new graph that stores `old` in `order`; made where there is none yet.
  ValueId InOrder(ValueId old, const AxisOrder& order) {
    const StoredValue& value = At(old);
    if (value.order == order) return value.stored;
    // The wanted order as a permutation of the stored one: wanted.shape[order[i]] == stored.shape[value.order[i]].
    const AxisOrder permutation = Compose(value.order, Inverse(order));
    std::vector<std::pair<AxisOrder, ValueId>>& made = made_[value.stored.index];
    for (const auto& [known, result] : made) {
      if (known == permutation) return result;
    }
    const ValueId result = Transposed(value.stored, permutation);
    made.emplace_back(permutation, result);
    return result;
  }

  ValueId Transposed(ValueId stored, const AxisOrder& permutation) {
    TensorType type{.dtype = new_.type(stored).dtype};
    for (int64_t axis : permutation) type.shape.push_back(new_.type(stored).shape[static_cast<size_t>(axis)]);
    Node node;
    const Node* producer = new_.is_input(stored) ? nullptr : &new_.nodes()[static_cast<size_t>(new_.producer(stored))];
    node.name = new_.NameOf(stored);
    if (producer != nullptr && Is(*producer->op, CoreOp::kConstant)) {
      node.op = producer->op;
      node.attrs = producer->attrs;
      node.attrs.Set("value", std::make_shared<const Literal>(
                                  TransposeLiteral(*producer->attrs.GetLiteral("value"), permutation)));
    } else if (MovesUnitAxesOnly(new_.type(stored), permutation) && IsExact(type)) {
      std::vector<DimExpr> sizes;
      for (const Dim& dim : type.shape) sizes.push_back(dim.size);
      node.op = &Def(CoreOp::kReshape);
      node.attrs = Attributes(node.op->attrs);
      node.attrs.Set("shape", std::move(sizes));
      node.operands.push_back(stored);
    } else {
      node.op = &Def(CoreOp::kTranspose);
      node.attrs = Attributes(node.op->attrs);
      node.attrs.Set("permutation", std::vector<int64_t>(permutation.begin(), permutation.end()));
      node.operands.push_back(stored);
    }
    const ValueId result = new_.AddNode(std::move(node));
    new_.set_type(result, std::move(type));
    return result;
  }

  const Graph& old_;
  const bool row_major_;
  bool reorders_ = false;
  Graph new_;
  std::vector<StoredValue> values_;                                                // by old value
  absl::flat_hash_map<int32_t, std::vector<std::pair<AxisOrder, ValueId>>> made_;  // by new value
};

}  // namespace

absl::StatusOr<bool> FoldTransposes(Graph* graph, const PassOptions& options) {
  bool has_transpose = false;
  for (const Node& node : graph->nodes()) {
    has_transpose = has_transpose || Is(*node.op, CoreOp::kTranspose);
    // A row-major reshape reads its operand reversed; left alone it would be a strided copy.
    has_transpose = has_transpose || IsRowMajorReshape(node);
  }
  if (!has_transpose) return false;
  TransposeFolder rewriter(*graph, options.row_major);
  ASSIGN_OR_RETURN(Graph rewritten, rewriter.Run());
  // Transposes that nothing could absorb came back, next to constants in an order that nobody wants.
  if (!rewriter.reorders() && NumTransposes(rewritten) == NumTransposes(*graph)) return false;
  *graph = std::move(rewritten);
  return true;
}

}  // namespace tensord
