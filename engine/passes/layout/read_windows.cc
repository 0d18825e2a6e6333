#include "engine/passes/layout/read_windows.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "engine/ops/affine_dot.h"
#include "engine/ops/contraction.h"
#include "engine/ops/core_ops.h"
#include "engine/passes/layout/affine_views.h"

namespace tensord {
namespace {

constexpr size_t kMaxIndices = 32;  // of a product: reshapes split axes, and each rule goes over all pairs
// Rows that lie beside each other in a transposed result: the other operand is packed anew for each run of them.
constexpr int64_t kLeastRun = 256;

enum Side : size_t { kLhs, kRhs };
constexpr absl::string_view kStarts[] = {"lhs_starts", "rhs_starts"};
constexpr absl::string_view kSteps[] = {"lhs_steps", "rhs_steps"};

// How the indices of an affine_dot move along the two bases.
struct Index {
  int64_t size = 1;
  std::vector<int64_t> steps[2];  // empty: not at all
};
using Indices = std::vector<Index>;

Index IndexOf(Side side, const AffineDigit& digit) {
  Index index{.size = digit.size};
  index.steps[side] = digit.steps;
  return index;
}

void CutOff(int64_t size, AffineDigit* digit) {
  digit->size /= size;
  for (int64_t& step : digit->steps) step *= size;
}

// The digits of one axis on both sides as indices; nothing if they cannot be cut alike.
bool AppendPairs(const AffineDigits& lhs, const AffineDigits& rhs, Indices* indices) {
  std::vector<AffineDigit> left(lhs.rbegin(), lhs.rend()), right(rhs.rbegin(), rhs.rend());
  while (!left.empty() && !right.empty()) {
    AffineDigit &l = left.back(), &r = right.back();
    const int64_t size = std::min(l.size, r.size);
    if (l.size % size != 0 || r.size % size != 0) return false;
    indices->push_back({.size = size, .steps = {l.steps, r.steps}});
    CutOff(size, &l);
    CutOff(size, &r);
    if (l.size == 1) left.pop_back();
    if (r.size == 1) right.pop_back();
  }
  return left.empty() && right.empty();
}

std::vector<int64_t> StepsOf(const Indices& indices, Side side, size_t rank) {
  std::vector<int64_t> steps;
  for (const Index& index : indices) {
    for (size_t axis = 0; axis < rank; ++axis) steps.push_back(index.steps[side].empty() ? 0 : index.steps[side][axis]);
  }
  return steps;
}

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
    if (AlgebraOf(node->attrs) != Algebra::kStandard) return false;  // an affine_dot adds products up
    // Loops for integers want long rows.
    if (!kInexact.Contains(graph_.type(node->operands[kLhs]).dtype)) return false;
    if (!node->attrs.Ints("result_permutation").empty()) return false;
    std::optional<AffineView> views[] = {views_.Of(node->operands[kLhs]), views_.Of(node->operands[kRhs])};
    if (!views[kLhs].has_value() || !views[kRhs].has_value()) return false;
    if (!views[kLhs]->joins && !views[kRhs]->joins) return false;
    const Attributes& dot = node->attrs;
    const std::vector<int64_t>&lc = dot.Ints("lhs_contracting_dimensions"),
          &rc = dot.Ints("rhs_contracting_dimensions"), &lb = dot.Ints("lhs_batching_dimensions"),
          &rb = dot.Ints("rhs_batching_dimensions");
    const auto axis = [&](Side side, int64_t a) -> const AffineDigits& {
      return views[side]->axes[static_cast<size_t>(a)];
    };
    Indices indices;
    for (const Side side : {kLhs, kRhs}) {
      const int64_t rank = static_cast<int64_t>(views[side]->axes.size());
      for (const int64_t a : side == kLhs ? FreeAxes(rank, lc, lb) : FreeAxes(rank, rc, rb)) {
        for (const AffineDigit& digit : axis(side, a)) indices.push_back(IndexOf(side, digit));
      }
    }
    for (size_t i = 0; i < lb.size(); ++i) {
      if (!AppendPairs(axis(kLhs, lb[i]), axis(kRhs, rb[i]), &indices)) return false;
    }
    const size_t of_result = indices.size();
    for (size_t i = 0; i < lc.size(); ++i) {
      if (!AppendPairs(axis(kLhs, lc[i]), axis(kRhs, rc[i]), &indices)) return false;
    }
    if (indices.size() > kMaxIndices) return false;

    Attributes attrs(AffineDotOp().attrs);
    attrs.Set("num_summed", static_cast<int64_t>(indices.size() - of_result));
    for (const Side side : {kLhs, kRhs}) {
      const auto& starts = views[side]->starts;
      attrs.Set(kStarts[side], std::vector<int64_t>(starts.begin(), starts.end()));
      attrs.Set(kSteps[side], StepsOf(indices, side, starts.size()));
      node->operands[side] = views[side]->base;
    }
    std::vector<int64_t> sizes, shape;
    for (const Index& index : indices) sizes.push_back(index.size);
    for (const Dim& dim : graph_.type(node->first_result).shape) shape.push_back(dim.size.constant());
    attrs.Set("sizes", std::move(sizes)).Set("shape", std::move(shape));
    attrs.Set("result_dtype", dot.GetDType("result_dtype"));
    attrs.Set("lhs_conj", dot.Int("lhs_conj")).Set("rhs_conj", dot.Int("rhs_conj"));
    node->op = &AffineDotOp();
    node->attrs = std::move(attrs);
    return true;
  }

  // Returns the indices of the result with the steps of both sides, and those of the sums.
  static Indices IndicesOf(const Attributes& attrs) {
    const std::vector<int64_t>& sizes = attrs.Ints("sizes");
    Indices indices;
    for (size_t i = 0; i < sizes.size(); ++i) {
      Index& index = indices.emplace_back(Index{.size = sizes[i]});
      for (const Side side : {kLhs, kRhs}) {
        const AffineRead read = side == kLhs ? LhsReadOf(attrs) : RhsReadOf(attrs);
        for (size_t axis = 0; axis < read.starts.size(); ++axis) index.steps[side].push_back(read.Step(i, axis));
      }
    }
    return indices;
  }

  // Moves a layout op into the affine_dot before it, if nobody else reads its result.
  void RewriteLayout(Node* node) {
    const ValueId operand = node->operands[0];
    if (graph_.is_input(operand) || uses_[static_cast<size_t>(operand.index)] != 1) return;
    const Node& dot = nodes_[static_cast<size_t>(graph_.producer(operand))];
    const TensorType& type = graph_.type(node->first_result);
    if (!IsAffineDot(*dot.op) || !type.is_static()) return;
    const Indices all = IndicesOf(dot.attrs);
    const size_t of_result = all.size() - static_cast<size_t>(dot.attrs.Int("num_summed"));
    const Indices result(all.begin(), all.begin() + static_cast<ptrdiff_t>(of_result));
    std::optional<Indices> moved;
    if (Is(*node->op, CoreOp::kTranspose)) {
      moved = Transposed(result, dot.attrs.Ints("shape"), node->attrs.Ints("permutation"));
    } else if (static_cast<Order>(node->attrs.Int("order")) != Order::kRowMajor) {
      moved = result;
    }
    if (!moved.has_value()) return;
    moved->insert(moved->end(), all.begin() + static_cast<ptrdiff_t>(of_result), all.end());

    Attributes attrs = dot.attrs;
    std::vector<int64_t> sizes, shape;
    for (const Index& index : *moved) sizes.push_back(index.size);
    for (const Dim& dim : type.shape) shape.push_back(dim.size.constant());
    attrs.Set("sizes", std::move(sizes)).Set("shape", std::move(shape));
    for (const Side side : {kLhs, kRhs}) {
      attrs.Set(kSteps[side], StepsOf(*moved, side, attrs.Ints(kStarts[side]).size()));
    }
    node->op = dot.op;
    node->operands = dot.operands;
    node->attrs = std::move(attrs);
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
        moved.push_back({.size = digit.size, .steps = {{digit.steps.begin(), rhs}, {rhs, digit.steps.end()}}});
      }
    }
    if (!HasLongRuns(moved)) return std::nullopt;
    return moved;
  }

  static bool Moves(const Index& index, Side side) {
    return std::any_of(index.steps[side].begin(), index.steps[side].end(), [](int64_t step) { return step != 0; });
  }

  // Tells whether one operand's free indices come first, all or many of them.
  static bool HasLongRuns(const Indices& indices) {
    if (indices.empty()) return true;
    const Side side = Moves(indices[0], kLhs) ? kLhs : kRhs;
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
  return has(CoreOp::kDotGeneral) && has(CoreOp::kConcatenate) && Rewriting(*graph).Run();
}

}  // namespace tensord
