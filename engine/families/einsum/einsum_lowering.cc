#include "engine/families/einsum/einsum_lowering.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"
#include "engine/families/einsum/batched_next.h"
#include "engine/families/einsum/einsum_ops.h"
#include "engine/families/einsum/einsum_path.h"
#include "engine/families/einsum/einsum_terms.h"
#include "engine/families/einsum/path_cost.h"
#include "engine/ir/graph_builder.h"
#include "engine/ir/inference.h"
#include "engine/ops/core_ops.h"

namespace tensord {
namespace {

bool Contains(const std::vector<int>& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

int64_t PositionOf(const std::vector<int>& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) - labels.begin();
}

// A value and the labels of its axes, each once.
struct LabelledTensor {
  ValueId value;
  std::vector<int> labels;
};

// How an einsum is contracted.
struct Plan {
  ContractionPath path;
  std::vector<std::vector<int>> batched_next;  // by step
};

// The roles of two tensors' labels in their contraction.
struct Roles {
  std::vector<int> left, right, summed, batch;
};

class Lowering {
 public:
  Lowering(const EinsumTerms& terms, GraphBuilder* graph)
      : terms_(terms), graph_(*graph), holders_(terms.sizes.size()) {
    for (int label : terms.output) {
      if (Contains(output_, label)) continue;
      output_.push_back(label);
      Hold(label, 1);
    }
  }

  absl::StatusOr<ValueId> Run(absl::Span<const ValueId> operands, const Plan& plan) {
    FindSizeSources(operands);
    for (size_t i = 0; i < operands.size(); ++i) {
      ASSIGN_OR_RETURN(LabelledTensor tensor, WithoutRepeats(operands[i], terms_.operands[i]));
      ASSIGN_OR_RETURN(tensor.value, Stretched(tensor));
      for (int label : tensor.labels) Hold(label, 1);
      tensors_.push_back(std::move(tensor));
    }
    for (LabelledTensor& tensor : tensors_) {
      ASSIGN_OR_RETURN(tensor, WithoutUnneeded(std::move(tensor)));
    }
    for (size_t step = 0; step < plan.path.size(); ++step) {
      RETURN_IF_ERROR(CheckStopped());
      const LabelledTensor &a = Tensor(plan.path[step].first), &b = Tensor(plan.path[step].second);
      ASSIGN_OR_RETURN(LabelledTensor made, Contract(a, b, step + 1 == plan.path.size(), plan.batched_next[step]));
      tensors_.push_back(std::move(made));
    }
    return InOutputOrder(std::move(tensors_.back()));
  }

 private:
  const LabelledTensor& Tensor(int id) const { return tensors_[static_cast<size_t>(id)]; }
  void Hold(int label, int change) { holders_[static_cast<size_t>(label)] += change; }
  bool IsHeld(int label) const { return holders_[static_cast<size_t>(label)] > 0; }
  double SizeOf(const std::vector<int>& labels) const {
    double size = 1;
    for (int label : labels) {
      const DimExpr& dim = terms_.sizes[static_cast<size_t>(label)].size;
      size *= static_cast<double>(dim.is_constant() ? dim.constant() : kSizeOfSymbol);
    }
    return size;
  }

  // Axes that only repeat are taken away, and of axes of one label the diagonal is taken.
  absl::StatusOr<LabelledTensor> WithoutRepeats(ValueId operand, const std::vector<int>& term) {
    LabelledTensor tensor{operand, term};
    if (Contains(term, kUnitAxis)) {
      std::vector<DimExpr> shape;
      const TensorType& type = graph_.type(operand);
      for (size_t axis = 0; axis < term.size(); ++axis) {
        if (term[axis] == kUnitAxis) continue;
        const Dim& size = type.shape[axis];
        shape.push_back(size.is_static() ? size.size : DimExpr::OperandAxis(0, static_cast<int64_t>(axis)));
      }
      const OpDef& op = Def(CoreOp::kReshape);
      ASSIGN_OR_RETURN(tensor.value,
                       graph_.Add(op, Attributes(op.attrs).Set("shape", std::move(shape)), {tensor.value}));
      tensor.labels.erase(std::remove(tensor.labels.begin(), tensor.labels.end(), kUnitAxis), tensor.labels.end());
    }
    for (size_t axis = 0; axis < tensor.labels.size();) {
      const int64_t first = PositionOf(tensor.labels, tensor.labels[axis]);
      if (first == static_cast<int64_t>(axis)) {
        ++axis;
        continue;
      }
      const OpDef& op = Def(CoreOp::kExtractDiag);
      ASSIGN_OR_RETURN(
          tensor.value,
          graph_.Add(op, Attributes(op.attrs).Set("axis_a", first).Set("axis_b", static_cast<int64_t>(axis)),
                     {tensor.value}));
      tensor.labels.erase(tensor.labels.begin() + static_cast<std::ptrdiff_t>(axis));
    }
    return tensor;
  }

  // An axis of an operand.
  struct OperandAxis {
    ValueId operand;
    int64_t axis = 0;
  };

  const DimExpr& SizeOf(const OperandAxis& at) const {
    return graph_.type(at.operand).shape[static_cast<size_t>(at.axis)].size;
  }

  // Finds the axes that give the sizes of ellipsis labels, if only a run knows these sizes.
  void FindSizeSources(absl::Span<const ValueId> operands) {
    size_sources_.resize(terms_.sizes.size());
    for (size_t i = 0; i < operands.size(); ++i) {
      for (size_t axis = 0; axis < terms_.operands[i].size(); ++axis) {
        if (terms_.operands[i][axis] == kUnitAxis) continue;
        const size_t label = static_cast<size_t>(terms_.operands[i][axis]);
        if (!terms_.of_ellipsis[label] || terms_.sizes[label].is_static()) continue;
        size_sources_[label].push_back({operands[i], static_cast<int64_t>(axis)});
      }
    }
    for (std::vector<OperandAxis>& sources : size_sources_) {
      std::stable_sort(sources.begin(), sources.end(), [this](const OperandAxis& a, const OperandAxis& b) {
        return DimExpr::Compare(SizeOf(a), SizeOf(b)) < 0;
      });
      const auto is_same = [this](const OperandAxis& a, const OperandAxis& b) { return SizeOf(a) == SizeOf(b); };
      sources.erase(std::unique(sources.begin(), sources.end(), is_same), sources.end());
    }
  }

  // Returns the size of an ellipsis label, for a node with the operands `arguments`; appends to them.
  absl::StatusOr<DimExpr> EllipsisSize(int label, absl::InlinedVector<ValueId, 2>* arguments) const {
    const Dim& size = terms_.sizes[static_cast<size_t>(label)];
    if (size.is_static()) return size.size;
    std::vector<DimExpr> sizes;
    for (const OperandAxis& source : size_sources_[static_cast<size_t>(label)]) {
      sizes.push_back(DimExpr::OperandAxis(static_cast<int64_t>(arguments->size()), source.axis));
      arguments->push_back(source.operand);
    }
    return SizeOfBroadcast(sizes);
  }

  // Stretches axes of an ellipsis to the size of their label: only a run knows whether they are 1.
  absl::StatusOr<ValueId> Stretched(const LabelledTensor& tensor) {
    const SymbolicShape& own = graph_.type(tensor.value).shape;
    std::vector<DimExpr> shape;
    std::vector<int64_t> dimensions;
    absl::InlinedVector<ValueId, 2> arguments = {tensor.value};
    bool is_stretched = false;
    for (size_t axis = 0; axis < tensor.labels.size(); ++axis) {
      const int label = tensor.labels[axis];
      const bool may_be_one =
          terms_.of_ellipsis[static_cast<size_t>(label)] && own[axis] != terms_.sizes[static_cast<size_t>(label)];
      is_stretched = is_stretched || may_be_one;
      dimensions.push_back(static_cast<int64_t>(axis));
      if (may_be_one) {
        ASSIGN_OR_RETURN(shape.emplace_back(), EllipsisSize(label, &arguments));
      } else {
        shape.push_back(own[axis].is_static() ? own[axis].size : DimExpr::OperandAxis(0, static_cast<int64_t>(axis)));
      }
    }
    if (!is_stretched) return tensor.value;
    const OpDef& op = Def(CoreOp::kBroadcastInDim);
    return graph_.Add(
        op, Attributes(op.attrs).Set("shape", std::move(shape)).Set("broadcast_dimensions", std::move(dimensions)),
        arguments);
  }

  // Labels that nothing else has are summed.
  absl::StatusOr<LabelledTensor> WithoutUnneeded(LabelledTensor tensor) {
    std::vector<int64_t> summed;
    LabelledTensor result;
    for (size_t axis = 0; axis < tensor.labels.size(); ++axis) {
      const int label = tensor.labels[axis];
      if (holders_[static_cast<size_t>(label)] > 1) {
        result.labels.push_back(label);
      } else {
        summed.push_back(static_cast<int64_t>(axis));
        Hold(label, -1);
      }
    }
    if (summed.empty()) return tensor;
    const OpDef& op = Def(CoreOp::kReduce);
    ASSIGN_OR_RETURN(result.value, graph_.Add(op,
                                              Attributes(op.attrs)
                                                  .Set("kind", static_cast<int64_t>(ReduceKind::kSum))
                                                  .Set("dimensions", std::move(summed)),
                                              {tensor.value}));
    return result;
  }

  absl::StatusOr<LabelledTensor> Contract(const LabelledTensor& a, const LabelledTensor& b, bool is_last,
                                          const std::vector<int>& batched_next) {
    for (const LabelledTensor* tensor : {&a, &b}) {
      for (int label : tensor->labels) Hold(label, -1);
    }
    Roles roles;
    for (int label : a.labels) {
      (!Contains(b.labels, label) ? roles.left : IsHeld(label) ? roles.batch : roles.summed).push_back(label);
    }
    for (int label : b.labels) {
      if (!Contains(a.labels, label)) roles.right.push_back(label);
    }
    const int64_t rank = static_cast<int64_t>(roles.left.size() + roles.right.size() + roles.batch.size());
    if (rank > kMaxRank) {
      return RefuseLimit("value_rank", kMaxRank, rank, "rank of an intermediate of the einsum; give it another path");
    }
    ASSIGN_OR_RETURN(LabelledTensor made, roles.summed.empty() ? Product(a, b, is_last)
                                                               : Dot(a, b, std::move(roles), is_last, batched_next));
    for (int label : made.labels) Hold(label, 1);
    return made;
  }

  // Result axes: those of one side, of the other, batch.
  absl::StatusOr<LabelledTensor> Dot(const LabelledTensor& a, const LabelledTensor& b, Roles roles, bool is_last,
                                     const std::vector<int>& batched_next) {
    if (is_last ? !output_.empty() && Contains(roles.right, output_[0]) : IsRightFirst(roles, batched_next)) {
      std::swap(roles.left, roles.right);
      return OrderedDot(b, a, std::move(roles), is_last);
    }
    return OrderedDot(a, b, std::move(roles), is_last);
  }

  // Puts the side last that has more of the next step's batch, so that the matrices there lie one after the other; else
  // the larger side first. An existing batch comes last anyway.
  bool IsRightFirst(const Roles& roles, const std::vector<int>& batched_next) const {
    const auto batch_of = [&](const std::vector<int>& side) {
      std::vector<int> labels;
      std::copy_if(side.begin(), side.end(), std::back_inserter(labels),
                   [&](int label) { return Contains(batched_next, label); });
      return SizeOf(labels);
    };
    const double left = batch_of(roles.left), right = batch_of(roles.right);
    if (roles.batch.empty() && left != right) return left > right;
    return SizeOf(roles.left) < SizeOf(roles.right);
  }

  absl::StatusOr<LabelledTensor> OrderedDot(const LabelledTensor& a, const LabelledTensor& b, Roles roles,
                                            bool is_last) {
    if (is_last) {
      std::sort(roles.batch.begin(), roles.batch.end(),
                [this](int x, int y) { return PositionOf(output_, x) < PositionOf(output_, y); });
    }
    const auto axes = [](const LabelledTensor& tensor, const std::vector<int>& labels) {
      std::vector<int64_t> positions;
      for (int label : labels) positions.push_back(PositionOf(tensor.labels, label));
      return positions;
    };
    const OpDef& op = Def(CoreOp::kDotGeneral);
    Attributes attrs(op.attrs);
    attrs.Set("lhs_contracting_dimensions", axes(a, roles.summed));
    attrs.Set("rhs_contracting_dimensions", axes(b, roles.summed));
    attrs.Set("lhs_batching_dimensions", axes(a, roles.batch));
    attrs.Set("rhs_batching_dimensions", axes(b, roles.batch));
    LabelledTensor made{{}, std::move(roles.left)};
    made.labels.insert(made.labels.end(), roles.right.begin(), roles.right.end());
    made.labels.insert(made.labels.end(), roles.batch.begin(), roles.batch.end());
    ASSIGN_OR_RETURN(made.value, graph_.Add(op, std::move(attrs), {a.value, b.value}));
    return made;
  }

  // No label goes: both are brought to one order of axes and multiplied.
  absl::StatusOr<LabelledTensor> Product(const LabelledTensor& a, const LabelledTensor& b, bool is_last) {
    LabelledTensor made;
    if (is_last) {
      made.labels = output_;
    } else {
      const LabelledTensor &large = a.labels.size() >= b.labels.size() ? a : b, &small = &large == &a ? b : a;
      made.labels = large.labels;
      for (int label : small.labels) {
        if (!Contains(large.labels, label)) made.labels.push_back(label);
      }
    }
    ASSIGN_OR_RETURN(const ValueId x, Spread(a, b, made.labels));
    ASSIGN_OR_RETURN(const ValueId y, Spread(b, a, made.labels));
    ASSIGN_OR_RETURN(made.value, graph_.Add(Def(CoreOp::kMultiply), {x, y}));
    return made;
  }

  // Returns the tensor with the axes `labels`; `other` has those that it lacks.
  absl::StatusOr<ValueId> Spread(const LabelledTensor& tensor, const LabelledTensor& other,
                                 const std::vector<int>& labels) {
    if (tensor.labels == labels) return tensor.value;
    if (tensor.labels.size() == labels.size()) return Transposed(tensor, labels);
    const OpDef& op = Def(CoreOp::kBroadcastInDim);
    std::vector<DimExpr> shape;
    absl::InlinedVector<ValueId, 2> operands = {tensor.value};
    for (int label : labels) {
      const bool is_own = Contains(tensor.labels, label);
      const LabelledTensor& holder = is_own ? tensor : other;
      const int64_t axis = PositionOf(holder.labels, label);
      const Dim& size = graph_.type(holder.value).shape[static_cast<size_t>(axis)];
      shape.push_back(size.is_static() ? size.size : DimExpr::OperandAxis(is_own ? 0 : 1, axis));
      if (!is_own && !size.is_static() && operands.size() == 1) operands.push_back(other.value);
    }
    std::vector<int64_t> dimensions;
    for (int label : tensor.labels) dimensions.push_back(PositionOf(labels, label));
    return graph_.Add(
        op, Attributes(op.attrs).Set("shape", std::move(shape)).Set("broadcast_dimensions", std::move(dimensions)),
        operands);
  }

  absl::StatusOr<ValueId> Transposed(const LabelledTensor& tensor, const std::vector<int>& labels) {
    if (tensor.labels == labels) return tensor.value;
    std::vector<int64_t> permutation;
    for (int label : labels) permutation.push_back(PositionOf(tensor.labels, label));
    const OpDef& op = Def(CoreOp::kTranspose);
    return graph_.Add(op, Attributes(op.attrs).Set("permutation", std::move(permutation)), {tensor.value});
  }

  // Returns the axes of the output, with a diagonal where it repeats a label.
  absl::StatusOr<ValueId> InOutputOrder(LabelledTensor tensor) {
    ASSIGN_OR_RETURN(ValueId value, Transposed(tensor, output_));
    std::vector<int> labels = output_;
    for (size_t axis = 0; axis < terms_.output.size(); ++axis) {
      const int label = terms_.output[axis];
      const int64_t first = PositionOf(labels, label);
      if (first == static_cast<int64_t>(axis)) continue;
      const OpDef& op = Def(CoreOp::kEmbedDiag);
      ASSIGN_OR_RETURN(
          value,
          graph_.Add(op, Attributes(op.attrs).Set("axis_a", first).Set("axis_b", static_cast<int64_t>(axis)), {value}));
      labels.insert(labels.begin() + static_cast<std::ptrdiff_t>(axis), label);
    }
    return value;
  }

  const EinsumTerms& terms_;
  GraphBuilder& graph_;
  std::vector<int> output_;   // its labels, each once
  std::vector<int> holders_;  // by label: how many of the tensors that are left have it, the output being one
  std::vector<std::vector<OperandAxis>> size_sources_;  // by label: axes of ellipses, one a size
  std::vector<LabelledTensor> tensors_;
};

std::string OptimizerName(const EinsumTerms& terms, const Attributes& attrs) {
  if (!terms.path.empty()) return "path";
  for (const AttrDef& attr : EinsumOps()[0].attrs) {
    if (attr.name == "optimizer") return std::string(attr.enumerators[static_cast<size_t>(attrs.Int(attr.name))]);
  }
  return "";
}

absl::StatusOr<Plan> PlanOf(const EinsumTerms& terms, const Attributes& attrs, GraphBuilder* graph) {
  ASSIGN_OR_RETURN(EinsumPath planned, PathOf(terms, attrs));
  if (graph->wants_plans()) {
    const PathCost cost = CostOf(planned.network, planned.path);
    graph->AddPlan({.node = {},
                    .path = planned.path,
                    .num_operands = planned.network.num_operands(),
                    .optimizer = OptimizerName(terms, attrs),
                    .flops = cost.flops,
                    .largest = cost.largest,
                    .assumes_sizes = planned.assumes_sizes});
  }
  std::vector<std::vector<int>> batched_next = LabelsBatchedNext(planned.network, planned.path);
  return Plan{std::move(planned.path), std::move(batched_next)};
}

}  // namespace

absl::StatusOr<ExpandedResults> ExpandEinsum(const ExpandCall& call) {
  std::vector<const TensorType*> types;
  for (ValueId operand : call.operands) types.push_back(&call.graph.type(operand));
  ASSIGN_OR_RETURN(const EinsumTerms terms, TermsOf(call.attrs, types));
  ASSIGN_OR_RETURN(const Plan plan, PlanOf(terms, call.attrs, &call.graph));
  ASSIGN_OR_RETURN(const ValueId result, Lowering(terms, &call.graph).Run(call.operands, plan));
  return ExpandedResults{result};
}

}  // namespace tensord
