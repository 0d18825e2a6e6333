#include "engine/families/einsum/einsum_derivative.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/base/status_macros.h"
#include "engine/families/einsum/einsum_ops.h"
#include "engine/families/einsum/einsum_path.h"
#include "engine/families/einsum/einsum_terms.h"
#include "engine/ir/derivative.h"
#include "engine/ops/derivatives/extreme_tangent.h"
#include "engine/ops/derivatives/terms.h"
#include "engine/ops/semiring.h"

namespace tensord {
namespace {

using AxisLabels = std::vector<int>;

bool HasLabel(const AxisLabels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

AxisLabels EachOnce(const AxisLabels& labels) {
  AxisLabels once;
  for (int label : labels) {
    if (!HasLabel(once, label)) once.push_back(label);
  }
  return once;
}

int64_t PlaceOf(int label, const AxisLabels& labels) {
  return std::find(labels.begin(), labels.end(), label) - labels.begin();
}

// Returns the labels without the axes that only repeat.
AxisLabels NamedAxes(AxisLabels labels) {
  labels.erase(std::remove(labels.begin(), labels.end(), kUnitAxis), labels.end());
  return labels;
}

// Reshapes an operand to its named axes.
ValueId WithoutUnitAxes(DerivativeBuilder& graph, ValueId value, const AxisLabels& labels, const TensorType& type) {
  if (!HasLabel(labels, kUnitAxis)) return value;
  SymbolicShape shape;
  for (size_t axis = 0; axis < labels.size(); ++axis) {
    if (labels[axis] != kUnitAxis) shape.push_back(type.shape[axis]);
  }
  return Terms(graph).Reshape(value, shape);
}

ValueId Einsum(DerivativeBuilder& graph, absl::Span<const ValueId> operands, absl::Span<const AxisLabels> labels,
               const AxisLabels& output, Algebra algebra = Algebra::kStandard) {
  if (operands.size() == 1 && labels[0] == output && EachOnce(output).size() == output.size()) return operands[0];
  std::vector<std::vector<int64_t>> lists;
  for (const AxisLabels& list : labels) lists.emplace_back(list.begin(), list.end());
  std::vector<std::vector<int64_t>> outputs;
  outputs.emplace_back(output.begin(), output.end());
  const OpDef& op = EinsumOps()[0];
  Attributes attrs(op.attrs);
  attrs.Set("operands", std::move(lists)).Set("output", std::move(outputs));
  if (algebra != Algebra::kStandard) attrs.Set("algebra", static_cast<int64_t>(algebra));
  return graph.Add(op, std::move(attrs), operands);
}

// The operands and tangents of an einsum, with every axis of an ellipsis repeated that has another size than the
// ellipses have together, since only the run tells whether it repeats.
class RepeatedOperands {
 public:
  RepeatedOperands(JvpCall& call, const EinsumTerms& terms)
      : operands(call.operands.begin(), call.operands.end()), tangents(call.tangents.begin(), call.tangents.end()) {
    for (size_t i = 0; i < operands.size(); ++i) {
      const SymbolicShape own = call.graph.type(operands[i]).shape;
      SymbolicShape whole = own;
      for (size_t axis = 0; axis < own.size(); ++axis) {
        const int label = terms.operands[i][axis];
        if (label == kUnitAxis || !terms.of_ellipsis[static_cast<size_t>(label)]) continue;
        whole[axis] = terms.sizes[static_cast<size_t>(label)];
      }
      if (whole == own) continue;
      Terms e(call.graph);
      operands[i] = e.Broadcast(operands[i], whole, AllAxes(whole.size()));
      if (call.has(i)) tangents[i] = e.Broadcast(tangents[i], whole, AllAxes(whole.size()));
    }
  }

  DerivativeBuilder::Values operands, tangents;
};

// A value, its tangent and the labels of its axes. A tangent that is not set is zero.
struct LabelledDual {
  ValueId value, tangent;
  AxisLabels labels;
};

// Writes all products of one or two factors out, of which the result is the maximum or the minimum. The output has each
// label once. `result` may be unset.
LabelledDual ExtremeOfProducts(DerivativeBuilder& graph, absl::Span<const LabelledDual> factors,
                               const AxisLabels& output, Algebra algebra, ValueId result) {
  LabelledDual made{.value = {}, .tangent = {}, .labels = output};
  std::vector<ValueId> values;
  std::vector<AxisLabels> lists;
  for (const LabelledDual& factor : factors) {
    values.push_back(factor.value);
    lists.push_back(factor.labels);
  }
  made.value = result.is_set() ? result : Einsum(graph, values, lists, output, algebra);
  if (!graph.ok()) return made;
  AxisLabels all = output;
  for (const AxisLabels& labels : lists) all.insert(all.end(), labels.begin(), labels.end());
  all = EachOnce(all);
  DualTensor products{.x = {}, .t = {}, .shape = SymbolicShape(all.size())};
  for (size_t i = 0; i < factors.size(); ++i) {
    const SymbolicShape shape = graph.type(values[i]).shape;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      products.shape[static_cast<size_t>(PlaceOf(lists[i][axis], all))] = shape[axis];
    }
  }
  Terms e(graph);
  const bool multiplies = algebra == Algebra::kMaxTimes;
  const auto repeated = [&](ValueId x, const AxisLabels& labels) {
    const AxisLabels once = EachOnce(labels);
    std::vector<int64_t> places;
    for (int label : once) places.push_back(PlaceOf(label, all));
    return e.Broadcast(Einsum(graph, {x}, {labels}, once), products.shape, std::move(places));
  };
  for (size_t i = 0; i < factors.size(); ++i) {
    const ValueId x = repeated(values[i], lists[i]);
    if (products.t.is_set() && multiplies) products.t = e.Mul(products.t, x);
    if (factors[i].tangent.is_set()) {
      const ValueId t = repeated(factors[i].tangent, lists[i]);
      products.t = e.Sum(products.t, multiplies && products.x.is_set() ? e.Mul(products.x, t) : t);
    }
    products.x = !products.x.is_set() ? x : multiplies ? e.Mul(products.x, x) : e.Add(products.x, x);
  }
  if (!products.t.is_set() || !graph.ok()) return made;
  std::vector<int64_t> reduced;
  for (size_t axis = output.size(); axis < all.size(); ++axis) reduced.push_back(static_cast<int64_t>(axis));
  const SymbolicShape shape(products.shape.begin(), products.shape.begin() + static_cast<int64_t>(output.size()));
  made.tangent = reduced.empty()
                     ? products.t
                     : ExtremeTangent(graph, products, graph.type(made.value).dtype, made.value, shape, reduced);
  return made;
}

// Contracts duals by pairs.
class DualContraction {
 public:
  DualContraction(const EinsumTerms& terms, Algebra algebra, ValueId result, DerivativeBuilder* graph)
      : output_(terms.output), algebra_(algebra), result_(result), graph_(*graph), holders_(terms.sizes.size()) {
    Hold(output_, 1);
  }

  void AddOperand(LabelledDual dual) {
    Hold(dual.labels, 1);
    duals_.push_back(std::move(dual));
  }

  // Returns the tangent of the result.
  ValueId Run(const ContractionPath& path) {
    for (size_t step = 0; step < path.size() && graph_.ok(); ++step) {
      // Appending moves the duals.
      const LabelledDual a = duals_[static_cast<size_t>(path[step].first)];
      const LabelledDual b = duals_[static_cast<size_t>(path[step].second)];
      AddOperand(Contracted(a, b, step + 1 == path.size()));
    }
    if (path.empty() && algebra_ != Algebra::kStandard) return Extreme({duals_.back()}, output_, true).tangent;
    return duals_.back().tangent;
  }

 private:
  // Counts the tensors that have a label, each once.
  void Hold(const AxisLabels& labels, int change) {
    for (int label : EachOnce(labels)) holders_[static_cast<size_t>(label)] += change;
  }

  LabelledDual Contracted(const LabelledDual& a, const LabelledDual& b, bool is_last) {
    Hold(a.labels, -1);
    Hold(b.labels, -1);
    LabelledDual made{.value = {}, .tangent = {}, .labels = is_last ? output_ : Kept(a.labels, b.labels)};
    if (algebra_ != Algebra::kStandard) return Extreme({a, b}, made.labels, is_last);
    const AxisLabels labels[] = {a.labels, b.labels};
    if (!is_last) made.value = Einsum(graph_, {a.value, b.value}, labels, made.labels);
    Terms e(graph_);
    if (a.tangent.is_set()) made.tangent = Einsum(graph_, {a.tangent, b.value}, labels, made.labels);
    if (b.tangent.is_set()) {
      made.tangent = e.Sum(made.tangent, Einsum(graph_, {a.value, b.tangent}, labels, made.labels));
    }
    return made;
  }

  // An output may have a label twice: what is beside that diagonal is the algebra's zero, and its tangent is 0.
  LabelledDual Extreme(absl::Span<const LabelledDual> factors, const AxisLabels& output, bool is_last) {
    const AxisLabels once = EachOnce(output);
    LabelledDual made =
        ExtremeOfProducts(graph_, factors, once, algebra_, is_last && once == output ? result_ : ValueId());
    if (made.tangent.is_set()) made.tangent = Einsum(graph_, {made.tangent}, {once}, output);
    made.labels = output;
    return made;
  }

  // Returns the labels that are read again, in the order of a contraction's result: each side's, then those of both.
  AxisLabels Kept(const AxisLabels& a, const AxisLabels& b) const {
    AxisLabels kept, shared;
    for (int label : EachOnce(a)) {
      if (holders_[static_cast<size_t>(label)] > 0) (HasLabel(b, label) ? shared : kept).push_back(label);
    }
    for (int label : EachOnce(b)) {
      if (holders_[static_cast<size_t>(label)] > 0 && !HasLabel(a, label)) kept.push_back(label);
    }
    kept.insert(kept.end(), shared.begin(), shared.end());
    return kept;
  }

  const AxisLabels output_;
  const Algebra algebra_;
  const ValueId result_;
  DerivativeBuilder& graph_;
  std::vector<int> holders_;  // by label, the output being one
  std::vector<LabelledDual> duals_;
};

absl::StatusOr<ValueId> TangentAlongPath(JvpCall& call, const EinsumTerms& terms, const RepeatedOperands& repeated) {
  ASSIGN_OR_RETURN(const EinsumPath planned, PathOf(terms, call.attrs));
  // Of more operands the result may be rounded otherwise than the products that are compared with it.
  const ValueId result = call.operands.size() <= 2 ? call.results[0] : ValueId();
  DualContraction contraction(terms, AlgebraOf(call.attrs), result, &call.graph);
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const AxisLabels& labels = terms.operands[i];
    const TensorType type = call.graph.type(repeated.operands[i]);
    LabelledDual dual{.value = WithoutUnitAxes(call.graph, repeated.operands[i], labels, type),
                      .tangent = {},
                      .labels = NamedAxes(labels)};
    if (call.has(i)) dual.tangent = WithoutUnitAxes(call.graph, repeated.tangents[i], labels, type);
    contraction.AddOperand(std::move(dual));
  }
  return contraction.Run(planned.path);
}

// Brings a cotangent with the labels `reached` to all axes of the operand.
ValueId Repeated(DerivativeBuilder& graph, ValueId ct, const AxisLabels& reached, const AxisLabels& axes,
                 const TensorType& operand) {
  if (!graph.ok()) return {};
  const AxisLabels all = EachOnce(axes);
  SymbolicShape shape;
  for (int label : all) {
    const auto place = std::find(reached.begin(), reached.end(), label);
    const auto axis = std::find(axes.begin(), axes.end(), label);
    shape.push_back(place == reached.end() ? operand.shape[static_cast<size_t>(axis - axes.begin())]
                                           : graph.type(ct).shape[static_cast<size_t>(place - reached.begin())]);
  }
  std::vector<int64_t> places;
  for (int label : reached) places.push_back(PlaceOf(label, all));
  return Einsum(graph, {Terms(graph).Broadcast(ct, shape, std::move(places))}, {all}, axes);
}

absl::StatusOr<ValueId> TangentOf(JvpCall& call) {
  std::vector<const TensorType*> types;
  for (ValueId operand : call.operands) types.push_back(&call.graph.type(operand));
  ASSIGN_OR_RETURN(const EinsumTerms terms, TermsOf(call.attrs, types));
  const RepeatedOperands repeated(call, terms);
  const auto tangents = std::count_if(call.tangents.begin(), call.tangents.end(), [](ValueId t) { return t.is_set(); });
  if (AlgebraOf(call.attrs) != Algebra::kStandard || (call.operands.size() > 2 && tangents > 1))
    return TangentAlongPath(call, terms, repeated);
  ValueId sum;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    if (!call.has(i)) continue;
    DerivativeBuilder::Values operands = repeated.operands;
    operands[i] = repeated.tangents[i];
    sum = Terms(call.graph).Sum(sum, call.graph.Add(call.op, call.attrs, operands));
  }
  return sum;
}

}  // namespace

void JvpEinsum(JvpCall& call) {
  const absl::StatusOr<ValueId> tangent = TangentOf(call);
  if (!tangent.ok()) return call.graph.Fail(tangent.status());
  call.result_tangents[0] = *tangent;
}

// Of the einsums that JvpEinsum writes: axes of ellipses have one size.
void TransposeEinsum(TransposeCall& call) {
  DerivativeBuilder& graph = call.graph;
  const absl::StatusOr<EinsumTerms> terms = TermsOf(call.attrs, call.operand_types);
  if (!terms.ok()) return graph.Fail(terms.status());
  size_t linear = 0;
  while (!call.is_linear(linear)) ++linear;
  std::vector<ValueId> factors = {call.cotangents[0]};
  std::vector<AxisLabels> labels = {terms->output};
  std::vector<bool> is_reached(terms->sizes.size());
  for (size_t i = 0; i < call.operands.size(); ++i) {
    if (i == linear) continue;
    const ValueId conj = Terms(graph).Conj(call.operands[i]);
    factors.push_back(WithoutUnitAxes(graph, conj, terms->operands[i], *call.operand_types[i]));
    labels.push_back(NamedAxes(terms->operands[i]));
  }
  for (const AxisLabels& list : labels) {
    for (int label : list) is_reached[static_cast<size_t>(label)] = true;
  }
  const TensorType& operand = *call.operand_types[linear];
  const AxisLabels axes = NamedAxes(terms->operands[linear]);
  AxisLabels reached;
  for (int label : EachOnce(axes)) {
    if (is_reached[static_cast<size_t>(label)]) reached.push_back(label);
  }
  const bool reaches_all = reached.size() == EachOnce(axes).size();
  ValueId ct = Einsum(graph, factors, labels, reaches_all ? axes : reached);
  SymbolicShape named;
  for (size_t axis = 0; axis < operand.shape.size(); ++axis) {
    if (terms->operands[linear][axis] != kUnitAxis) named.push_back(operand.shape[axis]);
  }
  if (!reaches_all) ct = Repeated(graph, ct, reached, axes, {.dtype = operand.dtype, .shape = named});
  if (axes.size() != operand.shape.size()) ct = Terms(graph).Reshape(ct, operand.shape);
  call.operand_cotangents[linear] = ct;
}

}  // namespace tensord
