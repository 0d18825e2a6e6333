#include "engine/passes/layout/read_windows.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "engine/ops/affine_dot.h"
#include "engine/ops/core_ops.h"
#include "engine/passes/layout/affine_product.h"
#include "engine/passes/layout/affine_views.h"
#include "engine/passes/layout/window_sums.h"

namespace tensord {
namespace {

// Rows that lie beside each other in a transposed result: the other operand is packed anew for each run of them.
constexpr int64_t kLeastRun = 256;

using Index = AffineProduct::Index;
using Indices = std::vector<Index>;

class Rewriting {
 public:
  explicit Rewriting(Graph& graph) : graph_(graph), views_(graph) {}

  bool Run() {
    nodes_.assign(graph_.nodes().begin(), graph_.nodes().end());
    CountUses();
    bool changed = false;
    for (Node& node : nodes_) {
      if (Is(*node.op, CoreOp::kDotGeneral)) {
        changed = RewriteDot(&node) || changed;
      } else if (changed && (Is(*node.op, CoreOp::kTranspose) || Is(*node.op, CoreOp::kReshape))) {
        RewriteLayout(&node);
      }
    }
    if (changed) Rebuild();
    return changed;
  }

 private:
  void CountUses() {
    uses_.assign(static_cast<size_t>(graph_.num_values()), 0);
    for (const Node& node : nodes_) {
      for (const ValueId operand : node.operands) ++uses_[static_cast<size_t>(operand.index)];
    }
    for (const GraphOutput& output : graph_.outputs()) ++uses_[static_cast<size_t>(output.value.index)];
  }

  bool RewriteDot(Node* node) {
    const std::optional<AffineProduct> product = AffineProductOf(graph_, *node, views_);
    if (!product.has_value() || !product->joins) return false;
    node->attrs = product->AttributesFor(graph_.type(node->first_result), node->attrs);
    node->op = &AffineDotOp();
    for (const ProductSide side : {kLhs, kRhs}) node->operands[side] = product->bases[side];
    return true;
  }

  // Returns an affine_dot as it was made.
  static AffineProduct ProductOf(const Node& dot) {
    AffineProduct product;
    const std::vector<int64_t>& sizes = dot.attrs.Ints("sizes");
    const size_t of_result = sizes.size() - static_cast<size_t>(dot.attrs.Int("num_summed"));
    for (size_t i = 0; i < sizes.size(); ++i) {
      Index& index = (i < of_result ? product.result : product.summed).emplace_back(Index{.size = sizes[i]});
      for (const ProductSide side : {kLhs, kRhs}) {
        const AffineRead read = side == kLhs ? LhsReadOf(dot.attrs) : RhsReadOf(dot.attrs);
        product.starts[side] = read.starts;
        for (size_t axis = 0; axis < read.starts.size(); ++axis) index.steps[side].push_back(read.Step(i, axis));
      }
    }
    return product;
  }

  // Moves a layout op into the affine_dot before it, if nobody else reads its result.
  void RewriteLayout(Node* node) {
    const ValueId operand = node->operands[0];
    if (graph_.is_input(operand) || uses_[static_cast<size_t>(operand.index)] != 1) return;
    const Node& dot = nodes_[static_cast<size_t>(graph_.producer(operand))];
    const TensorType& type = graph_.type(node->first_result);
    if (!IsAffineDot(*dot.op) || !type.is_static()) return;
    AffineProduct product = ProductOf(dot);
    std::optional<Indices> moved;
    if (Is(*node->op, CoreOp::kTranspose)) {
      moved = Transposed(product.result, dot.attrs.Ints("shape"), node->attrs.Ints("permutation"));
    } else if (static_cast<Order>(node->attrs.Int("order")) != Order::kRowMajor) {
      moved = product.result;
    }
    if (!moved.has_value()) return;
    product.result = *std::move(moved);
    node->attrs = product.AttributesFor(type, dot.attrs);
    node->op = dot.op;
    node->operands = dot.operands;
  }

  // Returns the indices of a result of that shape in the order of its transpose; nothing if that would be slow to
  // compute, or an index belongs to two axes.
  static std::optional<Indices> Transposed(const Indices& result, absl::Span<const int64_t> shape,
                                           absl::Span<const int64_t> permutation) {
    std::vector<AffineDigit> digits;
    for (const Index& index : result) {
      AffineDigit& digit = digits.emplace_back(AffineDigit{.size = index.size, .steps = index.steps[kLhs]});
      digit.steps.insert(digit.steps.end(), index.steps[kRhs].begin(), index.steps[kRhs].end());
    }
    const std::optional<std::vector<AffineDigits>> axes = Regrouped(digits, shape);
    if (!axes.has_value()) return std::nullopt;
    Indices moved;
    for (const int64_t axis : permutation) {
      for (const AffineDigit& digit : (*axes)[static_cast<size_t>(axis)]) {
        const auto rhs = digit.steps.begin() + static_cast<ptrdiff_t>(result[0].steps[kLhs].size());
        moved.push_back(
            {.size = digit.size,
             .steps = {std::vector<int64_t>(digit.steps.begin(), rhs), std::vector<int64_t>(rhs, digit.steps.end())}});
      }
    }
    if (!HasLongRuns(moved)) return std::nullopt;
    return moved;
  }

  static bool Moves(const Index& index, ProductSide side) {
    return std::any_of(index.steps[side].begin(), index.steps[side].end(), [](int64_t step) { return step != 0; });
  }

  // Tells whether one operand's free indices come first, all or many of them.
  static bool HasLongRuns(const Indices& indices) {
    if (indices.empty()) return true;
    const ProductSide side = Moves(indices[0], kLhs) ? kLhs : kRhs;
    const auto is_row = [&](const Index& index) { return !Moves(index, side == kLhs ? kRhs : kLhs); };
    int64_t run = 1, all = 1;
    bool runs_on = true;
    for (const Index& index : indices) {
      runs_on = runs_on && is_row(index);
      if (runs_on) run *= index.size;
      if (is_row(index)) all *= index.size;
    }
    return run > 1 && (run == all || run >= kLeastRun);
  }

  void Rebuild() {
    Graph result = Graph::EmptyLike(graph_);
    std::vector<TensorType> types = graph_.TakeTypes();
    graph_.TakeNodes();
    for (const GraphInput& input : graph_.inputs()) result.AddInput(input.name, input.type);
    for (Node& node : nodes_) result.AddNode(std::move(node));
    for (size_t v = graph_.inputs().size(); v < types.size(); ++v) {
      result.set_type({static_cast<int32_t>(v)}, std::move(types[v]));
    }
    for (const GraphOutput& output : graph_.outputs()) result.AddOutput(output.name, output.value);
    graph_ = std::move(result);
  }

  Graph& graph_;
  const AffineViews views_;
  std::vector<Node> nodes_;
  std::vector<int32_t> uses_;  // by value
};

}  // namespace

absl::StatusOr<bool> ReadWindows(Graph* graph, const PassOptions& options) {
  if (!options.fuses || graph->algebra() != Algebra::kStandard) return false;
  const auto has = [&](CoreOp op) {
    return std::any_of(graph->nodes().begin(), graph->nodes().end(),
                       [op](const Node& node) { return Is(*node.op, op); });
  };
  if (!has(CoreOp::kDotGeneral)) return false;
  const bool sums = has(CoreOp::kAdd) && has(CoreOp::kSlice) && SumWindows(graph);
  return (has(CoreOp::kConcatenate) && Rewriting(*graph).Run()) || sums;
}

}  // namespace tensord
