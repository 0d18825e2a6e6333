#include "engine/passes/layout/window_sums.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/stop_signal.h"
#include "engine/ops/affine_dot.h"
#include "engine/ops/core_ops.h"
#include "engine/passes/layout/affine_product.h"
#include "engine/passes/layout/affine_views.h"

namespace tensord {
namespace {

constexpr size_t kMaxNodesBetween = 1024;  // a product and the sum of its windows
// Times as many products as before that may be summed up: padding that is multiplied, where windows hardly overlap.
constexpr double kMaxProducts = 2;
constexpr double kFewProducts = 1 << 20;  // take less time than the kernels that go

using Index = AffineProduct::Index;

// An axis of an operand, in parts of which some are reversed; the fastest first.
struct ReversedAxis {
  size_t axis = 0;
  std::vector<int64_t> parts;
  std::vector<bool> is_reversed;
};

// The product that takes the place of a sum.
struct WindowSum {
  AffineProduct product;
  const Node* dot = nullptr;
  ProductSide other = kRhs;  // of the reversed axes
  std::vector<ReversedAxis> reversed;
};

double NumProducts(const AffineProduct& product) {
  double count = 1;
  for (const std::vector<Index>* indices : {&product.result, &product.summed}) {
    for (const Index& index : *indices) count *= static_cast<double>(index.size);
  }
  return count;
}

// Both sides' places one after the other, as views of a product's result have them.
std::vector<int64_t> Both(const std::array<std::vector<int64_t>, 2>& sides, const std::array<size_t, 2>& ranks) {
  std::vector<int64_t> both;
  for (const ProductSide side : {kLhs, kRhs}) {
    both.insert(both.end(), sides[side].begin(), sides[side].end());
    both.resize(both.size() + ranks[side] - sides[side].size());
  }
  return both;
}

class Sums {
 public:
  explicit Sums(const Graph& graph)
      : graph_(graph), operands_(graph), views_(graph, [this](const Node& node) { return Begin(node); }) {
    CountUses();
  }

  // Returns the product for the node's result; nothing if that is no sum of windows, or somebody reads parts of it.
  std::optional<WindowSum> Of(const Node& node) const {
    if (node.num_results != 1) return std::nullopt;
    const AffineView* const view = views_.Find(node.first_result);
    if (view == nullptr || view->starts.size() < 2 || !HoldsAllReaders(node, *view)) return std::nullopt;
    for (const ProductSide moved : {kLhs, kRhs}) {
      std::optional<WindowSum> sum = Sum(*view, moved);
      if (sum.has_value()) return sum;
    }
    return std::nullopt;
  }

 private:
  void CountUses() {
    uses_.assign(static_cast<size_t>(graph_.num_values()), 0);
    for (const Node& node : graph_.nodes()) {
      for (const ValueId operand : node.operands) ++uses_[static_cast<size_t>(operand.index)];
    }
    for (const GraphOutput& output : graph_.outputs()) ++uses_[static_cast<size_t>(output.value.index)];
  }

  // A product's result as a view of places in both operands.
  std::optional<AffineView> Begin(const Node& node) {
    if (!Is(*node.op, CoreOp::kDotGeneral)) return std::nullopt;
    std::optional<AffineProduct> product = AffineProductOf(graph_, node, operands_);
    if (!product.has_value()) return std::nullopt;
    AffineView view{.base = node.first_result};
    std::array<size_t, 2> ranks;
    for (const ProductSide side : {kLhs, kRhs}) {
      const TensorType& type = graph_.type(product->bases[side]);
      for (const Dim& dim : type.shape) view.sizes.push_back(dim.size.constant());
      ranks[side] = type.shape.size();
    }
    view.starts = {Both(product->starts, ranks)};
    const auto digits_of = [&](const std::vector<Index>& indices) {
      AffineDigits digits;
      for (const Index& index : indices) digits.push_back({.size = index.size, .steps = Both(index.steps, ranks)});
      return digits;
    };
    view.summed = digits_of(product->summed);
    std::vector<int64_t> shape;
    for (const Dim& dim : graph_.type(node.first_result).shape) shape.push_back(dim.size.constant());
    std::optional<std::vector<AffineDigits>> axes = Regrouped(digits_of(product->result), shape);
    if (!axes.has_value()) return std::nullopt;
    view.axes = *std::move(axes);
    products_.emplace(node.first_result.index, *std::move(product));
    return view;
  }

  // Tells whether all that reads the product, or is made of it on the way to the node's result, is on that way.
  bool HoldsAllReaders(const Node& node, const AffineView& view) const {
    // Where one operand is on the way, nobody else on the way reads it.
    const auto is_on_way = [&](ValueId operand) {
      const AffineView* const of = views_.Find(operand);
      return of != nullptr && of->base == view.base;
    };
    if (std::count_if(node.operands.begin(), node.operands.end(), is_on_way) == 1) {
      const auto only = std::find_if(node.operands.begin(), node.operands.end(), is_on_way);
      if (uses_[static_cast<size_t>(only->index)] > 1) return false;
    }
    std::map<int32_t, int32_t> readers;  // by value
    std::vector<const Node*> open = {&node};
    while (!open.empty()) {
      const Node& next = *open.back();
      open.pop_back();
      if (next.first_result == view.base) continue;
      for (const ValueId operand : next.operands) {
        if (!is_on_way(operand)) continue;  // the number that pads
        if (readers[operand.index]++ > 0) continue;
        open.push_back(&graph_.nodes()[static_cast<size_t>(graph_.producer(operand))]);
        if (readers.size() > kMaxNodesBetween) return false;
      }
    }
    return std::all_of(readers.begin(), readers.end(), [&](const auto& value_and_count) {
      return uses_[static_cast<size_t>(value_and_count.first)] == value_and_count.second;
    });
  }

  size_t RankOf(const AffineProduct& product, ProductSide side) const {
    return graph_.type(product.bases[side]).shape.size();
  }

  // Returns the product with windows that go forwards on the moved side.
  std::optional<WindowSum> Sum(const AffineView& view, ProductSide moved) const {
    WindowSum sum{.product = products_.at(view.base.index), .other = moved == kLhs ? kRhs : kLhs};
    sum.dot = &graph_.nodes()[static_cast<size_t>(graph_.producer(view.base))];
    const size_t lhs_rank = RankOf(sum.product, kLhs);
    const auto part = [&](const std::vector<int64_t>& both, ProductSide side) {
      const auto middle = both.begin() + static_cast<ptrdiff_t>(lhs_rank);
      return side == kLhs ? std::vector<int64_t>(both.begin(), middle) : std::vector<int64_t>(middle, both.end());
    };
    std::vector<AffinePlace> starts = view.starts;
    // The places of the moved side decide, its last axis first.
    std::sort(starts.begin(), starts.end(), [&](const AffinePlace& a, const AffinePlace& b) {
      const AffinePlace left = part(a, moved), right = part(b, moved);
      return std::lexicographical_compare(left.rbegin(), left.rend(), right.rbegin(), right.rend());
    });
    std::vector<AffinePlace> places;
    for (const AffinePlace& start : starts) places.push_back(part(start, moved));
    const std::optional<AffineDigits> lattice = LatticeOf(places);
    if (!lattice.has_value()) return std::nullopt;
    std::vector<Index> windows = WindowsOf(*lattice, starts, moved, part);
    if (windows.empty()) return std::nullopt;

    for (const ProductSide side : {kLhs, kRhs}) sum.product.starts[side] = part(starts[0], side);
    sum.product.result.clear();
    for (const AffineDigits& axis : view.axes) {
      for (const AffineDigit& digit : axis) {
        sum.product.result.push_back({.size = digit.size, .steps = {part(digit.steps, kLhs), part(digit.steps, kRhs)}});
      }
    }
    sum.product.summed.insert(sum.product.summed.end(), windows.begin(), windows.end());
    const double most = std::max(kFewProducts, kMaxProducts * NumProducts(products_.at(view.base.index)));
    if (NumProducts(sum.product) > most) return std::nullopt;
    if (!sum.product.fits() || !ReverseOther(&sum)) return std::nullopt;
    return sum;
  }

  // Returns the windows as indices with the steps of both sides; nothing where they lie unevenly on the other side, or
  // one moves along one side only.
  template <typename Part>
  static std::vector<Index> WindowsOf(const AffineDigits& lattice, const std::vector<AffinePlace>& starts,
                                      ProductSide moved, const Part& part) {
    const ProductSide other = moved == kLhs ? kRhs : kLhs;
    const AffinePlace origin = part(starts[0], other);
    std::vector<Index> windows;
    size_t block = 1;
    for (const AffineDigit& digit : lattice) {
      Index& window = windows.emplace_back(Index{.size = digit.size});
      window.steps[moved] = digit.steps;
      window.steps[other] = part(starts[block], other);
      for (size_t axis = 0; axis < origin.size(); ++axis) window.steps[other][axis] -= origin[axis];
      block *= static_cast<size_t>(digit.size);
      const auto is_zero = [](int64_t step) { return step == 0; };
      if (std::all_of(window.steps[other].begin(), window.steps[other].end(), is_zero)) return {};
    }
    for (size_t i = 0; i < starts.size(); ++i) {
      AffinePlace place = origin;
      size_t rest = i;
      for (const Index& window : windows) {
        const size_t size = static_cast<size_t>(window.size);
        const int64_t index = static_cast<int64_t>(rest % size);
        for (size_t axis = 0; axis < place.size(); ++axis) place[axis] += index * window.steps[other][axis];
        rest /= size;
      }
      if (place != part(starts[i], other)) return {};
    }
    return windows;
  }

  // Makes all steps on the other side positive, by axes that are reversed. False where the indices that move along such
  // an axis do not count each of its elements once.
  bool ReverseOther(WindowSum* sum) const {
    AffineProduct& product = sum->product;
    const TensorType& type = graph_.type(product.bases[sum->other]);
    for (size_t axis = 0; axis < type.shape.size(); ++axis) {
      std::vector<Index*> along;
      bool is_reversed = false;
      for (std::vector<Index>* indices : {&product.result, &product.summed}) {
        for (Index& index : *indices) {
          const std::vector<int64_t>& steps = index.steps[sum->other];
          if (steps.empty() || steps[axis] == 0) continue;
          along.push_back(&index);
          is_reversed = is_reversed || steps[axis] < 0;
        }
      }
      if (is_reversed && !ReverseAxis(axis, type.shape[axis].size.constant(), along, sum)) return false;
    }
    return true;
  }

  static bool ReverseAxis(size_t axis, int64_t size, std::vector<Index*> along, WindowSum* sum) {
    const auto step = [&](Index* index) -> int64_t& { return index->steps[sum->other][axis]; };
    std::sort(along.begin(), along.end(), [&](Index* a, Index* b) { return std::abs(step(a)) < std::abs(step(b)); });
    ReversedAxis reversed{.axis = axis};
    int64_t next = 1, start = 0;
    for (Index* index : along) {
      if (std::abs(step(index)) != next) return false;
      next *= index->size;
      reversed.parts.push_back(index->size);
      reversed.is_reversed.push_back(step(index) < 0);
      if (step(index) < 0) start -= step(index) * (index->size - 1);
      step(index) = std::abs(step(index));
    }
    int64_t& begins = sum->product.starts[sum->other][axis];
    if (next != size || begins != start) return false;
    begins = 0;
    sum->reversed.push_back(std::move(reversed));
    return true;
  }

  const Graph& graph_;
  const AffineViews operands_;
  std::map<int32_t, AffineProduct> products_;  // by result; made with the views
  const AffineViews views_;
  std::vector<int32_t> uses_;  // by value
};

// Appends the reversed tensor: as many axes as there are parts, and their own again.
ValueId AddReversed(const std::vector<ReversedAxis>& reversed, const std::string& name, ValueId value, Graph* graph) {
  const TensorType type = graph->type(value);
  TensorType split{.dtype = type.dtype, .shape = {}};
  std::vector<int64_t> dimensions;
  size_t next = 0;
  for (size_t axis = 0; axis < type.shape.size(); ++axis) {
    if (next == reversed.size() || reversed[next].axis != axis) {
      split.shape.push_back(type.shape[axis]);
      continue;
    }
    for (size_t part = 0; part < reversed[next].parts.size(); ++part) {
      if (reversed[next].is_reversed[part]) dimensions.push_back(static_cast<int64_t>(split.shape.size()));
      split.shape.push_back(Dim(reversed[next].parts[part]));
    }
    ++next;
  }
  const auto add = [&](CoreOp op, Attributes attrs, const TensorType& made) {
    Node node{.name = name, .op = &Def(op), .attrs = std::move(attrs), .operands = {value}};
    value = graph->AddNode(std::move(node));
    graph->set_type(value, made);
  };
  const auto add_reshape = [&](const TensorType& made) {
    std::vector<DimExpr> shape;
    for (const Dim& dim : made.shape) shape.push_back(dim.size);
    Attributes attrs(Def(CoreOp::kReshape).attrs);
    attrs.Set("shape", std::move(shape));
    add(CoreOp::kReshape, std::move(attrs), made);
  };
  add_reshape(split);
  Attributes attrs(Def(CoreOp::kReverse).attrs);
  attrs.Set("dimensions", std::move(dimensions));
  add(CoreOp::kReverse, std::move(attrs), split);
  add_reshape(type);
  return value;
}

}  // namespace

bool SumWindows(Graph* graph) {
  std::map<int32_t, WindowSum> sums;  // by result
  {
    const Sums all(*graph);
    for (const Node& node : graph->nodes()) {
      if (!CheckStopped().ok()) return false;  // the pipeline asks again
      std::optional<WindowSum> sum = all.Of(node);
      if (sum.has_value()) sums.emplace(node.first_result.index, *std::move(sum));
    }
  }
  if (sums.empty()) return false;
  Graph result = Graph::EmptyLike(*graph);
  std::vector<ValueId> made(static_cast<size_t>(graph->num_values()));  // by value of the old graph
  const auto now = [&](ValueId value) { return made[static_cast<size_t>(value.index)]; };
  for (size_t i = 0; i < graph->inputs().size(); ++i) {
    made[i] = result.AddInput(graph->inputs()[i].name, graph->inputs()[i].type);
  }
  for (const Node& old : graph->nodes()) {
    Node node = old;
    for (ValueId& operand : node.operands) operand = now(operand);
    const auto sum = sums.find(old.first_result.index);
    if (sum != sums.end()) {
      const AffineProduct& product = sum->second.product;
      node.op = &AffineDotOp();
      node.operands = {now(product.bases[kLhs]), now(product.bases[kRhs])};
      node.attrs = product.AttributesFor(graph->type(old.first_result), sum->second.dot->attrs);
      ValueId& other = node.operands[sum->second.other];
      if (!sum->second.reversed.empty()) other = AddReversed(sum->second.reversed, old.name, other, &result);
    }
    const ValueId first = result.AddNode(std::move(node));
    for (int32_t r = 0; r < old.num_results; ++r) {
      made[static_cast<size_t>(old.first_result.index + r)] = {first.index + r};
      result.set_type({first.index + r}, graph->type({old.first_result.index + r}));
    }
  }
  for (const GraphOutput& output : graph->outputs()) result.AddOutput(output.name, now(output.value));
  *graph = std::move(result);
  return true;
}

}  // namespace tensord
