#include "engine/passes/lowering/decompose_dots.h"

#include <numeric>
#include <optional>
#include <utility>

#include "engine/ops/axis_order.h"
#include "engine/ops/contraction.h"
#include "engine/passes/rewriting/graph_rewriter.h"
#include "engine/passes/rewriting/splat.h"

namespace tensord {
namespace {

using Ints = std::vector<int64_t>;

// One operand: its axes in the order of the canonical form, in groups that each become one axis, and the batch axes
// after them.
struct Side {
  ValueId value;
  Ints free;
  Ints contracting;
  Ints batch;
  bool is_lhs = false;

  bool merges() const { return free.size() > 1 || contracting.size() != 1; }
  Ints order() const {
    Ints axes;
    for (const Ints* group : {is_lhs ? &free : &contracting, is_lhs ? &contracting : &free, &batch}) {
      axes.insert(axes.end(), group->begin(), group->end());
    }
    return axes;
  }
};

// Returns the product of the sizes; nothing if it cannot be written down.
std::optional<Dim> Merged(const TensorType& type, const Ints& axes) {
  DimExpr product(1);
  for (int64_t axis : axes) {
    absl::StatusOr<DimExpr> next = DimExpr::Multiply(product, type.shape[static_cast<size_t>(axis)].size);
    if (!next.ok()) return std::nullopt;
    product = *std::move(next);
  }
  return Dim(std::move(product));
}

// Returns the operand's type in the canonical form.
std::optional<TensorType> CanonicalType(const Side& side, const TensorType& type) {
  TensorType canonical = {.dtype = type.dtype, .shape = {}};
  const std::optional<Dim> free = Merged(type, side.free), contracted = Merged(type, side.contracting);
  if (!free.has_value() || !contracted.has_value()) return std::nullopt;
  if (side.is_lhs && !side.free.empty()) canonical.shape.push_back(*free);
  canonical.shape.push_back(*contracted);
  if (!side.is_lhs && !side.free.empty()) canonical.shape.push_back(*free);
  for (int64_t axis : side.batch) canonical.shape.push_back(type.shape[static_cast<size_t>(axis)]);
  return canonical;
}

ValueId Canonicalised(const Node& node, const Side& side, TensorType canonical, GraphRewriter& graph) {
  ValueId value = side.value;
  const Ints order = side.order();
  if (!IsIdentity(order)) {
    TensorType type = {.dtype = canonical.dtype, .shape = {}};
    for (int64_t axis : order) type.shape.push_back(graph.type(value).shape[static_cast<size_t>(axis)]);
    Attributes attrs(Def(CoreOp::kTranspose).attrs);
    attrs.Set("permutation", order);
    value = graph.Add(CoreOp::kTranspose, node.name, std::move(attrs), {value}, std::move(type));
  }
  return side.merges() ? graph.AddReshape(node.name, value, std::move(canonical)) : value;
}

std::optional<ValueId> DecomposeDot(const Node& node, GraphRewriter& graph) {
  if (!Is(*node.op, CoreOp::kDotGeneral)) return std::nullopt;
  const auto side = [&](size_t operand, absl::string_view contracting, absl::string_view batch) {
    const Ints &c = node.attrs.Ints(contracting), &b = node.attrs.Ints(batch);
    return Side{.value = node.operands[operand],
                .free = FreeAxes(graph.type(node.operands[operand]).rank(), c, b),
                .contracting = c,
                .batch = b,
                .is_lhs = operand == 0};
  };
  const Side lhs = side(0, "lhs_contracting_dimensions", "lhs_batching_dimensions");
  const Side rhs = side(1, "rhs_contracting_dimensions", "rhs_batching_dimensions");
  const bool is_canonical = !lhs.merges() && !rhs.merges() && IsIdentity(lhs.order()) && IsIdentity(rhs.order());
  // The merged product would have other axes to permute.
  if (!node.attrs.Ints("result_permutation").empty()) return std::nullopt;
  if (is_canonical || !IsExact(graph.type(lhs.value)) || !IsExact(graph.type(rhs.value))) return std::nullopt;
  std::optional<TensorType> lhs_type = CanonicalType(lhs, graph.type(lhs.value));
  std::optional<TensorType> rhs_type = CanonicalType(rhs, graph.type(rhs.value));
  if (!lhs_type.has_value() || !rhs_type.has_value()) return std::nullopt;

  const TensorType type = graph.result_type();
  TensorType product = {.dtype = type.dtype, .shape = {}};
  if (!lhs.free.empty()) product.shape.push_back(lhs_type->shape[0]);
  if (!rhs.free.empty()) product.shape.push_back(rhs_type->shape[1]);
  const size_t num_free = lhs.free.size() + rhs.free.size();
  for (size_t i = num_free; i < type.shape.size(); ++i) product.shape.push_back(type.shape[i]);

  Node dot = node;
  const int64_t lhs_axes = lhs.free.empty() ? 1 : 2, rhs_axes = rhs.free.empty() ? 1 : 2;
  Ints lhs_batch(lhs.batch.size()), rhs_batch(rhs.batch.size());
  std::iota(lhs_batch.begin(), lhs_batch.end(), lhs_axes);
  std::iota(rhs_batch.begin(), rhs_batch.end(), rhs_axes);
  dot.attrs.Set("lhs_contracting_dimensions", Ints{lhs_axes - 1}).Set("rhs_contracting_dimensions", Ints{0});
  dot.attrs.Set("lhs_batching_dimensions", std::move(lhs_batch)).Set("rhs_batching_dimensions", std::move(rhs_batch));
  dot.operands[0] = Canonicalised(node, lhs, *std::move(lhs_type), graph);
  dot.operands[1] = Canonicalised(node, rhs, *std::move(rhs_type), graph);
  const ValueId result = graph.Add(std::move(dot), product);
  // Without this the readers would see the merged axes.
  return product == type ? result : graph.AddReshape(node.name, result, type);
}

}  // namespace

absl::StatusOr<bool> DecomposeDots(Graph* graph, const PassOptions&) {
  return GraphRewriter::Run(graph, &DecomposeDot);
}

}  // namespace tensord
